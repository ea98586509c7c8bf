import { isIP } from "node:net";

/** Where a service listens that was started without options. */
export const DEFAULT_TARGET = "127.0.0.1:7420";

const DEFAULT_PORT = 7420;
const LARGEST_PORT = 65535;

/** Where a service listens: a port of a host, or a Unix socket. */
export type Target = { readonly host: string; readonly port: number } | { readonly path: string };

/**
 * The target that a text names.
 *
 * @param text `host`, `host:port`, `[ipv6]:port`, `unix:path` or `unix:///path`. Unset means the environment's
 *   HUMMOCK_TARGET, and without it 127.0.0.1:7420.
 * @throws TypeError It is none of these.
 */
export function resolveTarget(text: string = process.env["HUMMOCK_TARGET"] || DEFAULT_TARGET): Target {
  if (text.startsWith("unix:")) {
    const path = text.slice("unix:".length).replace(/^\/\//, "");
    if (!path) throw new TypeError(`${text} names no socket; write unix:///path/to/hummock.sock`);
    return { path };
  }
  const found = /^(?:\[(?<ipv6>[^\]]+)\]|(?<name>[^:[\]/@\s]+))(?::(?<port>\d{1,5}))?$/.exec(text)?.groups;
  const port = Number(found?.["port"] ?? DEFAULT_PORT);
  const isHost = found?.["ipv6"] === undefined ? found?.["name"] : isIP(found["ipv6"]) === 6;
  if (!isHost || port < 1 || port > LARGEST_PORT) {
    throw new TypeError(`${text} is no target; write host:port, for example ${DEFAULT_TARGET}, or unix:///path`);
  }
  return { host: (found!["ipv6"] ?? found!["name"])!, port };
}

/** Whether a target is on this machine, by its name alone: what a resolver would say is not asked. */
export function isLocal(target: Target): boolean {
  if ("path" in target || target.host === "localhost" || target.host === "::1") return true;
  return isIP(target.host) === 4 && target.host.startsWith("127.");
}

/** The target as people write it. */
export function nameOf(target: Target): string {
  return "path" in target ? `unix:${target.path}` : `${hostOf(target)}:${target.port}`;
}

/** The target's origin as HTTP/2 names it; a socket's is localhost. */
export function originOf(target: Target, isSecure: boolean): string {
  const authority = "path" in target ? "localhost" : `${hostOf(target)}:${target.port}`;
  return `${isSecure ? "https" : "http"}://${authority}`;
}

function hostOf(target: { readonly host: string }): string {
  return isIP(target.host) === 6 ? `[${target.host}]` : target.host;
}
