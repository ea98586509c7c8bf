import * as vscode from "vscode";
import type { IndexState } from "./index_run.js";
import type { Words } from "./words.js";

/** The item in the status bar: the project, whether the service answers, and how far the index is. */
export class Status implements vscode.Disposable {
  readonly #item: vscode.StatusBarItem;
  readonly #words: Words;
  #project = "";
  #away: Error | undefined;
  #index: IndexState | undefined;

  constructor(words: Words) {
    this.#words = words;
    this.#item = vscode.window.createStatusBarItem("hummock", vscode.StatusBarAlignment.Left);
    this.#item.name = "Hummock";
    this.#item.command = "hummock.menu";
  }

  /** Shows the project; nothing where there is none. */
  showProject(project: string): void {
    this.#project = project;
    this.#show();
  }

  /** Shows that the service answers, or why it does not; the empty view says so too. */
  showReach(error: Error | undefined): void {
    this.#away = error;
    void vscode.commands.executeCommand("setContext", "hummock.isAway", error !== undefined);
    this.#show();
  }

  /** Shows how far the index is. */
  showIndex(state: IndexState): void {
    this.#index = state;
    this.#show();
  }

  dispose(): void {
    this.#item.dispose();
  }

  #show(): void {
    if (!this.#project) return this.#item.hide();
    const words = this.#words;
    const lines = [words("Project: {0}", this.#project)];
    if (this.#away) lines.push(this.#away.message);
    if (this.#index) lines.push(indexText(this.#index, words));
    const icon = this.#away ? "circle-slash" : this.#index?.phase === "working" ? "sync~spin" : "database";
    const isFollowed = this.#index?.phase === "following" && !this.#away;
    const progress = this.#index?.phase === "working" ? ` ${progressOf(this.#index)}` : isFollowed ? " $(eye)" : "";
    this.#item.text = `$(${icon}) Hummock${progress}`;
    this.#item.tooltip = lines.join("\n");
    this.#item.backgroundColor = this.#away ? new vscode.ThemeColor("statusBarItem.warningBackground") : undefined;
    this.#item.show();
  }
}

function indexText(state: IndexState, words: Words): string {
  switch (state.phase) {
    case "working":
      return words("Indexing: {0}", `${state.stage} ${progressOf(state)}`);
    case "following":
      return words("The folder is followed. Last batch: {0} sent, {1} deleted.", state.sent, state.deleted);
    case "ended":
      return words("The folder is not followed.");
    case "failed":
      return words("The folder is not followed any more: {0}", state.why);
    case "missing":
      return words("`{0}` is not on the PATH.", state.command);
  }
}

function progressOf({ done, total }: { done: number; total: number | undefined }): string {
  return total === undefined ? String(done) : `${done}/${total}`;
}
