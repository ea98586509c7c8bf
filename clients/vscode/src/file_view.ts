import * as vscode from "vscode";
import { type Memory, MemoryKind } from "hummock";
import { type FileMemory, FileMemories } from "./file_memories.js";
import { kindWord, titleOf } from "./hits.js";
import type { OpenFolder, Service } from "./service.js";
import { follow } from "./watching.js";
import { oneLine, type Words } from "./words.js";

/** An index sends many batches; the view need not be read again for each. */
const SETTLE_MS = 500;
const LONGEST_HOVER = 1_000;

/** The memories of the file in the editor, as a list and as marks in the margin; kept up to date by a watch. */
export class FileView implements vscode.TreeDataProvider<FileMemory>, vscode.Disposable {
  readonly #service: Service;
  readonly #words: Words;
  readonly #onReach: (error: Error | undefined) => void;
  readonly #changes = new vscode.EventEmitter<void>();
  readonly #mark: vscode.TextEditorDecorationType;
  readonly #subscriptions: vscode.Disposable[];
  #watch: { project: string; memories: FileMemories; end: AbortController } | undefined;
  #shown: readonly FileMemory[] = [];
  #reads = 0;
  #timer: NodeJS.Timeout | undefined;

  readonly onDidChangeTreeData = this.#changes.event;

  /** @param onReach Told that the service answers, or why it does not. */
  constructor(
    context: vscode.ExtensionContext,
    service: Service,
    words: Words,
    onReach: (error: Error | undefined) => void,
  ) {
    this.#service = service;
    this.#words = words;
    this.#onReach = onReach;
    this.#mark = vscode.window.createTextEditorDecorationType({
      gutterIconPath: vscode.Uri.joinPath(context.extensionUri, "images", "memory.svg"),
      gutterIconSize: "contain",
      overviewRulerColor: new vscode.ThemeColor("editorOverviewRuler.infoForeground"),
      overviewRulerLane: vscode.OverviewRulerLane.Right,
    });
    this.#subscriptions = [
      this.#changes,
      this.#mark,
      vscode.window.onDidChangeActiveTextEditor(() => void this.refresh()),
      vscode.workspace.onDidSaveTextDocument(({ uri }) => {
        if (uri.toString() === vscode.window.activeTextEditor?.document.uri.toString()) void this.refresh();
      }),
      service.onChange(() => {
        this.#endWatch();
        void this.refresh();
      }),
    ];
  }

  getChildren(parent?: FileMemory): FileMemory[] {
    return parent ? [] : [...this.#shown];
  }

  getTreeItem({ memory, anchor }: FileMemory): vscode.TreeItem {
    const item = new vscode.TreeItem(titleOf(memory));
    item.id = memory.id;
    item.contextValue = "memory";
    const line = anchor?.startLine ? this.#words("line {0}", anchor.startLine) : "";
    item.description = [kindWord(memory.kind, this.#words), line].filter(part => part).join(" · ");
    item.iconPath = new vscode.ThemeIcon(memory.kind === MemoryKind.CODE_FRAGMENT ? "symbol-method" : "note");
    item.tooltip = hoverOf(memory);
    item.command = { command: "hummock.openMemory", title: "", arguments: [memory] };
    return item;
  }

  /** Reads the memories of the open file again. What goes wrong is told as the service's state. */
  async refresh(): Promise<void> {
    const read = ++this.#reads;
    const editor = vscode.window.activeTextEditor;
    // While an output or a memory is looked at, the list of the file before stays.
    if (editor && editor.document.uri.scheme !== "file") return;
    let found: readonly FileMemory[] = [];
    try {
      const place = this.#service.folderOf(editor?.document.uri);
      const memories = place && (await this.#following(place));
      if (editor && memories) found = await memories.of({ ...place, file: editor.document.uri.fsPath });
    } catch (error) {
      this.#onReach(error instanceof Error ? error : new Error(String(error)));
    }
    if (read !== this.#reads) return;
    this.#shown = found;
    this.#changes.fire();
    if (editor) editor.setDecorations(this.#mark, this.#marksIn(editor.document));
  }

  dispose(): void {
    this.#endWatch();
    for (const subscription of this.#subscriptions) subscription.dispose();
  }

  /** The memories of a project, which is watched from now on in place of another one. */
  async #following({ project }: OpenFolder): Promise<FileMemories> {
    if (this.#watch?.project === project) return this.#watch.memories;
    const client = await this.#service.client();
    this.#endWatch();
    const memories = new FileMemories(client, project);
    const end = new AbortController();
    this.#watch = { project, memories, end };
    const onChange = (records: boolean) => {
      if (records) memories.forgetRecords();
      this.#refreshSoon();
    };
    let wasAway = false;
    const onReach = (error: Error | undefined) => {
      this.#onReach(error);
      if (!error && wasAway) onChange(true);
      wasAway = error !== undefined;
    };
    void follow(client, project, { onChange, onReach }, end.signal);
    return memories;
  }

  #refreshSoon(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      void this.refresh();
    }, SETTLE_MS);
  }

  #endWatch(): void {
    this.#watch?.end.abort();
    this.#watch = undefined;
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /** Marks of what somebody has said of lines: a mark at every function would say nothing. */
  #marksIn(document: vscode.TextDocument): vscode.DecorationOptions[] {
    return this.#shown.flatMap(({ memory, anchor }) => {
      if (memory.kind === MemoryKind.CODE_FRAGMENT || !anchor?.startLine || anchor.startLine > document.lineCount) {
        return [];
      }
      const last = Math.min(anchor.endLine ?? anchor.startLine, document.lineCount) - 1;
      return [{ range: new vscode.Range(anchor.startLine - 1, 0, last, 0), hoverMessage: hoverOf(memory) }];
    });
  }
}

/** The beginning of a memory as plain text: what is stored is no Markdown of this extension. */
function hoverOf(memory: Memory): vscode.MarkdownString {
  const text = memory.text.length > LONGEST_HOVER ? `${memory.text.slice(0, LONGEST_HOVER)}…` : memory.text;
  return new vscode.MarkdownString()
    .appendText(oneLine(titleOf(memory)))
    .appendText("\n\n")
    .appendText(text);
}
