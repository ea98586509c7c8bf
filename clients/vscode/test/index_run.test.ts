import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { IndexRun, type IndexState, stateOfBatch, stateOfLine } from "../src/index_run.js";
import { serveOptions } from "../src/serving.js";

const HOME = mkdtempSync(join(tmpdir(), "hummock-index-"));
after(() => rmSync(HOME, { recursive: true, force: true }));

const LINES: readonly [string, IndexState | undefined][] = [
  ["reading files: 340", { phase: "working", stage: "reading files", done: 340, total: undefined }],
  [
    "sending memories: 120/900, 45/s, 17 s left",
    { phase: "working", stage: "sending memories", done: 120, total: 900 },
  ],
  ["following /w/shop; Ctrl-C ends it", undefined],
  ["left out: sending memories: 3", undefined],
];

for (const [line, state] of LINES) {
  test(`the progress that "${line}" tells`, () => assert.deepEqual(stateOfLine(line), state));
}

const BATCHES: readonly [string, IndexState | undefined][] = [
  ['{"files_changed": 2, "sent": 5, "deleted": 1}', { phase: "following", sent: 5, deleted: 1 }],
  ['{"sent": "5"}', undefined],
  ["null", undefined],
  ["no JSON", undefined],
];

for (const [line, state] of BATCHES) {
  test(`the batch that ${line} tells`, () => assert.deepEqual(stateOfBatch(line), state));
}

/** A command of a test's own in place of `hummock`. */
function command(name: string, source: string): string {
  const path = join(HOME, name);
  writeFileSync(path, `#!${process.execPath}\n${source}`);
  chmodSync(path, 0o755);
  return path;
}

/** Runs a command until it ends, or says the state after which it is stopped. */
async function run(path: string, stopAfter?: IndexState["phase"]): Promise<{ states: IndexState[]; lines: string[] }> {
  const states: IndexState[] = [];
  const lines: string[] = [];
  await new Promise<void>(resolve => {
    const options = { command: path, folder: HOME, project: "-p", target: "127.0.0.1:1", environment: process.env };
    const running: IndexRun = new IndexRun(
      options,
      state => {
        states.push(state);
        if (state.phase === stopAfter) void running.stop();
        if (["ended", "failed", "missing"].includes(state.phase)) resolve();
      },
      line => lines.push(line),
    );
  });
  return { states, lines };
}

test("a run tells its progress and ends when it is stopped", async () => {
  const source = `
    console.error("reading files: 1");
    console.log(JSON.stringify({ sent: 1, deleted: 0, told: process.argv.slice(2) }));
    process.on("SIGINT", () => process.exit(0));
    setInterval(() => {}, 1000);`;
  const { states } = await run(command("follows", source), "following");
  assert.deepEqual(states.at(-1), { phase: "ended" });
  assert.ok(states.some(({ phase }) => phase === "following"));
});

test("the folder and the project are no options, whatever they are called", async () => {
  const { lines } = await run(command("tells", "console.error(JSON.stringify(process.argv.slice(2)))"));
  const expected = ["index", "--watch", "--json", "--project=-p", "--target=127.0.0.1:1", "--", HOME];
  assert.deepEqual(JSON.parse(lines[0]!), expected);
});

test("a run that fails tells the last line that it said", async () => {
  const { states } = await run(command("fails", 'console.error("error: no such folder"); process.exit(1)'));
  assert.deepEqual(states, [{ phase: "failed", why: "no such folder" }]);
});

test("a command that is not installed is said to be missing", async () => {
  const { states } = await run(join(HOME, "nothing"));
  assert.deepEqual(states, [{ phase: "missing", command: join(HOME, "nothing") }]);
});

const TARGETS: readonly [string, string[] | undefined][] = [
  ["127.0.0.1:7420", ["--host", "127.0.0.1", "--port", "7420"]],
  ["localhost", ["--host", "127.0.0.1", "--port", "7420"]],
  ["[::1]:7", ["--host", "::1", "--port", "7"]],
  ["unix:///run/h.sock", ["--unix-socket", "/run/h.sock"]],
  ["unix:/run/h.sock", ["--unix-socket", "/run/h.sock"]],
  ["memory.example:7420", undefined],
  ["127.0.0.1.example", undefined],
];

for (const [target, options] of TARGETS) {
  test(`${target} is ${options ? "served here" : "not of this machine"}`, () => {
    assert.deepEqual(serveOptions(target), options);
  });
}
