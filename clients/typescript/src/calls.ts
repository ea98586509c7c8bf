import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import {
  type DescMessage,
  type DescMethod,
  type DescMethodBiDiStreaming,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  type DescService,
  type Message,
  type MessageInitShape,
  type MessageShape,
} from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import type { Connection } from "./connection.js";
import { callError, cancelled, HummockError } from "./errors.js";
import { messageOf } from "./requests.js";

const ATTEMPTS = 4;
const FIRST_BACKOFF_MS = 100;
const LONGEST_BACKOFF_MS = 1_000;

/** A longer one does not fit into gRPC's header; 27 hours. */
const LONGEST_TIMEOUT_MS = 99_999_999;

/** Milliseconds after which a call with one reply is given up, unless the call itself says otherwise. */
export interface Deadlines {
  /** Of calls that change nothing. Unset means 5000. */
  readMs?: number | undefined;
  /** Of all others. Unset means 30000. */
  writeMs?: number | undefined;
}

/** Of one call. */
export interface CallOptions {
  /** Milliseconds for the call with all its repeats, above 0. Unset means the client's deadline; none for streams. */
  timeoutMs?: number | undefined;
  /** Cancels the call. */
  signal?: AbortSignal | undefined;
}

/**
 * A service's calls. What comes in streams is read with `for await`; leaving the loop hangs up. All throw HummockError, and
 * TypeError where a request has a field of an unknown name.
 */
export type Calls<S extends DescService> = {
  readonly [Name in keyof S["method"]]: S["method"][Name] extends DescMethodUnary<infer I, infer O>
    ? (request: MessageInitShape<I>, options?: CallOptions) => Promise<MessageShape<O>>
    : S["method"][Name] extends DescMethodServerStreaming<infer I, infer O>
      ? (request: MessageInitShape<I>, options?: CallOptions) => AsyncGenerator<MessageShape<O>, void>
      : S["method"][Name] extends DescMethodBiDiStreaming<infer I, infer O>
        ? (requests: Messages<I>, options?: CallOptions) => AsyncGenerator<MessageShape<O>, void>
        : never;
};

/** What is sent in a stream. */
export type Messages<I extends DescMessage> = AsyncIterable<MessageInitShape<I>> | Iterable<MessageInitShape<I>>;

/** The calls of a service over a connection. */
export function callsOf<S extends DescService>(service: S, connection: Connection, deadlines: Deadlines): Calls<S> {
  const calls = service.methods.map(method => [method.localName, callOf(method, connection, deadlines)]);
  return Object.fromEntries(calls) as Calls<S>;
}

function callOf(method: DescMethod, connection: Connection, deadlines: Deadlines) {
  switch (method.methodKind) {
    case "unary":
      return unaryCall(method as DescMethodUnary, connection, deadlines);
    case "server_streaming":
      return streamedCall(method as DescMethodServerStreaming, connection);
    default:
      return exchangeCall(method as DescMethodBiDiStreaming, connection);
  }
}

function unaryCall(method: DescMethodUnary, connection: Connection, deadlines: Deadlines) {
  const defaultMs = isRead(method) ? (deadlines.readMs ?? 5_000) : (deadlines.writeMs ?? 30_000);
  return async (init: MessageInitShape<DescMessage>, options: CallOptions = {}) => {
    const message = withRequestId(method.input, init);
    const attempts = new Attempts(method, connection, options, defaultMs);
    for (;;) {
      try {
        const sent = await connection.transport.unary(method, options.signal, attempts.leftMs(), undefined, message);
        return sent.message;
      } catch (error) {
        await attempts.failed(callError(error, connection, options.signal));
      }
    }
  };
}

function streamedCall(method: DescMethodServerStreaming, connection: Connection) {
  return async function* (init: MessageInitShape<DescMessage>, options: CallOptions = {}) {
    const message = withRequestId(method.input, init);
    const attempts = new Attempts(method, connection, options);
    for (;;) {
      let hasBegun = false;
      try {
        for await (const reply of exchange(method, connection, one(message), options.signal, attempts.leftMs())) {
          hasBegun = true;
          yield reply;
        }
        return;
      } catch (error) {
        if (hasBegun) throw error;
        await attempts.failed(error);
      }
    }
  };
}

function exchangeCall(method: DescMethodBiDiStreaming, connection: Connection) {
  return async function* (requests: Messages<DescMessage>, options: CallOptions = {}) {
    const raised: unknown[] = [];
    try {
      const leftMs = new Attempts(method, connection, options).leftMs();
      yield* exchange(method, connection, noting(method.input, requests, raised), options.signal, leftMs);
    } catch (error) {
      throw raised.length ? raised[0] : error; // what the caller's own iterator has thrown
    }
  };
}

