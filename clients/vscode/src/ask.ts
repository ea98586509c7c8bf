import * as vscode from "vscode";
import { Judgement, Preset } from "hummock";
import { openMemory } from "./documents.js";
import { groupsOf, type ShownHit } from "./hits.js";
import type { OpenFolder, Service } from "./service.js";
import type { Words } from "./words.js";

interface HitItem extends vscode.QuickPickItem {
  readonly shown?: ShownHit;
}

/** Asks for a question and lists what it recalls, with why; Enter opens a hit, its buttons give a verdict. */
export async function ask(service: Service, words: Words): Promise<void> {
  const queryText = await vscode.window.showInputBox({
    prompt: words("What do you want to know?"),
    placeHolder: words("which formats does parseDate take?"),
  });
  if (!queryText?.trim()) return;
  await service.attempt(async (client, place) => {
    const reply = await client.recall({ project: place.project, queryText, preset: Preset.CODE });
    const items: HitItem[] = groupsOf(reply, words).flatMap(({ heading, hits }) => [
      { label: heading, kind: vscode.QuickPickItemKind.Separator },
      ...hits.map(shown => itemOf(shown, words)),
    ]);
    if (!items.length) {
      void vscode.window.showInformationMessage(words("Nothing in project {0} bears on that.", place.project));
      return;
    }
    for (const { message } of reply.degraded) void vscode.window.setStatusBarMessage(`Hummock: ${message}`, 10_000);
    show(items, queryText, place, service, words);
  });
}

function show(items: HitItem[], queryText: string, place: OpenFolder, service: Service, words: Words): void {
  const list = vscode.window.createQuickPick<HitItem>();
  list.title = queryText;
  list.placeholder = words("Enter opens a hit; type to narrow the list");
  list.matchOnDescription = true;
  list.matchOnDetail = true;
  list.items = items;
  list.onDidAccept(() => {
    const memory = list.selectedItems[0]?.shown?.memory;
    list.hide();
    if (memory) openMemory(memory, place).catch((error: unknown) => service.show(error));
  });
  list.onDidTriggerItemButton(({ item, button }) => {
    const judgement = button instanceof Verdict ? button.judgement : undefined;
    if (item.shown && judgement) void judge(service, words, item.shown.memory.id, judgement, queryText);
  });
  list.onDidHide(() => list.dispose());
  list.show();
}

/** Says of a memory that it was of use, or wrong. @param queryText What it answered; empty where nothing was asked. */
export async function judge(
  service: Service,
  words: Words,
  memoryId: string,
  judgement: Judgement,
  queryText = "",
): Promise<void> {
  await service.attempt(async (client, { project }) => {
    const reply = await client.context.feedback({ project, queryText, verdicts: [{ memoryId, judgement }] });
    const message = reply.recordedCount ? words("Your verdict is kept.") : words("That memory is gone.");
    void vscode.window.setStatusBarMessage(`Hummock: ${message}`, 5_000);
  });
}

class Verdict implements vscode.QuickInputButton {
  constructor(
    readonly judgement: Judgement,
    readonly iconPath: vscode.ThemeIcon,
    readonly tooltip: string,
  ) {}
}

function itemOf(shown: ShownHit, words: Words): HitItem {
  const { label, description, detail } = shown;
  const buttons = [
    new Verdict(Judgement.HELPFUL, new vscode.ThemeIcon("thumbsup"), words("Helpful")),
    new Verdict(Judgement.WRONG, new vscode.ThemeIcon("thumbsdown"), words("Wrong")),
  ];
  return { label, description, detail, buttons, shown };
}
