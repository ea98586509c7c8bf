import { execFile } from "node:child_process";
import { homedir } from "node:os";

const DEFAULT_PORT = "7420";

/** Options of `hummock serve` that make it listen at a target; undefined for a target that is not on this machine. */
export function serveOptions(target: string): string[] | undefined {
  if (target.startsWith("unix:")) return ["--unix-socket", target.slice("unix:".length).replace(/^\/\//, "")];
  const [, name, port] = /^(127(?:\.\d+){3}|localhost|\[::1\])(?::(\d+))?$/.exec(target) ?? [];
  if (name === undefined) return undefined;
  const host = name === "localhost" ? "127.0.0.1" : name.replace(/^\[|\]$/g, "");
  return ["--host", host, "--port", port ?? DEFAULT_PORT];
}

/** Whether a command can be started at all. */
export function isInstalled(command: string): Promise<boolean> {
  return new Promise(resolve => {
    execFile(command, ["--version"], { cwd: homedir(), windowsHide: true }, error => resolve(error?.code !== "ENOENT"));
  });
}
