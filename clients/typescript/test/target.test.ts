import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { isLocal, nameOf, originOf, resolveTarget } from "../src/target.js";

afterEach(() => {
  delete process.env["HUMMOCK_TARGET"];
});

for (const [text, name, origin] of [
  ["memory.example", "memory.example:7420", "http://memory.example:7420"],
  ["127.0.0.1:1", "127.0.0.1:1", "http://127.0.0.1:1"],
  ["[::1]", "[::1]:7420", "http://[::1]:7420"],
  ["[fe80::1]:65535", "[fe80::1]:65535", "http://[fe80::1]:65535"],
  ["unix:///run/hummock.sock", "unix:/run/hummock.sock", "http://localhost"],
  ["unix:hummock.sock", "unix:hummock.sock", "http://localhost"],
] as const) {
  test(`${text} is the target ${name}`, () => {
    const target = resolveTarget(text);
    assert.equal(nameOf(target), name);
    assert.equal(originOf(target, false), origin);
    assert.equal(originOf(target, true), origin.replace("http:", "https:"));
  });
}

for (const text of [
  "",
  ":7420",
  "host:",
  "host:0",
  "host:65536",
  "host:1a",
  "::1",
  "[host]",
  "unix:",
  "unix://",
  "a b",
  "http://a",
]) {
  test(`"${text}" is no target`, () => {
    assert.throws(() => resolveTarget(text), TypeError);
  });
}

test("without a target the environment names it, and without that it is loopback", () => {
  assert.equal(nameOf(resolveTarget()), "127.0.0.1:7420");
  process.env["HUMMOCK_TARGET"] = "";
  assert.equal(nameOf(resolveTarget()), "127.0.0.1:7420");
  process.env["HUMMOCK_TARGET"] = "memory.example:1";
  assert.equal(nameOf(resolveTarget()), "memory.example:1");
});

test("what is on this machine is told by its name", () => {
  const local = ["localhost", "127.0.0.1", "127.9.9.9:1", "[::1]:1", "unix:///run/h.sock"];
  const others = ["127.example", "127.0.0.1.example", "10.0.0.1", "0.0.0.0", "[::2]:1", "localhost.example"];
  assert.deepEqual(
    local.map(text => isLocal(resolveTarget(text))),
    local.map(() => true),
  );
  assert.deepEqual(
    others.map(text => isLocal(resolveTarget(text))),
    others.map(() => false),
  );
});
