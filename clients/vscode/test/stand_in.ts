/**
 * The part of the module `vscode` that the extension uses, without an editor: it records what the extension shows, and
 * answers as a test has said beforehand.
 */
import { EventEmitter as Events } from "node:events";
import { pathToFileURL, fileURLToPath } from "node:url";

/** What a test sees and says. */
export const host = {
  /** Messages, the newest last. */
  messages: [] as { kind: "error" | "warning" | "information" | "status"; text: string; choices: string[] }[],
  /** Answers of the boxes to come, in order; without one a box is dismissed. */
  answers: [] as (string | undefined)[],
  /** The button that is chosen on the next message with buttons. */
  choice: undefined as string | undefined,
  settings: {} as Record<string, unknown>,
  lists: [] as QuickPick[],
  terminals: [] as object[],
  opened: [] as string[],
  shown: [] as { uri: Uri; options: { selection?: Range } | undefined }[],
  decorations: [] as { range: Range }[],
  status: undefined as StatusBarItem | undefined,
  log: [] as string[],
  documents: new Map<string, { provideTextDocumentContent(uri: Uri): Promise<string> }>(),
  trees: new Map<string, Tree>(),
  contexts: new Map<string, unknown>(),
  commands: new Map<string, (...given: unknown[]) => unknown>(),
  editors: undefined as unknown as EventEmitter<unknown>,
  folders: undefined as unknown as EventEmitter<{ added: object[]; removed: object[] }>,
  saves: undefined as unknown as EventEmitter<unknown>,
  configurations: undefined as unknown as EventEmitter<unknown>,
  /** Told of everything that is recorded. */
  events: new Events(),
};

/** Resolves as soon as something holds; it is looked at whenever something is recorded. */
export async function until<T>(what: () => T | undefined | false): Promise<T> {
  for (;;) {
    const found = what();
    if (found !== undefined && found !== false) return found;
    await new Promise(resolve => host.events.once("change", resolve));
  }
}

function changed(): void {
  host.events.emit("change");
}

interface Tree {
  getChildren(): object[];
  getTreeItem(element: object): TreeItem;
}

interface Disposable {
  dispose(): void;
}

const nothing: Disposable = { dispose: () => undefined };

export class EventEmitter<T> {
  readonly #listeners = new Set<(given: T) => void>();

