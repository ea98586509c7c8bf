import assert from "node:assert/strict";
import { test } from "node:test";
import { ContextService, create, HummockClient, RecallRequestSchema } from "../src/index.js";
import { Service } from "./service.js";

/** What plain JavaScript may send, where no compiler looks. */
const REFUSED: readonly [string, (client: HummockClient) => Promise<unknown>, string][] = [
  [
    "as the contract writes it",
    c => c.recall(any({ query_text: "?" })),
    "query_text is no field of RecallRequest; write queryText",
  ],
  [
    "of nothing",
    c => c.context.learn(any({ projekt: "p" })),
    "projekt is no field of LearnRequest; its fields are project, ",
  ],
  ["inside", c => c.recall(any({ tuning: { top_k: 3 } })), "tuning.top_k is no field of RecallTuning; write topK"],
  [
    "in a list",
    c => c.context.learn(any({ memories: [{}, { text_: "?" }] })),
    "memories[1].text_ is no field of Memory; ",
  ],
  [
    "of a oneof",
    c => c.render(any({ recall: {} })),
    'recall is no field of RenderRequest; write source: { case: "recall", value }',
  ],
  [
    "in a oneof",
    c => c.render(any({ source: { case: "recall", value: { query: "?" } } })),
    "source.value.query is no field of RecallRequest; ",
  ],
  [
    "of a case",
    c => c.render(any({ source: { case: "text", value: "?" } })),
    'source.case is "text"; it is one of "recall", "memories"',
  ],
  ["of a turn", c => c.renderTurn(any({ render: { budget: 3 } })), "budget is no field of RenderRequest; "],
];

for (const [place, call, message] of REFUSED) {
  test(`a field of an unknown name ${place} is refused by its name`, async () => {
    using client = new HummockClient({ target: "127.0.0.1:1" });
    await assert.rejects(
      async () => call(client),
      (error: unknown) => error instanceof TypeError && error.message.startsWith(message),
    );
  });
}

test("a field of an unknown name in a stream ends it by its name", async () => {
  await using service = await Service.start(router => {
    router.service(ContextService, {
      async *learnStream(requests) {
        for await (const _ of requests) yield {};
      },
    });
  });
  using client = service.client();
  await assert.rejects(client.context.learnStream([any({ learn_: {} })]).next(), {
    name: "TypeError",
    message: /^learn_ is no field of LearnStreamRequest; /,
  });
});

test("fields of their own names, maps and messages pass", async () => {
  using client = new HummockClient({ target: "127.0.0.1:1" });
  const filter = { metadata: { run: "12" } };
  const unreachable = { code: "UNAVAILABLE" };
  await assert.rejects(client.recall({ project: "p", queryText: "?", filter }), unreachable);
  const request = create(RecallRequestSchema, { project: "p", queryText: "?" });
  await assert.rejects(client.context.recall(request), unreachable);
});

function any(request: unknown): never {
  return request as never;
}
