/** The bundle as it is packed, with a stand-in for the editor, against the service that HUMMOCK_TARGET names. */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, beforeEach, describe, test } from "node:test";
import { HummockClient, Origin } from "hummock";

const editor = require("vscode") as typeof import("./stand_in.js");
const { host, until, Uri, Range } = editor;
const extension = require(join(__dirname, "extension.js")) as typeof import("../src/extension.js");

const TARGET = process.env["HUMMOCK_TARGET"];
const NOBODY = "127.0.0.1:1";
const SOURCE = "export function parseDate(text: string): Date {\n  return new Date(text);\n}\n";

const root = realpathSync(mkdtempSync(join(tmpdir(), "hummock-extension-")));
// A project of this run's own: others may use the same service.
const project = `shop-${process.pid}`;
const folder = join(root, project);
const file = join(folder, "src/dates.ts");

/** The secrets of the editor. */
class Secrets {
  readonly #kept = new Map<string, string>();
  readonly #changes = new editor.EventEmitter<{ key: string }>();
  readonly onDidChange = this.#changes.event;

  async get(key: string): Promise<string | undefined> {
    return this.#kept.get(key);
  }

  async store(key: string, value: string): Promise<void> {
    this.#kept.set(key, value);
    this.#changes.fire({ key });
  }

  async delete(key: string): Promise<void> {
    this.#kept.delete(key);
    this.#changes.fire({ key });
  }
}

const secrets = new Secrets();
const subscriptions: { dispose(): void }[] = [];

before(() => {
  mkdirSync(join(folder, ".git"), { recursive: true });
  mkdirSync(join(folder, "src"));
  writeFileSync(file, SOURCE);
  editor.workspace.workspaceFolders = [{ uri: Uri.file(folder) }];
  host.settings = { target: TARGET ?? NOBODY, console: "http://127.0.0.1:7421/", command: "hummock" };
  extension.activate({ secrets, subscriptions, extensionUri: Uri.file(root) } as never);
});

after(async () => {
  await extension.deactivate();
  for (const each of subscriptions) each.dispose();
  rmSync(root, { recursive: true, force: true });
});

beforeEach(() => {
  host.messages = [];
  host.answers = [];
  host.lists = [];
  host.shown = [];
  host.choice = undefined;
});

function run(name: string, ...given: unknown[]): Promise<unknown> {
  return editor.commands.executeCommand(`hummock.${name}`, ...given);
}

/** Opens the source in the editor, with a selection of whole lines from 0. */
function open(startLine: number, endLine: number): void {
  const document = {
    uri: Uri.file(file),
    lineCount: SOURCE.split("\n").length,
    getText: ({ start, end }: InstanceType<typeof Range>) => SOURCE.split("\n").slice(start.line, end.line).join("\n"),
  };
  const setDecorations = (_: unknown, marks: { range: InstanceType<typeof Range> }[]) => (host.decorations = marks);
  editor.window.activeTextEditor = { document, selection: new Range(startLine, 0, endLine, 0), setDecorations };
  host.editors.fire(editor.window.activeTextEditor);
}

/** Changes a setting as a user does. */
function set(name: string, value: unknown): void {
  host.settings[name] = value;
  host.configurations.fire({ affectsConfiguration: () => true });
}

/** The list of the view as its titles and descriptions. */
function listed(): string[] {
  const tree = host.trees.get("hummock.fileMemories")!;
  return tree.getChildren().map(each => {
    const { label, description } = tree.getTreeItem(each) as { label: string; description?: string };
    return `${label} | ${description}`;
  });
}

test("every command of package.json is there", () => {
  const { contributes } = JSON.parse(readFileSync(join(__dirname, "../package.json"), "utf8"));
  for (const { command } of contributes.commands) assert.ok(host.commands.has(command), command);
});

test("the console is opened at the project", async () => {
  await run("openConsole");
  assert.deepEqual(host.opened, [`http://127.0.0.1:7421/ask?project=${project}`]);
});

