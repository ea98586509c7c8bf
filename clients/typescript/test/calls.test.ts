import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { Code, ConnectError } from "@connectrpc/connect";
import { AdminService, ContextService, HummockClient, HummockError, MemoryService } from "../src/index.js";
import { deferred, Service } from "./service.js";

const down = () => new ConnectError("on purpose", Code.Unavailable);

test("a write gets a request_id, which its repeats share and no other write", async () => {
  const ids: string[] = [];
  await using service = await Service.start(router => {
    router.service(ContextService, {
      learn({ requestId }) {
        ids.push(requestId);
        if (ids.length < 3) throw down();
        return {};
      },
    });
  });
  using client = service.client();
  const request = { project: "p" };
  await client.context.learn(request);
  await client.context.learn(request);
  await client.context.learn({ project: "p", requestId: "its own" });
  await client.note("p", "a sentence", { requestId: "a note's own" });
  assert.match(ids[0]!, /^[0-9a-f-]{36}$/);
  assert.deepEqual(ids, [ids[0], ids[0], ids[0], ids[3], "its own", "a note's own"]);
  assert.notEqual(ids[3], ids[0]);
  assert.deepEqual(request, { project: "p" });
});

test("a read is tried four times, and then says why it failed", async () => {
  let calls = 0;
  await using service = await Service.start(router => {
    router.service(AdminService, {
      getStatus() {
        calls += 1;
        throw down();
      },
    });
  });
  using client = service.client();
  await assert.rejects(client.admin.getStatus({}), { code: "UNAVAILABLE", message: "on purpose" });
  assert.equal(calls, 4);
});

test("only what is UNAVAILABLE is repeated", async () => {
  let calls = 0;
  await using service = await Service.start(router => {
    router.service(AdminService, {
      getStatus() {
        calls += 1;
        throw new ConnectError("on purpose", Code.Internal);
      },
    });
  });
  using client = service.client();
  await assert.rejects(client.admin.getStatus({}), { code: "INTERNAL" });
  assert.equal(calls, 1);
});

test("a stream is repeated as long as nothing has come of it", async () => {
  let calls = 0;
  await using service = await Service.start(router => {
    router.service(MemoryService, {
      async *watchMemories() {
        calls += 1;
        if (calls === 1) throw down();
        yield { seq: 7n };
        throw down();
      },
    });
  });
  using client = service.client();
  const seqs: bigint[] = [];
  const read = async () => {
    for await (const { seq } of client.watchMemories({ project: "p" })) seqs.push(seq);
  };
  await assert.rejects(read(), { code: "UNAVAILABLE" });
  assert.deepEqual([calls, seqs], [2, [7n]]);
});

test("leaving the loop hangs up", async () => {
  const hungUp = deferred<void>();
  await using service = await Service.start(router => {
    router.service(MemoryService, {
      async *watchMemories(_, { signal }) {
        yield { seq: 1n };
        await once(signal, "abort");
        hungUp.resolve();
      },
    });
  });
  using client = service.client();
  for await (const { seq } of client.watchMemories({ project: "p" })) {
    assert.equal(seq, 1n);
    break;
  }
  await hungUp.promise;
});

test("a stream can be aborted", async () => {
  await using service = await Service.start(router => {
    router.service(MemoryService, {
      async *watchMemories(_, { signal }) {
        yield {};
        await once(signal, "abort");
      },
    });
  });
  using client = service.client();
  const [controller, reason] = [new AbortController(), new Error("the user left")];
  const read = async () => {
    for await (const _ of client.watchMemories({ project: "p" }, { signal: controller.signal }))
      controller.abort(reason);
  };
  await assert.rejects(read(), { code: "CANCELLED", cause: reason });
  await assert.rejects(read(), { code: "CANCELLED", cause: reason });
});

test("what the caller's own iterator throws comes out as it is", async () => {
  await using service = await Service.start(router => {
    router.service(ContextService, {
      async *learnStream(requests) {
        for await (const _ of requests) yield {};
      },
    });
  });
  using client = service.client();
  const mine = new Error("the file is broken");
  const read = async () => {
    for await (const _ of client.context.learnStream(broken(mine))) continue;
  };
  await assert.rejects(read(), error => error === mine);
});

async function* broken(error: Error) {
  yield { batch: { case: "learn" as const, value: { project: "p" } } };
  throw error;
}

