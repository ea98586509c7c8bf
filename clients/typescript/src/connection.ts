import * as net from "node:net";
import * as tls from "node:tls";
import type { Interceptor, Transport } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { isLocal, nameOf, originOf, resolveTarget, type Target } from "./target.js";

const LARGEST_REPLY_BYTES = 16 * 1024 * 1024;

/** The service refuses pings that come more often than every ten seconds. */
const PING_INTERVAL_MS = 60_000;
const PING_TIMEOUT_MS = 4_000;

/** As long as gRPC's other clients try. */
const CONNECT_TIMEOUT_MS = 20_000;

/** How a service is reached. */
export interface ConnectionOptions {
  /** `host`, `host:port`, `unix:///path`. Unset means HUMMOCK_TARGET of the environment, else 127.0.0.1:7420. */
  target?: string | undefined;
  /** Sent as a bearer token. Unset means HUMMOCK_TOKEN of the environment; empty means none at all. */
  token?: string | undefined;
  /** Whether to speak TLS; `ca` names the authorities to trust in place of Node's own, as PEM. Unset means plaintext. */
  tls?: boolean | { ca: string | Uint8Array } | undefined;
}

/** One HTTP/2 connection, which is opened at once, and again when it is needed. An idle one keeps no process alive. */
export class Connection {
  /** Makes calls. @internal since Connect's own types want those of a browser. */
  readonly transport: Transport;
  /** What it leads to, for people. */
  readonly name: string;
  readonly #sessions: Http2SessionManager;
  #socket: net.Socket | undefined;
  #isClosed = false;

  /** @throws TypeError The target is none, or the token cannot be sent, or would be sent in the clear to another machine. */
  constructor(options: ConnectionOptions) {
    const target = resolveTarget(options.target);
    const token = options.token ?? process.env["HUMMOCK_TOKEN"] ?? "";
    const isSecure = Boolean(options.tls);
    checkToken(token, target, isSecure);
    const open = opener(target, options.tls || false);
    this.name = nameOf(target);
    const baseUrl = originOf(target, isSecure);
    const pings = { pingIntervalMs: PING_INTERVAL_MS, pingTimeoutMs: PING_TIMEOUT_MS };
    this.#sessions = new Http2SessionManager(baseUrl, pings, {
      createConnection: () => (this.#socket = inTime(open())),
    });
    this.transport = createGrpcTransport({
      baseUrl,
      sessionManager: this.#sessions,
      readMaxBytes: LARGEST_REPLY_BYTES,
      interceptors: token ? [bearing(token)] : [],
    });
    void this.#sessions.connect(); // never rejects: a call tells what is wrong
  }

  /** Whether it was closed: then no call is begun. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Ends the connection for good, and what is under way on it. */
  close(): void {
    this.#isClosed = true;
    // The socket goes first: else the service is sent a GOAWAY with an error, and writes it to its log.
    this.#socket?.destroy();
    this.#sessions.abort();
  }
}

function checkToken(token: string, target: Target, isSecure: boolean): void {
  if (/[^!-~]/.test(token)) {
    throw new TypeError("the token has characters that no token has: white space, or others than ASCII");
  }
  if (token && !isSecure && !isLocal(target)) {
    throw new TypeError(
      `a token is not sent to ${nameOf(target)} in the clear; ask for TLS (tls: true or tls: { ca })`,
    );
  }
}

/** Opens a socket to the target, over which HTTP/2 can begin. */
function opener(target: Target, asked: boolean | { ca: string | Uint8Array }): () => net.Socket {
  if ("path" in target) {
    if (asked) throw new TypeError("TLS is not spoken over a Unix socket");
    return () => net.connect(target.path);
  }
  const { host, port } = target;
  if (!asked) return () => net.connect(port, host);
  const authorities = asked === true ? {} : { ca: typeof asked.ca === "string" ? asked.ca : Buffer.from(asked.ca) };
  // Addresses are no names to ask for; a certificate is checked for them all the same.
  const name = net.isIP(host) ? {} : { servername: host };
  return () => tls.connect({ host, port, ALPNProtocols: ["h2"], ...authorities, ...name });
}

/** The socket, which is given up when it is not ready in time: behind it nobody may answer for ever. */
function inTime(socket: net.Socket): net.Socket {
  const timer = setTimeout(() => {
    socket.destroy(Object.assign(new Error("no connection was made in time"), { code: "ETIMEDOUT" }));
  }, CONNECT_TIMEOUT_MS);
  const isReady = socket instanceof tls.TLSSocket ? "secureConnect" : "connect";
  for (const event of [isReady, "close"]) socket.once(event, () => clearTimeout(timer));
  return socket;
}

function bearing(token: string): Interceptor {
  return next => request => {
    request.header.set("authorization", `Bearer ${token}`);
    return next(request);
  };
}
