// Every case of tests/conformance through this client, a line of JSON each.
import { randomUUID } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createRegistry, type DescMethod, type DescService, fromJson, type Message, toJson } from "@bufbuild/protobuf";
import { file_google_rpc_error_details } from "../src/gen/google/rpc/error_details_pb.js";
import {
  AdminService,
  type CallOptions,
  ContextService,
  HummockClient,
  HummockError,
  LearningService,
  MemoryFilterSchema,
  MemoryService,
  ProjectService,
  SessionService,
} from "../src/index.js";
import { type Json, Matcher } from "./matching.js";

const REGISTRY = createRegistry(file_google_rpc_error_details);
const SERVICES: Readonly<Record<string, readonly [keyof HummockClient, DescService]>> = {
  [ContextService.typeName]: ["context", ContextService],
  [MemoryService.typeName]: ["memories", MemoryService],
  [SessionService.typeName]: ["sessions", SessionService],
  [ProjectService.typeName]: ["projects", ProjectService],
  [LearningService.typeName]: ["learning", LearningService],
  [AdminService.typeName]: ["admin", AdminService],
};

type Call = (request: unknown, options: CallOptions) => Promise<Message> & AsyncIterable<Message>;

async function main(): Promise<void> {
  const told = JSON.parse(readFileSync(process.env["HUMMOCK_CONFORMANCE"]!, "utf8"));
  const matcher = new Matcher(join(told.cases, "..", "golden"));
  const files = readdirSync(told.cases).filter(name => name.endsWith(".json"));
  for (const file of files.sort()) {
    for (const one of JSON.parse(readFileSync(join(told.cases, file), "utf8"))) {
      const detail = await failure(one, told, matcher);
      console.log(JSON.stringify({ case: one.name, ok: !detail, detail }));
    }
  }
}

/** Why a case failed; empty where it passed. */
async function failure(one: Json, told: Json, matcher: Matcher): Promise<string> {
  const saved = new Map([["project", `conformance-${randomUUID()}`]]);
  using client = clientOf(one, told);
  for (const [at, step] of one.steps.entries()) {
    const startedMs = performance.now();
    try {
      const why = await outcome(client, step, saved, matcher);
      if (why) return `step ${at + 1}: ${why}`;
    } catch (error) {
      return `step ${at + 1}: ${error}`;
    }
    const tookMs = performance.now() - startedMs;
    if (tookMs > (step.within_ms ?? Infinity)) {
      return `step ${at + 1}: took ${tookMs.toFixed()} ms; at most ${step.within_ms} were expected`;
    }
  }
  return "";
}

function outcome(client: HummockClient, step: Json, saved: Map<string, string>, matcher: Matcher) {
  if ("with_memory" in step) return remembers(client, step, saved, matcher);
  if ("delete_where" in step) return deletes(client, step, saved);
  return run(client, step, saved, matcher);
}

function clientOf(one: Json, told: Json): HummockClient {
  const { token, tls, deadline_ms: deadlineMs } = one.client ?? {};
  return new HummockClient({
    target: told.targets[one.server ?? "main"],
    token: token === "good" ? told.token : token,
    tls: tls && { ca: readFileSync(told.ca) },
    deadlines: deadlineMs && { readMs: deadlineMs, writeMs: deadlineMs },
  });
}

async function run(client: HummockClient, step: Json, saved: Map<string, string>, matcher: Matcher) {
  let got: Json;
  try {
    got = await answer(client, step, saved);
  } catch (error) {
    if (!step.error || !(error instanceof HummockError)) throw error;
    const why = matcher.mismatch(filled(step.error, saved), toldBy(error));
    return why && `${why}; the message: ${error.message}`;
  }
  if (step.error) return `it went well, and should have failed with ${JSON.stringify(step.error)}`;
  const why = matcher.mismatch(filled(step.replies ?? step.reply ?? {}, saved), got);
  for (const [name, pointer] of Object.entries(step.save ?? {})) saved.set(name, at(got, pointer as string));
  return why;
}

/** The reply as JSON, or all replies of a stream. */
async function answer(client: HummockClient, step: Json, saved: Map<string, string>): Promise<Json> {
  const [serviceName, methodName] = step.call.split("/");
  const [member, service] = SERVICES[serviceName]!;
  const method = service.methods.find(({ name }) => name === methodName)!;
  const call = (client[member] as unknown as Record<string, Call>)[method.localName]!;
  const messages = (step.requests ?? [step.request ?? {}]).map((request: Json) => message(method, request, saved));
  const options = { timeoutMs: step.deadline_ms, signal: cancelling(step) };
  if (method.methodKind === "unary") return json(method, await call(messages[0], options));
  const replies: Json[] = [];
  const isEnough = () => step.then === "cancel" && replies.length === step.replies.length;
  for await (const reply of call(method.methodKind === "server_streaming" ? messages[0] : messages, options)) {
    replies.push(json(method, reply));
    if (step.meanwhile && replies.length === 1) await answer(client, step.meanwhile, saved);
    if (isEnough()) break;
  }
  return replies;
}

function cancelling(step: Json): AbortSignal | undefined {
  if (step.cancel_after_ms === undefined) return undefined;
  const controller = new AbortController();
  setTimeout(() => controller.abort(), step.cancel_after_ms);
  return controller.signal;
}

async function remembers(client: HummockClient, step: Json, saved: Map<string, string>, matcher: Matcher) {
  const { messages, project, budget_ms: budgetMs } = filled(step.with_memory, saved);
  const got = await client.withMemory(messages, { project, budgetMs });
  if (step.unchanged) return got === messages ? "" : `other messages came back: ${JSON.stringify(got)}`;
  return matcher.mismatch(filled(step.messages, saved), got);
}

async function deletes(client: HummockClient, step: Json, saved: Map<string, string>) {
  const { project, filter } = filled(step.delete_where, saved);
  const removed = await client.deleteWhere(project, fromJson(MemoryFilterSchema, filter));
  return removed === step.removed ? "" : `expected ${step.removed} to be removed, got ${removed}`;
}

function toldBy(error: HummockError): Json {
  return {
    code: error.code,
    reason: error.reason,
    message: error.message,
    fields: error.fieldViolations.map(({ field }) => field),
    metadata: error.metadata,
    retry_after: error.retryAfterMs !== undefined,
  };
}

function message(method: DescMethod, request: Json, saved: Map<string, string>): Message {
  return fromJson(method.input, filled(request, saved), { registry: REGISTRY });
}

function json(method: DescMethod, reply: Message): Json {
  return toJson(method.output, reply, { registry: REGISTRY });
}

/** The value with what was saved in place of `${name}`, and long strings written out. */
function filled(value: Json, saved: Map<string, string>): Json {
  if (typeof value === "string") return value.replace(/\$\{(\w+)\}/g, (_, name) => saved.get(name)!);
  if (Array.isArray(value)) return value.map(each => filled(each, saved));
  if (typeof value !== "object" || value === null) return value;
  if ("$repeat" in value) return value.$repeat[0].repeat(value.$repeat[1]);
  if ("$each" in value) {
    const [times, one] = value.$each;
    return Array.from({ length: times }, (_, at) => filled(one, new Map([...saved, ["n", String(at + 1)]])));
  }
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, filled(each, saved)]));
}

/** What a JSON pointer points to; a number as a string. */
function at(value: Json, pointer: string): string {
  for (const part of pointer.split("/").slice(1)) value = value?.[part];
  return String(value);
}

await main();
