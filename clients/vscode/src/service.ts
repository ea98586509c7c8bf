import { homedir } from "node:os";
import * as vscode from "vscode";
import { DEFAULT_TARGET, HummockClient, HummockError } from "hummock";
import { type Place, placeOf } from "./project.js";
import { isInstalled, serveOptions } from "./serving.js";
import type { Words } from "./words.js";

const TOKEN = "hummock.token";

/** An open folder with its project. */
export interface OpenFolder extends Place {
  readonly folder: string;
}

/** The service that the settings name: its client, the token of the secret storage, and what to do where it is away. */
export class Service implements vscode.Disposable {
  readonly #secrets: vscode.SecretStorage;
  readonly #words: Words;
  readonly #changes = new vscode.EventEmitter<void>();
  readonly #subscriptions: vscode.Disposable[];
  #client: Promise<HummockClient> | undefined;

  /** Tells that another client is to be asked for: a setting or the token has changed. */
  readonly onChange = this.#changes.event;

  constructor(secrets: vscode.SecretStorage, words: Words) {
    this.#secrets = secrets;
    this.#words = words;
    this.#subscriptions = [
      this.#changes,
      vscode.workspace.onDidChangeConfiguration(event => {
        if (event.affectsConfiguration("hummock")) this.#reopen();
      }),
      secrets.onDidChange(({ key }) => {
        if (key === TOKEN) this.#reopen();
      }),
    ];
  }

  /** Where the service listens. */
  get target(): string {
    return setting("target") || process.env["HUMMOCK_TARGET"] || DEFAULT_TARGET;
  }

  /** A client of the service. @throws TypeError The settings name no target, or the token cannot be sent to it. */
  client(): Promise<HummockClient> {
    this.#client ??= this.#open();
    return this.#client;
  }

  /** The environment of a `hummock` that is to reach the same service. */
  async environment(): Promise<NodeJS.ProcessEnv> {
    const token = await this.#secrets.get(TOKEN);
    const tls = vscode.workspace.getConfiguration("hummock").get<boolean>("tls");
    return { ...process.env, ...(token && { HUMMOCK_TOKEN: token }), ...(tls && { HUMMOCK_TLS: "1" }) };
  }

  /** The folder of a file, else that of the editor, else the first one; undefined where none is open. */
  folderOf(uri = vscode.window.activeTextEditor?.document.uri): OpenFolder | undefined {
    const within = uri && vscode.workspace.getWorkspaceFolder(uri);
    const open = within ?? vscode.workspace.workspaceFolders?.[0];
    if (!open || open.uri.scheme !== "file") return undefined;
    const named = vscode.workspace.getConfiguration("hummock", open.uri).get<string>("project");
    const place = placeOf(open.uri.fsPath, [named, process.env["HUMMOCK_PROJECT"]]);
    return place && { ...place, folder: open.uri.fsPath };
  }

  /**
   * Runs a task for the folder that is worked in; what goes wrong is shown, with a way to start the service where it is
   * away.
   *
   * @returns undefined where it went wrong.
   */
  async attempt<T>(task: (client: HummockClient, place: OpenFolder) => Promise<T>): Promise<T | undefined> {
    const place = this.folderOf();
    if (!place) {
      void vscode.window.showErrorMessage(this.#words("Open a folder first: its name is that of the project."));
      return undefined;
    }
    try {
      return await task(await this.client(), place);
    } catch (error) {
      void this.show(error);
      return undefined;
    }
  }

  /** Shows an error; where the service is away and could run here, with a button that starts it. */
  async show(error: unknown): Promise<void> {
    const message = error instanceof Error ? error.message : String(error);
    const isAway = error instanceof HummockError && error.code === "UNAVAILABLE";
    const isRefused = error instanceof HummockError && error.code === "UNAUTHENTICATED";
    const start = this.#words("Start hummock serve");
    const setToken = this.#words("Set token");
    const choices = isAway && serveOptions(this.target) ? [start] : isRefused ? [setToken] : [];
    const chosen = await vscode.window.showErrorMessage(message, ...choices);
    if (chosen === start) await this.start();
    if (chosen === setToken) await this.setToken();
  }

  /** Starts the service in a terminal, in which it goes on until that is closed. */
  async start(): Promise<void> {
    const options = serveOptions(this.target);
    if (!options) {
      const message = this.#words("{0} is on another machine: start the service there.", this.target);
      void vscode.window.showErrorMessage(message);
      return;
    }
    const command = commandName();
    if (!(await isInstalled(command))) return this.showMissing(command);
    // A hummock.toml of the repository must not apply.
    const terminal = { name: "hummock serve", shellPath: command, shellArgs: ["serve", ...options], cwd: homedir() };
    vscode.window.createTerminal(terminal).show(true);
  }

  /** Says what to install where `hummock` cannot be started. */
  showMissing(command: string): void {
    const message = this.#words(
      "`{0}` is not on the PATH. Install it with `pip install 'hummock[server,code,convert]'`, or set hummock.command to its path.",
      command,
    );
    void vscode.window.showErrorMessage(message);
  }

  /** Asks for the token and keeps it in the secret storage; an empty one is removed. */
  async setToken(): Promise<void> {
    const token = await vscode.window.showInputBox({
      prompt: this.#words("The token by which the service knows you; leave it empty to send none."),
      password: true,
      ignoreFocusOut: true,
    });
    if (token === undefined) return;
    await (token.trim() ? this.#secrets.store(TOKEN, token.trim()) : this.#secrets.delete(TOKEN));
  }

  dispose(): void {
    for (const subscription of this.#subscriptions) subscription.dispose();
    this.#close();
  }

  async #open(): Promise<HummockClient> {
    // Unset means the token of the environment.
    const token = await this.#secrets.get(TOKEN);
    const tls = vscode.workspace.getConfiguration("hummock").get<boolean>("tls") ?? false;
    return new HummockClient({ target: this.target, token, tls });
  }

  #reopen(): void {
    this.#close();
    this.#changes.fire();
  }

  #close(): void {
    this.#client?.then(
      client => client.close(),
      () => undefined, // whoever asked for it was told
    );
    this.#client = undefined;
  }
}

/** The command that starts Hummock. */
export function commandName(): string {
  return setting("command") || "hummock";
}

/** The address of the console. */
export function consoleAddress(): string {
  return setting("console");
}

function setting(name: string): string {
  return vscode.workspace.getConfiguration("hummock").get<string>(name, "").trim();
}