  readonly event = (listener: (given: T) => void): Disposable => {
    this.#listeners.add(listener);
    return { dispose: () => this.#listeners.delete(listener) };
  };

  fire(given: T): void {
    for (const listener of this.#listeners) listener(given);
    changed();
  }

  dispose(): void {
    this.#listeners.clear();
  }
}

host.editors = new EventEmitter();
host.folders = new EventEmitter();
host.saves = new EventEmitter();
host.configurations = new EventEmitter();

export class Uri {
  private constructor(
    readonly scheme: string,
    readonly path: string,
    readonly query: string,
  ) {}

  static file(path: string): Uri {
    return new Uri("file", pathToFileURL(path).pathname, "");
  }

  static from({ scheme, path = "", query = "" }: { scheme: string; path?: string; query?: string }): Uri {
    return new Uri(scheme, path, query);
  }

  static parse(text: string): Uri {
    const { protocol, pathname, search, host } = new URL(text);
    return new Uri(protocol.slice(0, -1), `//${host}${pathname}`, search.slice(1));
  }

  static joinPath(base: Uri, ...parts: string[]): Uri {
    return new Uri(base.scheme, [base.path, ...parts].join("/"), "");
  }

  get fsPath(): string {
    return fileURLToPath(`file://${this.path}`);
  }

  toString(): string {
    return `${this.scheme}:${this.path}${this.query && `?${this.query}`}`;
  }
}

export class Range {
  readonly start: { line: number; character: number };
  readonly end: { line: number; character: number };

  constructor(startLine: number, startCharacter: number, endLine: number, endCharacter: number) {
    this.start = { line: startLine, character: startCharacter };
    this.end = { line: endLine, character: endCharacter };
  }
}

export class ThemeIcon {
  constructor(readonly id: string) {}
}

export class ThemeColor extends ThemeIcon {}

export class TreeItem {
  constructor(readonly label: string) {}
}

export class MarkdownString {
  value = "";

  appendText(text: string): this {
    this.value += text;
    return this;
  }
}

export const QuickPickItemKind = { Separator: -1, Default: 0 };
export const StatusBarAlignment = { Left: 1, Right: 2 };
export const OverviewRulerLane = { Right: 4 };

class StatusBarItem {
  text = "";
  tooltip = "";
  isShown = false;

  show(): void {
    this.isShown = true;
    changed();
  }

  hide(): void {
    this.isShown = false;
  }

  dispose(): void {}
}

interface Item {
  label: string;
  description?: string;
  detail?: string;
  buttons?: object[];
}

class QuickPick {
  title = "";
  items: Item[] = [];
  selectedItems: Item[] = [];
  readonly #accepts = new EventEmitter<void>();
  readonly #buttons = new EventEmitter<{ item: Item; button: object }>();
  readonly onDidAccept = this.#accepts.event;
  readonly onDidTriggerItemButton = this.#buttons.event;
  readonly onDidHide = () => nothing;

  accept(item: Item): void {
    this.selectedItems = [item];
    this.#accepts.fire();
  }

  press(item: Item, index: number): void {
    this.#buttons.fire({ item, button: item.buttons![index]! });
  }

  show(): void {
    host.lists.push(this);
    changed();
  }

  hide(): void {}

  dispose(): void {}
}

function shows(kind: "error" | "warning" | "information") {
  return async (text: string, ...choices: string[]) => {
    host.messages.push({ kind, text, choices });
    const chosen = choices.find(choice => choice === host.choice);
    if (chosen !== undefined) host.choice = undefined;
    changed();
    return chosen;
  };
}

export const window = {
  activeTextEditor: undefined as unknown,
  onDidChangeActiveTextEditor: host.editors.event,
  createStatusBarItem: () => (host.status = new StatusBarItem()),
  createOutputChannel: () => ({ ...nothing, appendLine: (line: string) => host.log.push(line), show: () => undefined }),
  createTextEditorDecorationType: () => nothing,
  createTerminal: (options: object) => {
    host.terminals.push(options);
    changed();
    return { show: () => undefined };
  },
  createQuickPick: () => new QuickPick(),
  showQuickPick: async (items: Item[]) => items.find(({ label }) => label === host.answers[0] && host.answers.shift()),
  showInputBox: async () => host.answers.shift(),
  showErrorMessage: shows("error"),
  showWarningMessage: shows("warning"),
  showInformationMessage: shows("information"),
  setStatusBarMessage: (text: string) => {
    host.messages.push({ kind: "status", text, choices: [] });
    changed();
    return nothing;
  },
  showTextDocument: async (uri: Uri, options?: { selection?: Range }) => {
    host.shown.push({ uri, options });
    changed();
  },
  registerTreeDataProvider: (name: string, tree: Tree) => {
    host.trees.set(name, tree);
    return nothing;
  },
};

export const workspace = {
  workspaceFolders: [] as { uri: Uri }[],
  getWorkspaceFolder: (uri: Uri) =>
    workspace.workspaceFolders.find(folder => uri.fsPath.startsWith(`${folder.uri.fsPath}/`)),
  getConfiguration: () => ({ get: (name: string, otherwise?: unknown) => host.settings[name] ?? otherwise }),
  onDidChangeConfiguration: host.configurations.event,
  onDidSaveTextDocument: host.saves.event,
  onDidChangeWorkspaceFolders: host.folders.event,
  registerTextDocumentContentProvider: (scheme: string, provider: never) => {
    host.documents.set(scheme, provider);
    return nothing;
  },
};

export const commands = {
  registerCommand: (name: string, run: (...given: unknown[]) => unknown) => {
    host.commands.set(name, run);
    return { dispose: () => host.commands.delete(name) };
  },
  executeCommand: async (name: string, ...given: unknown[]) => {
    if (name === "setContext") return void host.contexts.set(given[0] as string, given[1]);
    return host.commands.get(name)!(...given);
  },
};

export const env = {
  openExternal: async (uri: Uri) => host.opened.push(`${uri.scheme}:${uri.path}?${uri.query}`),
};

export const l10n = {
  t: (message: string, ...values: unknown[]) =>
    message.replace(/\{(\d+)\}/g, (whole, index) => String(values[Number(index)] ?? whole)),
};