test("a stream whose service fails tells why, whatever it was sent", async () => {
  await using service = await Service.start(router => {
    router.service(ContextService, {
      // eslint-disable-next-line require-yield
      async *learnStream() {
        throw new ConnectError("full", Code.ResourceExhausted);
      },
    });
  });
  using client = service.client();
  const read = async () => {
    for await (const _ of client.context.learnStream(endless())) continue;
  };
  await assert.rejects(read(), { name: "HummockError", code: "RESOURCE_EXHAUSTED", message: "full" });
});

async function* endless() {
  for (;;) yield { batch: { case: "learn" as const, value: { project: "p" } } };
}

test("a deadline travels in whole milliseconds", async () => {
  const timeouts: (string | null)[] = [];
  await using service = await Service.start(router => {
    router.service(AdminService, {
      getStatus(_, { requestHeader }) {
        timeouts.push(requestHeader.get("grpc-timeout"));
        return {};
      },
    });
  });
  using client = new HummockClient({ target: service.target, deadlines: { readMs: 9_000_000.7 } });
  await client.admin.getStatus({}, { timeoutMs: 8_000_000.25 });
  await client.admin.getStatus({});
  assert.match(timeouts[0]!, /^(8000001|8000000|79\d{5})m$/);
  assert.match(timeouts[1]!, /^(9000001|9000000|89\d{5})m$/);
});

for (const timeoutMs of [0, -1, NaN, 100_000_000]) {
  test(`${timeoutMs} ms are no deadline`, async () => {
    using client = new HummockClient({ target: "127.0.0.1:1" });
    await assert.rejects(client.admin.getStatus({}, { timeoutMs }), RangeError);
  });
}

test("an aborted call is CANCELLED, for the reason that its caller gave", async () => {
  await using service = await Service.start(router => {
    router.service(AdminService, {
      async getStatus(_, { signal }) {
        controller.abort(reason);
        await once(signal, "abort");
        return {};
      },
    });
  });
  const [controller, reason] = [new AbortController(), new Error("the user left")];
  using client = service.client();
  const { signal } = controller;
  await assert.rejects(client.admin.getStatus({}, { signal }), { code: "CANCELLED", cause: reason });
  await assert.rejects(client.admin.getStatus({}, { signal }), { code: "CANCELLED", cause: reason });
});

test("a call that waits for its repeat can be cancelled", async () => {
  const controller = new AbortController();
  await using service = await Service.start(router => {
    router.service(AdminService, {
      getStatus() {
        setImmediate(() => controller.abort());
        throw down();
      },
    });
  });
  using client = service.client();
  await assert.rejects(client.admin.getStatus({}, { signal: controller.signal }), { code: "CANCELLED" });
});

test("a connection that breaks is made again, and the call repeated", async () => {
  let calls = 0;
  await using service = await Service.start(router => {
    router.service(AdminService, {
      async getStatus(_, { signal }) {
        calls += 1;
        if (calls > 1) return { version: "second" };
        service.breakOff();
        await once(signal, "abort");
        return {};
      },
    });
  });
  using client = service.client();
  assert.equal((await client.admin.getStatus({})).version, "second");
});

test("a stream that breaks is UNAVAILABLE and says where the service should be", async () => {
  await using service = await Service.start(router => {
    router.service(MemoryService, {
      async *watchMemories(_, { signal }) {
        yield {};
        service.breakOff();
        await once(signal, "abort");
      },
    });
  });
  using client = service.client();
  const read = async () => {
    for await (const _ of client.watchMemories({ project: "p" })) continue;
  };
  await assert.rejects(read(), (error: HummockError) => {
    return error.reason === "UNAVAILABLE" && error.message.includes(service.target);
  });
});

test("closing ends what is under way, and whatever comes later", async () => {
  const begun = deferred<void>();
  await using service = await Service.start(router => {
    router.service(AdminService, {
      async getStatus(_, { signal }) {
        begun.resolve();
        await once(signal, "abort");
        return {};
      },
    });
  });
  const client = service.client();
  const call = assert.rejects(client.admin.getStatus({}), { code: "CANCELLED", message: "the client is closed" });
  await begun.promise;
  client.close();
  await call;
  await assert.rejects(client.admin.getStatus({}), { code: "CANCELLED", message: "the client is closed" });
});
