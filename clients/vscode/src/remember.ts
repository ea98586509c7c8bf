import * as vscode from "vscode";
import { type Memory, MemoryView } from "hummock";
import { documentOf } from "./documents.js";
import { titleOf } from "./hits.js";
import { isNew, noteOf, outcomeOf } from "./notes.js";
import { type Anchor, below } from "./paths.js";
import type { OpenFolder, Service } from "./service.js";
import type { Words } from "./words.js";

/** Stores the selection as a note of its file and lines, with a remark that is asked for. */
export async function rememberSelection(service: Service, words: Words): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  const text = editor?.document.getText(editor.selection) ?? "";
  if (!editor || !text.trim()) {
    void vscode.window.showErrorMessage(words("Select what should be remembered first."));
    return;
  }
  const remark = await vscode.window.showInputBox({
    prompt: words("What should be known about it? It may stay empty."),
    ignoreFocusOut: true,
  });
  if (remark === undefined) return;
  const { document, selection } = editor;
  await remember(service, words, place => noteOf(text, { remark, anchor: anchorIn(place, document, selection) }));
}

/** Stores a sentence that is asked for. */
export async function rememberText(service: Service, words: Words): Promise<void> {
  const text = await vscode.window.showInputBox({ prompt: words("What should be remembered?"), ignoreFocusOut: true });
  if (text?.trim()) await remember(service, words, () => noteOf(text));
}

/** Deletes a memory, and offers to store it anew, without what hung on it: its use, learnt keywords and verdicts. */
export async function forget(service: Service, words: Words, { id }: Memory): Promise<void> {
  await service.attempt(async (client, { project }) => {
    const { memory } = await client.memories.getMemory({ project, id, view: MemoryView.RAW });
    await client.memories.deleteMemories({ project, ids: [id] });
    if (!memory) return;
    const undo = words("Undo");
    void vscode.window.showInformationMessage(words("Forgot “{0}”.", titleOf(memory)), undo).then(chosen => {
      if (chosen === undo) return service.attempt(client => client.context.learn({ project, memories: [memory] }));
      return undefined;
    });
  });
}

async function remember(service: Service, words: Words, note: (place: OpenFolder) => Memory): Promise<void> {
  await service.attempt(async (client, place) => {
    const { project } = place;
    const memory = note(place);
    const { results } = await client.context.learn({ project, memories: [memory] });
    const result = results[0];
    if (!result) return;
    const { message, isWarning } = outcomeOf(result, words);
    const [open, undo] = [words("Open"), words("Undo")];
    const show = isWarning ? vscode.window.showWarningMessage : vscode.window.showInformationMessage;
    void show(message, ...(isNew(result) ? [open, undo] : [])).then(async chosen => {
      if (chosen === open) await vscode.window.showTextDocument(documentOf({ ...memory, id: result.id }, project));
      if (chosen === undo) {
        await service.attempt(client => client.memories.deleteMemories({ project, ids: [result.id] }));
      }
    });
  });
}

function anchorIn(place: OpenFolder, document: vscode.TextDocument, selection: vscode.Selection): Anchor | undefined {
  if (document.uri.scheme !== "file") return undefined;
  const path = below(place.root, document.uri.fsPath);
  if (path === undefined) return undefined;
  // A selection that ends before the first character of a line does not hold that line.
  const isWhole = selection.end.character === 0 && selection.end.line > selection.start.line;
  return { path, startLine: selection.start.line + 1, endLine: selection.end.line + (isWhole ? 0 : 1) };
}
