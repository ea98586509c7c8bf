import * as vscode from "vscode";
import { IndexRun, type IndexState } from "./index_run.js";
import { commandName, type Service } from "./service.js";
import type { Words } from "./words.js";

/** Indexes open folders and follows them: one child process a folder, shown in the status bar. */
export class Indexing implements vscode.Disposable {
  readonly #service: Service;
  readonly #words: Words;
  readonly #log: vscode.OutputChannel;
  readonly #onState: (state: IndexState) => void;
  readonly #runs = new Map<string, IndexRun>();
  readonly #subscriptions: vscode.Disposable[];

  constructor(service: Service, words: Words, onState: (state: IndexState) => void) {
    this.#service = service;
    this.#words = words;
    this.#onState = onState;
    this.#log = vscode.window.createOutputChannel("Hummock");
    this.#subscriptions = [
      this.#log,
      service.onChange(() => this.#restart()),
      vscode.workspace.onDidChangeWorkspaceFolders(({ added, removed }) => {
        for (const { uri } of removed) void this.#runs.get(uri.fsPath)?.stop();
        this.startWanted(added);
      }),
    ];
  }

  /** Whether any folder is followed. */
  get isRunning(): boolean {
    return this.#runs.size > 0;
  }

  /** Indexes and follows those of the folders whose settings ask for it. */
  startWanted(folders: readonly vscode.WorkspaceFolder[]): void {
    for (const { uri } of folders) {
      const isWanted = vscode.workspace.getConfiguration("hummock", uri).get<boolean>("indexOnOpen");
      const folder = isWanted ? this.#service.folderOf(uri) : undefined;
      if (folder) void this.start(folder);
    }
  }

  /** Indexes the folder that is worked in and follows it; where that runs already, it is started anew. */
  async start(folder = this.#service.folderOf()): Promise<void> {
    if (!folder) {
      void vscode.window.showErrorMessage(this.#words("Open a folder first: its name is that of the project."));
      return;
    }
    const environment = await this.#service.environment();
    // Somebody else may have started it meanwhile.
    for (let run = this.#runs.get(folder.folder); run; run = this.#runs.get(folder.folder)) await run.stop();
    const { target } = this.#service;
    const onState = (state: IndexState) => this.#changed(folder.folder, run, state);
    const options = { ...folder, command: commandName(), target, environment };
    const run: IndexRun = new IndexRun(options, onState, line => this.#log.appendLine(line));
    this.#runs.set(folder.folder, run);
    this.#onState({ phase: "working", stage: "reading files", done: 0, total: undefined });
  }

  /** Ends all; what was sent is kept. */
  async stop(): Promise<void> {
    await Promise.all([...this.#runs.values()].map(run => run.stop()));
  }

  /** Shows what the commands have said. */
  showLog(): void {
    this.#log.show(true);
  }

  dispose(): void {
    void this.stop();
    for (const subscription of this.#subscriptions) subscription.dispose();
  }

  /** Starts all anew: the target, the token, the command or a project may be another one. */
  #restart(): void {
    for (const path of [...this.#runs.keys()]) {
      const folder = this.#service.folderOf(vscode.Uri.file(path));
      if (folder) void this.start(folder);
    }
  }

  #changed(folder: string, run: IndexRun, state: IndexState): void {
    const isOver = state.phase === "ended" || state.phase === "failed" || state.phase === "missing";
    if (isOver && this.#runs.get(folder) === run) this.#runs.delete(folder);
    if (!isOver || !this.isRunning) this.#onState(state);
    if (state.phase === "missing") this.#service.showMissing(state.command);
    if (state.phase === "failed") void this.#showFailure(state.why);
  }

  async #showFailure(why: string): Promise<void> {
    const [again, log] = [this.#words("Start again"), this.#words("Show log")];
    const message = this.#words("The folder is not followed any more: {0}", why);
    const chosen = await vscode.window.showErrorMessage(message, again, log);
    if (chosen === again) await this.start();
    if (chosen === log) this.showLog();
  }
}
