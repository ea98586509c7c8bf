import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  type ChatMessage,
  ContextService,
  HummockClient,
  HummockError,
  PromptTarget,
  RenderForm,
  type RenderRequest,
  RenderResponseSchema,
} from "../src/index.js";
import { deferred, Service } from "./service.js";

const ASKED: ChatMessage[] = [
  { role: "system", content: "You are patient." },
  { role: "user", content: "first" },
  { role: "assistant", content: "yes?" },
  { role: "user", content: "还款日是哪天？" },
];
const REPLY = { text: "section", messages: [{ content: "You are patient.\n---\nsection" }] };

/** What became of messages, and what was asked for. */
async function remembered(messages: ChatMessage[], reply: MessageInitShape<typeof RenderResponseSchema>) {
  const asked: RenderRequest[] = [];
  await using service = await Service.start(router => {
    router.service(ContextService, {
      render(request) {
        asked.push(request);
        return reply;
      },
    });
  });
  using client = service.client();
  const got = await client.withMemory(messages, { project: "p", budgetMs: 30_000, onError: assert.ifError });
  return { got, asked };
}

test("the first system message becomes the finished prompt", async () => {
  const before = structuredClone(ASKED);
  const { got, asked } = await remembered(ASKED, REPLY);
  assert.deepEqual(got, [{ role: "system", content: REPLY.messages[0]!.content }, ...ASKED.slice(1)]);
  assert.deepEqual(ASKED, before);
  const [request] = asked;
  assert.equal(request?.source.case === "recall" && request.source.value.queryText, "还款日是哪天？");
  assert.deepEqual(request?.original, { case: "prompt", value: "You are patient." });
  assert.deepEqual([request?.form, request?.target], [RenderForm.MEMORIES, PromptTarget.SYSTEM]);
  assert.ok(request?.allowMissing);
});

test("without a system message there is a new one in front", async () => {
  const messages = ASKED.slice(1);
  const { got } = await remembered(messages, REPLY);
  assert.deepEqual(got, [{ role: "system", content: REPLY.messages[0]!.content }, ...messages]);
});

test("where nothing was recalled the very same messages come back", async () => {
  const { got } = await remembered(ASKED, { text: "", messages: [{ content: "You are patient." }] });
  assert.equal(got, ASKED);
});

test("without a question nothing is asked", async () => {
  for (const messages of [[], ASKED.slice(0, 1), [{ role: "user", content: " " }], [{ role: "user" }]]) {
    const { got, asked } = await remembered(messages, REPLY);
    assert.equal(got, messages);
    assert.deepEqual(asked, []);
  }
});

test("parts of a message count where they have a text", async () => {
  const content = [
    { type: "image", source: {} },
    { type: "text", text: "what" },
    { type: "text", text: "is it?" },
  ];
  const { asked } = await remembered([{ role: "user", content }], REPLY);
  assert.equal(asked[0]?.source.case === "recall" && asked[0].source.value.queryText, "what\nis it?");
});

test("of a long message the end is asked for, and no half of a character", async () => {
  const { asked } = await remembered([{ role: "user", content: `x${"🌊".repeat(4096)}y` }], REPLY);
  const query = asked[0]?.source.case === "recall" ? asked[0].source.value.queryText : "";
  assert.equal(query, `${"🌊".repeat(4095)}y`);
});

test("warming up asks once, and fails for nobody", async () => {
  const asked = deferred<string>();
  await using service = await Service.start(router => {
    router.service(ContextService, {
      render({ project }) {
        asked.resolve(project);
        throw new Error("on purpose");
      },
    });
  });
  using client = service.client();
  client.warmUp("p");
  assert.equal(await asked.promise, "p");
});

test("a service that is slow costs the budget and no more", async () => {
  await using service = await Service.start(router => {
    router.service(ContextService, {
      async render(_, { signal }) {
        await once(signal, "abort"); // it never answers
        return {};
      },
    });
  });
  using client = service.client();
  const errors: unknown[] = [];
  assert.equal(
    await client.withMemory(ASKED, { project: "p", budgetMs: 20, onError: error => errors.push(error) }),
    ASKED,
  );
  assert.ok(errors[0] instanceof HummockError);
  assert.equal(errors[0].code, "DEADLINE_EXCEEDED");
});

test("a service that is away, a closed client and a senseless budget change nothing", async () => {
  const codes: unknown[] = [];
  const onError = (error: unknown) => codes.push(error instanceof HummockError ? error.code : (error as Error).name);
  const client = new HummockClient({ target: "unix:///nonexistent/hummock.sock" });
  assert.equal(await client.withMemory(ASKED, { project: "p", onError }), ASKED);
  assert.equal(await client.withMemory(ASKED, { project: "p", budgetMs: -1, onError }), ASKED);
  client.close();
  assert.equal(await client.withMemory(ASKED, { project: "p", onError }), ASKED);
  assert.deepEqual(codes, ["UNAVAILABLE", "RangeError", "CANCELLED"]);
});
