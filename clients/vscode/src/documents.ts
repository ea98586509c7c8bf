import { stat } from "node:fs/promises";
import * as vscode from "vscode";
import { type Memory, timestampDate } from "hummock";
import { kindWord, placeText, titleOf } from "./hits.js";
import { anchorOf, filesNamed } from "./paths.js";
import type { OpenFolder, Service } from "./service.js";
import { oneLine, type Words } from "./words.js";

/** The scheme of memories as documents, which nobody can edit. */
export const SCHEME = "hummock";

/** Gives the text of a memory as a document; it is read when the document is opened. */
export class MemoryDocuments implements vscode.TextDocumentContentProvider {
  readonly #service: Service;
  readonly #words: Words;

  constructor(service: Service, words: Words) {
    this.#service = service;
    this.#words = words;
  }

  async provideTextDocumentContent(uri: vscode.Uri): Promise<string> {
    const [project = "", id = ""] = JSON.parse(uri.query) as string[];
    try {
      const client = await this.#service.client();
      const { memory } = await client.memories.getMemory({ project, id });
      return memory ? textOf(memory, project, this.#words) : "";
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
  }
}

/** The address of a memory as a document. */
export function documentOf(memory: Memory, project: string): vscode.Uri {
  const name =
    titleOf(memory)
      .replace(/[\\/:*?"<>|]/g, " ")
      .trim()
      .slice(0, 60) || "memory";
  return vscode.Uri.from({ scheme: SCHEME, path: `/${name}.md`, query: JSON.stringify([project, memory.id]) });
}

/** Opens the code that a memory is, at its line, if it is in an open folder; otherwise the memory. */
export async function openMemory(memory: Memory, place: OpenFolder): Promise<void> {
  const isCode = memory.detail.case === "codeFragment";
  const file = isCode ? await fileOf(memory, place) : undefined;
  if (file === undefined) {
    await vscode.window.showTextDocument(documentOf(memory, place.project), { preview: true });
    return;
  }
  const line = Math.max(0, (anchorOf(memory)?.startLine ?? 1) - 1);
  const selection = new vscode.Range(line, 0, line, 0);
  await vscode.window.showTextDocument(vscode.Uri.file(file), { preview: true, selection });
}

async function fileOf(memory: Memory, place: OpenFolder): Promise<string | undefined> {
  const anchor = anchorOf(memory);
  const open = vscode.workspace.workspaceFolders?.filter(({ uri }) => uri.scheme === "file") ?? [];
  const folders = [...new Set([place.folder, place.root, ...open.map(({ uri }) => uri.fsPath)])];
  for (const file of anchor ? filesNamed(memory, anchor, folders) : []) {
    const found = await stat(file).catch(() => undefined);
    if (found?.isFile()) return file;
  }
  return undefined;
}

function textOf(memory: Memory, project: string, words: Words): string {
  const at = memory.updateTime ?? memory.createTime;
  const facts = [
    kindWord(memory.kind, words),
    placeText(memory),
    memory.tags.map(tag => `#${oneLine(tag)}`).join(" "),
    at ? timestampDate(at).toISOString().slice(0, 16).replace("T", " ") : "",
    oneLine(memory.writer),
    `${oneLine(project)}: ${oneLine(memory.id)}`,
  ];
  return `# ${titleOf(memory)}\n\n${facts.filter(fact => fact).join(" · ")}\n\n${memory.text}\n`;
}