describe("without a service", () => {
  before(() => set("target", NOBODY));

  test("it is said in the sentence of all clients, and a service is offered and started in a terminal", async () => {
    host.answers = ["which formats?"];
    host.settings["command"] = process.execPath; // any command that can be started
    host.choice = "Start hummock serve";
    await run("ask");
    const { text, choices } = host.messages.find(({ kind }) => kind === "error")!;
    assert.match(text, /^the service cannot be reached: is `hummock serve` running\? target 127\.0\.0\.1:1 \(/);
    assert.deepEqual(choices, ["Start hummock serve"]);
    const [terminal] = await until(() => host.terminals.length > 0 && host.terminals);
    const { shellPath, shellArgs } = terminal as { shellPath: string; shellArgs: string[] };
    assert.equal(shellPath, process.execPath);
    assert.deepEqual(shellArgs, ["serve", "--host", "127.0.0.1", "--port", "1"]);
  });

  test("the status bar and the empty view say so", async () => {
    await until(() => host.status?.text.includes("circle-slash"));
    assert.match(host.status!.tooltip, /is `hummock serve` running/);
    assert.equal(host.contexts.get("hummock.isAway"), true);
  });

  test("what to install is said where the command is missing", async () => {
    host.settings["command"] = join(root, "nothing");
    await run("startIndex");
    const { text } = await until(() => host.messages.find(({ kind }) => kind === "error"));
    assert.match(text, /nothing` is not on the PATH\. Install it with `pip install 'hummock\[server,code,convert\]'`/);
  });

  test("a target on another machine is not started here", async () => {
    set("target", "memory.example:7420");
    await run("startService");
    assert.match(host.messages.at(-1)!.text, /^memory\.example:7420 is on another machine/);
  });

  test("a token is kept as a secret, and not sent in the clear to another machine", async () => {
    host.answers = [" hmk-secret "];
    await run("setToken");
    assert.equal(await secrets.get("hummock.token"), "hmk-secret");
    host.answers = ["which formats?"];
    await run("ask");
    assert.match(host.messages.at(-1)!.text, /not sent to memory\.example:7420 in the clear/);
    host.answers = [""];
    await run("setToken");
    assert.equal(await secrets.get("hummock.token"), undefined);
  });
});

describe("with a service", { skip: TARGET ? false : "HUMMOCK_TARGET names no service" }, () => {
  const client = new HummockClient({ target: TARGET });
  after(() => client.close());

  before(async () => {
    set("target", TARGET);
    const path = "src/dates.ts";
    const code = { case: "codeFragment", value: { path, startLine: 1, endLine: 3, symbol: "parseDate" } } as const;
    const record = { question: "What does the shop parse?", answer: "ISO 8601 alone", sourceFiles: ["dates.ts"] };
    await client.context.learn({
      project,
      memories: [
        { content: SOURCE, detail: code, metadata: { root: folder } },
        { detail: { case: "learningRecord", value: record } },
        { content: "not here", detail: { ...code, value: { ...code.value, path: "lib/src/dates.ts" } } },
      ],
    });
    open(0, 2);
  });

  test("a selection is remembered with its place, marked in the margin and listed", async () => {
    host.answers = ["parseDate takes ISO 8601 only"];
    await run("rememberSelection");
    assert.equal(host.messages.at(-1)!.text, "Remembered.");
    await until(() => host.contexts.get("hummock.isAway") === false);
    const first = await until(() => host.decorations[0]);
    assert.deepEqual([first.range.start.line, first.range.end.line], [0, 1]);
    const rows = await until(() => listed().length >= 3 && listed());
    assert.deepEqual(rows, [
      "parseDate takes ISO 8601 only | note · line 1",
      "What does the shop parse? | record",
      "parseDate | code · line 1",
    ]);
  });

  test("a question lists hits with why; Enter opens the code at its line, or the memory", async () => {
    host.answers = ["which formats does parseDate take?"];
    await run("ask");
    const [list] = await until(() => host.lists.length > 0 && host.lists);
    const note = list!.items.find(({ label }) => label === "parseDate takes ISO 8601 only")!;
    assert.match(note.description!, /^[01]\.\d\d · note · src\/dates\.ts:1$/);
    assert.match(note.detail!, /words: .*parsedate/i);
    list!.accept(note);
    const { uri } = await until(() => host.shown.at(-1));
    assert.match(
      await host.documents.get("hummock")!.provideTextDocumentContent(uri),
      /^# parseDate takes ISO 8601 only\n/,
    );

    const code = list!.items.find(({ label, description }) => label === "parseDate" && description!.includes("code"))!;
    list!.accept(code);
    const shown = await until(() => host.shown.find(({ uri }) => uri.scheme === "file"));
    assert.equal(shown.uri.fsPath, file);
    assert.equal(shown.options!.selection!.start.line, 0);
  });

  test("a verdict is kept, and the next answer tells it", async () => {
    host.answers = ["which formats does parseDate take?", "which formats does parseDate take?"];
    await run("ask");
    const list = await until(() => host.lists.at(-1));
    list.press(
      list.items.find(({ label }) => label === "parseDate takes ISO 8601 only")!,
      0,
    );
    await until(() => host.messages.some(({ text }) => text === "Hummock: Your verdict is kept."));
    await run("ask");
    const again = await until(() => host.lists.length === 2 && host.lists[1]);
    const told = again!.items.find(({ label }) => label === "parseDate takes ISO 8601 only")!;
    assert.match(told.detail!, /found helpful: 1/);
  });

  test("secrets are warned of, and are not stored", async () => {
    host.answers = ["The deploy password: hunter2-Zx81pQ, ask Mara"];
    await run("rememberText");
    const { kind, text, choices } = host.messages.at(-1)!;
    assert.equal(kind, "warning");
    assert.match(text, /Secrets were found and replaced before it was stored: 1 × password\./);
    assert.deepEqual(choices, ["Open", "Undo"]);
    const { memories } = await client.memories.listMemories({ project, contains: "hunter2" });
    assert.deepEqual(memories, []);
  });

  test("what was just remembered can be undone", async () => {
    host.answers = ["The shop closes at six"];
    host.choice = "Undo";
    await run("rememberText");
    await holds(async () => !(await containing("closes at six")).length);
  });

  test("a memory is forgotten, and comes back by undo as it was", async () => {
    const tree = host.trees.get("hummock.fileMemories")!;
    const record = await until(() => tree.getChildren()[listed().findIndex(row => row.endsWith("| record"))]);
    const { id } = (record as { memory: { id: string } }).memory;
    const { memory: before } = await client.memories.getMemory({ project, id });
    await run("forget", record);
    assert.equal(host.messages.at(-1)!.text, "Forgot “What does the shop parse?”.");
    await assert.rejects(client.memories.getMemory({ project, id }), { reason: "MEMORY_NOT_FOUND" });
    await until(() => !listed().some(row => row.endsWith("| record")));
    await client.context.learn({ project, memories: [before!] });
    await until(() => listed().some(row => row.endsWith("| record")));
    host.choice = "Undo";
    await run("forget", record);
    await holds(async () => (await containing("What does the shop parse?")).length === 1);
    const { memory: after } = await client.memories.getMemory({ project, id });
    assert.deepEqual({ ...after, updateTime: undefined }, { ...before, updateTime: undefined });
  });

  test("the list follows what others learn", async () => {
    const metadata = { path: "src/dates.ts", start_line: "3" };
    await client.context.learn({ project, memories: [{ content: "Dates are UTC", metadata }] });
    await until(() => listed().some(row => row === "Dates are UTC | note · line 3"));
  });

  test(
    "the folder is indexed and followed by the command, until it is stopped",
    { skip: process.env["HUMMOCK_COMMAND"] ? false : "HUMMOCK_COMMAND names no hummock" },
    async () => {
      host.settings["command"] = process.env["HUMMOCK_COMMAND"];
      await run("startIndex");
      await until(() => host.status!.text.includes("$(eye)"));
      assert.match(
        host.status!.tooltip,
        /^Project: .*\nThe folder is followed\. Last batch: [1-9]\d* sent, 0 deleted\./,
      );
      const found = await client.recall({ project, queryText: "parseDate", filter: { origins: [Origin.INDEXER] } });
      const paths = found.hits.map(({ memory }) => memory!.detail.case === "codeFragment" && memory!.detail.value.path);
      assert.deepEqual(paths, ["src/dates.ts"]);
      await run("stopIndex");
      assert.match(host.status!.tooltip, /The folder is not followed\.$/);

      host.settings["indexOnOpen"] = true;
      const folders = editor.workspace.workspaceFolders;
      host.folders.fire({ added: folders, removed: [] });
      await until(() => host.status!.text.includes("$(eye)"));
      await Promise.all([run("startIndex"), run("startIndex")]);
      await until(() => host.status!.text.includes("$(eye)"));
      host.folders.fire({ added: [], removed: folders });
      await until(() => host.status!.tooltip.endsWith("The folder is not followed."));
    },
  );

  async function containing(text: string): Promise<object[]> {
    return (await client.memories.listMemories({ project, contains: text })).memories;
  }

  /** Waits until something holds of the project; it is looked at after each write. */
  async function holds(what: () => Promise<boolean>): Promise<void> {
    for await (const _ of client.watchMemories({ project, afterSeq: 0n })) {
      if (await what()) return;
    }
  }
});
