import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { create, type HummockClient, HummockError, MemoryKind, WatchMemoriesResponseSchema } from "hummock";
import { follow } from "../src/watching.js";

const START = create(WatchMemoriesResponseSchema, { seq: 7n, news: { case: "start", value: {} } });

function failure(code: "UNAVAILABLE" | "UNAUTHENTICATED"): HummockError {
  const facts = { code, reason: code, fieldViolations: [], metadata: {}, retryAfterMs: undefined };
  return new HummockError(code.toLowerCase(), facts);
}

function events(...kinds: (MemoryKind | undefined)[]) {
  const told = kinds.map(kind => (kind === undefined ? { id: "m" } : { id: "m", memory: { kind } }));
  return create(WatchMemoriesResponseSchema, { seq: 9n, news: { case: "events", value: { events: told } } });
}

/** Follows a service whose watches give these messages, or fail, one after the other; then the follower is ended. */
async function followed(...watches: (HummockError | object[])[]) {
  const end = new AbortController();
  const told: string[] = [];
  const asked: (bigint | undefined)[] = [];
  async function* watchMemories({ afterSeq }: { afterSeq?: bigint }) {
    asked.push(afterSeq);
    const watch = watches.shift();
    if (watch instanceof HummockError) throw watch;
    if (!watch) return end.abort();
    yield* watch;
  }
  const client = { watchMemories } as unknown as HummockClient;
  const onChange = (records: boolean) => told.push(records ? "records" : "change");
  const onReach = (error: Error | undefined) => told.push(error ? error.message : "there");
  mock.timers.enable({ apis: ["setTimeout"] });
  const following = follow(client, "shop", { onChange, onReach }, end.signal);
  const isOver = following.then(() => true);
  while (!(await Promise.race([isOver, new Promise(resolve => setImmediate(resolve, false))])))
    mock.timers.tick(10_000);
  mock.timers.reset();
  return { told, asked };
}

test("a watch that breaks goes on behind the last seq, once the service answers again", async () => {
  const { told, asked } = await followed([START, events(MemoryKind.NOTE)], failure("UNAVAILABLE"), [START]);
  assert.deepEqual(told, ["there", "change", "unavailable", "there"]);
  assert.deepEqual(asked, [undefined, 9n, 9n, 7n]);
});

test("a token that is refused is told once: only another one helps", async () => {
  const { told, asked } = await followed(failure("UNAUTHENTICATED"), [START]);
  assert.deepEqual([told, asked.length], [["unauthenticated"], 1]);
});

for (const [what, kind, expected] of [
  ["a note", MemoryKind.NOTE, "change"],
  ["a learning record", MemoryKind.LEARNING_RECORD, "records"],
  ["a domain", MemoryKind.DOMAIN_KNOWLEDGE, "records"],
  ["a removed memory", undefined, "records"],
] as const) {
  test(`${what} that changes is told as a change of ${expected}`, async () => {
    assert.deepEqual((await followed([START, events(kind)])).told, ["there", expected]);
  });
}

test("a gap is a change of everything", async () => {
  const gap = create(WatchMemoriesResponseSchema, { seq: 8n, news: { case: "reset", value: {} } });
  assert.deepEqual((await followed([START, gap, events()])).told, ["there", "records"]);
});
