import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { afterEach, test } from "node:test";
import { AdminService, HummockClient } from "../src/index.js";
import { Service } from "./service.js";

afterEach(() => {
  delete process.env["HUMMOCK_TOKEN"];
});

/** The header of each call, as a service sees it. */
async function sent(options: { token?: string }): Promise<string | null> {
  const headers: (string | null)[] = [];
  await using service = await Service.start(router => {
    router.service(AdminService, {
      getStatus(_, context) {
        headers.push(context.requestHeader.get("authorization"));
        return {};
      },
    });
  });
  using client = service.client(options);
  await client.admin.getStatus({});
  assert.equal(headers.length, 1);
  return headers[0]!;
}

test("a token goes to this machine in the clear", async () => {
  assert.equal(await sent({ token: "secret" }), "Bearer secret");
});

test("the environment's token is sent unless the option says otherwise", async () => {
  process.env["HUMMOCK_TOKEN"] = "of-the-environment";
  assert.equal(await sent({}), "Bearer of-the-environment");
  assert.equal(await sent({ token: "of-the-option" }), "Bearer of-the-option");
  assert.equal(await sent({ token: "" }), null);
});

test("a token is never sent to another machine in the clear", () => {
  const target = "memory.example:7420";
  assert.throws(() => new HummockClient({ target, token: "secret" }), /in the clear/);
  process.env["HUMMOCK_TOKEN"] = "secret";
  assert.throws(() => new HummockClient({ target }), { name: "TypeError", message: /^(?!.*secret)/ });
});

test("what no header can hold is no token", () => {
  assert.throws(() => new HummockClient({ token: "two words" }), TypeError);
  assert.throws(() => new HummockClient({ token: "line\n" }), TypeError);
});

test("who never finishes a handshake is given up", async t => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  await using silent = createServer(() => t.mock.timers.tick(20_000)).listen(0, "127.0.0.1");
  await once(silent, "listening");
  const { port } = silent.address() as AddressInfo;
  using client = new HummockClient({ target: `127.0.0.1:${port}`, tls: true });
  const read = async () => {
    for await (const _ of client.context.learnStream([])) continue;
  };
  await assert.rejects(read(), { code: "UNAVAILABLE", message: /ETIMEDOUT/ });
});

test("TLS is not spoken over a Unix socket", () => {
  assert.throws(() => new HummockClient({ target: "unix:///run/h.sock", tls: true }), TypeError);
});
