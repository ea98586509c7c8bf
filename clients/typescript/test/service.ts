import { once } from "node:events";
import { createServer, type Http2Server, type ServerHttp2Session } from "node:http2";
import type { AddressInfo } from "node:net";
import type { ConnectRouter } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { type ClientOptions, HummockClient } from "../src/index.js";

/** A busy machine may take as long for what is no test of a deadline. */
const PATIENCE_MS = 120_000;

/** A gRPC service of a test's own on a free port of loopback. It goes wrong in ways in which the real one does not on demand. */
export class Service {
  readonly #server: Http2Server;
  readonly #sessions = new Set<ServerHttp2Session>();

  private constructor(server: Http2Server) {
    this.#server = server;
    server.on("session", session => this.#sessions.add(session));
  }

  static async start(routes: (router: ConnectRouter) => void): Promise<Service> {
    const service = new Service(createServer(connectNodeAdapter({ routes })));
    service.#server.listen(0, "127.0.0.1");
    await once(service.#server, "listening");
    return service;
  }

  get target(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** A client of this service, which waits long. */
  client(options: ClientOptions = {}): HummockClient {
    return new HummockClient({
      target: this.target,
      deadlines: { readMs: PATIENCE_MS, writeMs: PATIENCE_MS },
      ...options,
    });
  }

  /** Breaks all connections, as the end of a process does. */
  breakOff(): void {
    for (const session of this.#sessions) session.destroy();
    this.#sessions.clear();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.breakOff();
    this.#server.close();
    await once(this.#server, "close");
  }
}

/** A promise that the test settles itself. */
export function deferred<T>(): { promise: Promise<T>; resolve: (value: T) => void } {
  let resolve!: (value: T) => void;
  const promise = new Promise<T>(settle => (resolve = settle));
  return { promise, resolve };
}
