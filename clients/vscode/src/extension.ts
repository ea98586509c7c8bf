import * as vscode from "vscode";
import { Judgement, type Memory } from "hummock";
import { ask, judge } from "./ask.js";
import { MemoryDocuments, openMemory, SCHEME } from "./documents.js";
import type { FileMemory } from "./file_memories.js";
import { FileView } from "./file_view.js";
import { Indexing } from "./indexing.js";
import { forget, rememberSelection, rememberText } from "./remember.js";
import { consoleAddress, Service } from "./service.js";
import { Status } from "./status.js";
import type { Words } from "./words.js";

const words: Words = (message, ...values) => vscode.l10n.t(message, ...values);

let indexing: Indexing | undefined;

/** Starts the extension. */
export function activate(context: vscode.ExtensionContext): void {
  const service = new Service(context.secrets, words);
  const status = new Status(words);
  const index = new Indexing(service, words, state => status.showIndex(state));
  const view = new FileView(context, service, words, error => status.showReach(error));
  indexing = index;

  const commands: Record<string, (...given: never[]) => unknown> = {
    ask: () => ask(service, words),
    rememberSelection: () => rememberSelection(service, words),
    rememberText: () => rememberText(service, words),
    startIndex: () => index.start(),
    stopIndex: () => index.stop(),
    showLog: () => index.showLog(),
    startService: () => service.start(),
    openConsole: () => vscode.env.openExternal(vscode.Uri.parse(consolePage(service))),
    setToken: () => service.setToken(),
    refresh: () => view.refresh(),
    forget: ({ memory }: FileMemory) => forget(service, words, memory),
    helpful: ({ memory }: FileMemory) => judge(service, words, memory.id, Judgement.HELPFUL),
    wrong: ({ memory }: FileMemory) => judge(service, words, memory.id, Judgement.WRONG),
    openMemory: (memory: Memory) => service.attempt((_, place) => openMemory(memory, place)),
    menu: () => menu(index),
  };
  const showProject = () => status.showProject(service.folderOf()?.project ?? "");
  context.subscriptions.push(
    service,
    status,
    index,
    view,
    ...Object.entries(commands).map(([name, run]) => vscode.commands.registerCommand(`hummock.${name}`, run)),
    vscode.workspace.registerTextDocumentContentProvider(SCHEME, new MemoryDocuments(service, words)),
    vscode.window.registerTreeDataProvider("hummock.fileMemories", view),
    vscode.window.onDidChangeActiveTextEditor(showProject),
    vscode.workspace.onDidChangeWorkspaceFolders(() => {
      showProject();
      void view.refresh();
    }),
    service.onChange(showProject),
  );
  showProject();
  void view.refresh();
  index.startWanted(vscode.workspace.workspaceFolders ?? []);
}

/** Ends what was started. */
export async function deactivate(): Promise<void> {
  await indexing?.stop();
}

/** The page of the console that asks in the project; its first page where no folder is open. */
function consolePage(service: Service): string {
  const project = service.folderOf()?.project;
  const address = consoleAddress().replace(/\/+$/, "");
  return project ? `${address}/ask?project=${encodeURIComponent(project)}` : address;
}

async function menu(index: Indexing): Promise<void> {
  const choices = [
    [words("Ask"), "hummock.ask"],
    [words("Remember a sentence"), "hummock.rememberText"],
    index.isRunning
      ? [words("Restart the index"), "hummock.startIndex"]
      : [words("Index and follow the folder"), "hummock.startIndex"],
    ...(index.isRunning ? [[words("Stop following the folder"), "hummock.stopIndex"]] : []),
    [words("Show log"), "hummock.showLog"],
    [words("Start hummock serve"), "hummock.startService"],
    [words("Open the console"), "hummock.openConsole"],
  ];
  const chosen = await vscode.window.showQuickPick(
    choices.map(([label = "", command = ""]) => ({ label, command })),
    { title: "Hummock" },
  );
  if (chosen) await vscode.commands.executeCommand(chosen.command);
}
