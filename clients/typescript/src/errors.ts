import { fromBinary, type DescMessage, type MessageShape } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Connection } from "./connection.js";
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from "./gen/google/rpc/error_details_pb.js";
import type { Status } from "./gen/google/rpc/status_pb.js";
import type { ErrorReason } from "./gen/hummock/v1/errors_pb.js";

/** By their numbers in gRPC, which Connect shares. */
const CODES = [
  "OK",
  "CANCELLED",
  "UNKNOWN",
  "INVALID_ARGUMENT",
  "DEADLINE_EXCEEDED",
  "NOT_FOUND",
  "ALREADY_EXISTS",
  "PERMISSION_DENIED",
  "RESOURCE_EXHAUSTED",
  "FAILED_PRECONDITION",
  "ABORTED",
  "OUT_OF_RANGE",
  "UNIMPLEMENTED",
  "INTERNAL",
  "UNAVAILABLE",
  "DATA_LOSS",
  "UNAUTHENTICATED",
] as const;

/** A gRPC status code by its name. */
export type StatusCode = Exclude<(typeof CODES)[number], "OK">;

/** Why a call failed: the contract's reasons, the code's name where the service gave none, or what a later one may say. */
export type Reason = Exclude<keyof typeof ErrorReason, "UNSPECIFIED"> | StatusCode | (string & {});

/** A field of the request, by its path, and the rule that it breaks. */
export interface FieldViolation {
  readonly field: string;
  readonly rule: string;
}

/** What an error tells. */
export interface ErrorFacts {
  readonly code: StatusCode;
  /** Stable, in upper case, for example "MEMORY_NOT_FOUND". */
  readonly reason: Reason;
  /** Every field of the request that is wrong, in order; empty when none is. */
  readonly fieldViolations: readonly FieldViolation[];
  /** The facts of the message by name. */
  readonly metadata: Readonly<Record<string, string>>;
  /** Milliseconds after which a repeat may succeed; undefined when the service did not say. */
  readonly retryAfterMs: number | undefined;
}

/** A call failed. `cause` has what it was made of. */
export class HummockError extends Error implements ErrorFacts {
  override readonly name = "HummockError";
  readonly code: StatusCode;
  readonly reason: Reason;
  readonly fieldViolations: readonly FieldViolation[];
  readonly metadata: Readonly<Record<string, string>>;
  readonly retryAfterMs: number | undefined;

  constructor(message: string, facts: ErrorFacts, options?: ErrorOptions) {
    super(message, options);
    this.code = facts.code;
    this.reason = facts.reason;
    this.fieldViolations = facts.fieldViolations;
    this.metadata = facts.metadata;
    this.retryAfterMs = facts.retryAfterMs;
  }
}

/** The error that tells what a status inside a reply tells, for example of a batch of LearnStream. */
export function statusError(status: Status): HummockError {
  const details = status.details.map(({ typeUrl, value }) => ({
    type: typeUrl.slice(typeUrl.lastIndexOf("/") + 1),
    value,
  }));
  return new HummockError(status.message, facts(status.code, details));
}

/**
 * The error that tells why a call failed.
 *
 * @param signal The caller's; without an abort of it a cancelled call is a lost connection.
 */
export function callError(error: unknown, connection: Connection, signal: AbortSignal | undefined): HummockError {
  if (error instanceof HummockError) return error;
  const failed = ConnectError.from(error, Code.Unknown);
  if (failed.metadata.has("grpc-status")) {
    return new HummockError(failed.rawMessage, facts(failed.code, wireDetails(failed)), { cause: error });
  }
  if (connection.isClosed) return cancelled("the client is closed", error);
  if (signal?.aborted) return cancelled("the call was cancelled", signal.reason);
  const code = isConnectionLost(failed) ? Code.Unavailable : failed.code;
  return new HummockError(locally(code, failed, connection.name), facts(code), { cause: error });
}

/** The error of a call that was given up on this side. */
export function cancelled(message: string, cause?: unknown): HummockError {
  return new HummockError(message, facts(Code.Canceled), { cause });
}

/** Whether the connection could not be made or broke, rather than that somebody answered. */
function isConnectionLost(failed: ConnectError): boolean {
  return failed.code === Code.Canceled || failed.code === Code.Aborted || systemCode(failed) !== undefined;
}

/** What Node calls the failure, for example "ECONNREFUSED" or "CERT_HAS_EXPIRED". */
function systemCode(error: unknown): string | undefined {
  for (let at = error, depth = 0; at instanceof Error && depth < 8; at = at.cause, depth++) {
    if ("code" in at && typeof at.code === "string") return at.code;
  }
  return undefined;
}

function locally(code: Code, failed: ConnectError, target: string): string {
  if (code === Code.DeadlineExceeded) return `the service did not answer in time; target ${target}`;
  if (code !== Code.Unavailable) return failed.rawMessage;
  const why = systemCode(failed) ?? failed.rawMessage;
  return `the service cannot be reached: is \`hummock serve\` running? target ${target} (${why})`;
}

interface Detail {
  readonly type: string;
  readonly value: Uint8Array;
}

function wireDetails(failed: ConnectError): Detail[] {
  return failed.details.filter((detail): detail is Detail => "type" in detail);
}

function facts(code: number, details: readonly Detail[] = []): ErrorFacts {
  const known = CODES[code];
  const name = known === undefined || known === "OK" ? "UNKNOWN" : known;
  const info = find(ErrorInfoSchema, details);
  const delay = find(RetryInfoSchema, details)?.retryDelay;
  const violations = find(BadRequestSchema, details)?.fieldViolations ?? [];
  return {
    code: name,
    reason: info?.reason || name,
    fieldViolations: violations.map(({ field, description }) => ({ field, rule: description })),
    metadata: { ...info?.metadata },
    retryAfterMs: delay && Number(delay.seconds) * 1000 + delay.nanos / 1e6,
  };
}

/** The first detail of a type; undefined also where it cannot be read, for an error about an error tells less. */
function find<D extends DescMessage>(schema: D, details: readonly Detail[]): MessageShape<D> | undefined {
  const found = details.find(detail => detail.type === schema.typeName);
  try {
    return found && fromBinary(schema, found.value);
  } catch {
    return undefined;
  }
}