/** One attempt of a call with streams. It is cancelled when its reader goes, which Connect by itself does not do. */
async function* exchange(
  method: DescMethodServerStreaming | DescMethodBiDiStreaming,
  connection: Connection,
  requests: AsyncIterable<MessageInitShape<DescMessage>>,
  signal: AbortSignal | undefined,
  timeoutMs: number | undefined,
) {
  const gone = new AbortController();
  const hangUp = () => gone.abort(signal?.reason);
  signal?.addEventListener("abort", hangUp);
  if (signal?.aborted) hangUp();
  try {
    const replies = await connection.transport.stream(method, gone.signal, timeoutMs, undefined, requests);
    yield* { [Symbol.asyncIterator]: () => replies.message[Symbol.asyncIterator]() };
  } catch (error) {
    throw callError(error, connection, signal);
  } finally {
    signal?.removeEventListener("abort", hangUp);
    gone.abort();
  }
}

/** When to give up on a call: at its deadline, after four attempts, or at once where a repeat could do harm or no good. */
class Attempts {
  readonly #method: DescMethod;
  readonly #connection: Connection;
  readonly #signal: AbortSignal | undefined;
  readonly #endMs: number | undefined;
  #made = 0;

  /** @throws RangeError The timeout is none. */
  constructor(method: DescMethod, connection: Connection, { timeoutMs, signal }: CallOptions, defaultMs?: number) {
    const chosenMs = timeoutMs ?? defaultMs;
    if (chosenMs !== undefined && !(chosenMs > 0 && chosenMs <= LONGEST_TIMEOUT_MS)) {
      throw new RangeError(`timeoutMs is ${chosenMs}; it must be above 0 and at most ${LONGEST_TIMEOUT_MS}`);
    }
    this.#method = method;
    this.#connection = connection;
    this.#signal = signal;
    this.#endMs = chosenMs === undefined ? undefined : performance.now() + chosenMs;
  }

  /**
   * Whole milliseconds for the next attempt: the service cannot read fractions. At least 1; undefined means no end.
   *
   * @throws HummockError The client was closed.
   */
  leftMs(): number | undefined {
    if (this.#connection.isClosed) throw cancelled("the client is closed");
    return this.#endMs === undefined ? undefined : Math.max(1, Math.ceil(this.#endMs - performance.now()));
  }

  /** Waits before the next attempt; throws the error where there is none. */
  async failed(error: unknown): Promise<void> {
    this.#made += 1;
    const isWorthIt = error instanceof HummockError && error.code === "UNAVAILABLE" && isRepeatable(this.#method);
    const backoffMs =
      Math.min(FIRST_BACKOFF_MS * 2 ** (this.#made - 1), LONGEST_BACKOFF_MS) * (0.8 + 0.4 * Math.random());
    if (!isWorthIt || this.#made === ATTEMPTS || backoffMs >= (this.leftMs() ?? Infinity)) throw error;
    await sleep(backoffMs, undefined, { signal: this.#signal }).catch(() => {
      throw cancelled("the call was cancelled", this.#signal?.reason);
    });
  }
}

function isRead(method: DescMethod): boolean {
  return method.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;
}

/** By contract a request with the same request_id counts once, however often it comes. */
function isRepeatable(method: DescMethod): boolean {
  return isRead(method) || (method.methodKind !== "bidi_streaming" && method.input.field["requestId"] !== undefined);
}

/** The message; of a write without a request_id a copy that has one, so that the caller can send the same again as new. */
function withRequestId(schema: DescMessage, init: MessageInitShape<DescMessage>): Message {
  const message: Message & { requestId?: string } = messageOf(schema, init);
  if (schema.field["requestId"] === undefined || message.requestId) return message;
  const numbered: typeof message = { ...message, requestId: randomUUID() };
  return numbered;
}

async function* one<T>(message: T) {
  yield message;
}

/** The messages; what their iterator throws is noted. What Connect throws into them when a call fails stays outside. */
function noting(schema: DescMessage, messages: Messages<DescMessage>, raised: unknown[]): AsyncIterable<Message> {
  const from = Symbol.asyncIterator in messages ? messages[Symbol.asyncIterator]() : messages[Symbol.iterator]();
  const next = async (): Promise<IteratorResult<Message>> => {
    try {
      const { done, value } = await from.next();
      return done ? { done, value: undefined } : { done: false, value: messageOf(schema, value) };
    } catch (error) {
      raised.push(error);
      throw error;
    }
  };
  const leave = async (): Promise<IteratorResult<Message>> => {
    await from.return?.();
    return { done: true, value: undefined };
  };
  const fail = async (error: unknown): Promise<never> => {
    await leave();
    throw error;
  };
  return { [Symbol.asyncIterator]: () => ({ next, return: leave, throw: fail }) };
}
