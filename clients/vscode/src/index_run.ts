import { type ChildProcessByStdio, spawn } from "node:child_process";
import { homedir } from "node:os";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";

const STAGE = /^(reading files|sending memories|removing the vanished): (\d+)(?:\/(\d+))?(?:,|$)/;

/** How far `hummock index --watch` is. */
export type IndexState =
  | { readonly phase: "working"; readonly stage: string; readonly done: number; readonly total: number | undefined }
  | { readonly phase: "following"; readonly sent: number; readonly deleted: number }
  | { readonly phase: "ended" }
  | { readonly phase: "failed"; readonly why: string }
  | { readonly phase: "missing"; readonly command: string };

/** What is indexed, and how. */
export interface IndexOptions {
  readonly command: string;
  readonly folder: string;
  readonly project: string;
  readonly target: string;
  readonly environment: NodeJS.ProcessEnv;
}

/** A running `hummock index --watch`: it follows a folder until it is stopped, or fails. */
export class IndexRun {
  readonly #child: ChildProcessByStdio<null, Readable, Readable>;
  readonly #ended: Promise<void>;
  #isStopped = false;
  #lastLine = "";

  /**
   * @param onState Told of each change; "ended", "failed" and "missing" are the last ones.
   * @param onLine Given each line of the command's stderr.
   */
  constructor(options: IndexOptions, onState: (state: IndexState) => void, onLine: (line: string) => void) {
    const { command, folder, project, target, environment } = options;
    const flags = ["--watch", "--json", `--project=${project}`, `--target=${target}`];
    this.#child = spawn(command, ["index", ...flags, "--", folder], {
      // A hummock.toml of the repository must not apply.
      cwd: homedir(),
      env: environment,
      stdio: ["ignore", "pipe", "pipe"],
      windowsHide: true,
    });
    createInterface({ input: this.#child.stderr }).on("line", line => {
      if (!line.trim()) return;
      this.#lastLine = line;
      onLine(line);
      const state = stateOfLine(line);
      if (state) onState(state);
    });
    createInterface({ input: this.#child.stdout }).on("line", line => {
      const state = stateOfBatch(line);
      if (state) onState(state);
    });
    this.#ended = new Promise(resolve => {
      this.#child.on("error", (error: NodeJS.ErrnoException) => {
        onState(error.code === "ENOENT" ? { phase: "missing", command } : { phase: "failed", why: error.message });
        resolve();
      });
      this.#child.on("close", status => {
        // Where the command was not found this comes after the error.
        if (this.#child.pid !== undefined) onState(this.#outcome(status));
        resolve();
      });
    });
  }

  /** Ends it and waits until it has: what was sent is kept, and the next run goes on from there. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#child.kill("SIGINT");
    await this.#ended;
  }

  #outcome(status: number | null): IndexState {
    if (this.#isStopped || status === 0) return { phase: "ended" };
    return { phase: "failed", why: this.#lastLine.replace(/^error: /, "") || `exit status ${status}` };
  }
}

/** The progress that a line of stderr tells; undefined of any other line. */
export function stateOfLine(line: string): IndexState | undefined {
  const [, stage, done, total] = STAGE.exec(line) ?? [];
  if (stage === undefined) return undefined;
  return { phase: "working", stage, done: Number(done), total: total === undefined ? undefined : Number(total) };
}

/** What a line of stdout, the report of a batch, tells; undefined of any other line. */
export function stateOfBatch(line: string): IndexState | undefined {
  let report: unknown;
  try {
    report = JSON.parse(line);
  } catch {
    return undefined;
  }
  if (typeof report !== "object" || report === null) return undefined;
  const { sent, deleted } = report as { sent?: unknown; deleted?: unknown };
  if (typeof sent !== "number" || typeof deleted !== "number") return undefined;
  return { phase: "following", sent, deleted };
}
