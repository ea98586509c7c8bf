import assert from "node:assert/strict";
import { test } from "node:test";
import { create, type Memory, MemorySchema } from "hummock";
import { anchorOf, below, filesNamed, names } from "../src/paths.js";

function code(path: string, root?: string, tags: string[] = []): Memory {
  const metadata: Record<string, string> = root === undefined ? {} : { root };
  return create(MemorySchema, {
    detail: { case: "codeFragment", value: { path, startLine: 3, endLine: 9 } },
    metadata,
    tags,
  });
}

test("the anchor of a code fragment is its place", () => {
  assert.deepEqual(anchorOf(code("src/a.ts")), { path: "src/a.ts", startLine: 3, endLine: 9 });
});

const NOTES: readonly [Record<string, string>, unknown][] = [
  [{}, undefined],
  [{ path: "a.ts" }, { path: "a.ts", startLine: undefined, endLine: undefined }],
  [
    { path: "a.ts", start_line: "4", end_line: "6" },
    { path: "a.ts", startLine: 4, endLine: 6 },
  ],
  [
    { path: "a.ts", start_line: "4", end_line: "2" },
    { path: "a.ts", startLine: 4, endLine: 4 },
  ],
  [
    { path: "a.ts", start_line: "-1", end_line: "x" },
    { path: "a.ts", startLine: undefined, endLine: undefined },
  ],
];

for (const [metadata, anchor] of NOTES) {
  test(`the anchor of a note with ${JSON.stringify(metadata)}`, () => {
    assert.deepEqual(anchorOf(create(MemorySchema, { metadata })), anchor);
  });
}

const NAMED: readonly [string, Memory, string[], string[]][] = [
  ["below each open folder", code("src/a.ts"), ["/w/shop", "/w/lib"], ["/w/shop/src/a.ts", "/w/lib/src/a.ts"]],
  [
    "below the root that was indexed, first",
    code("a.ts", "/w/shop/src"),
    ["/w/shop"],
    ["/w/shop/src/a.ts", "/w/shop/a.ts"],
  ],
  ["behind the name of its index", code("lib/a.ts", "/w/lib", ["code", "repository:lib"]), ["/w/lib"], ["/w/lib/a.ts"]],
  ["in its folder where no index has its name", code("lib/a.ts", "/w/shop"), ["/w/shop"], ["/w/shop/lib/a.ts"]],
  ["below the open folder where another machine indexed it", code("a.ts", "/far/shop"), ["/w/shop"], ["/w/shop/a.ts"]],
  ["never outside by dots", code("../../etc/passwd"), ["/w/shop"], []],
  ["never outside by a root", code("passwd", "/etc"), ["/w/shop"], ["/w/shop/passwd"]],
  ["never by a root that is no path", code("a.ts", "../x"), ["/w/shop"], ["/w/shop/a.ts"]],
];

for (const [what, memory, folders, files] of NAMED) {
  test(`a file is looked for ${what}`, () => {
    const found = filesNamed(memory, anchorOf(memory)!, folders);
    assert.deepEqual(new Set(found), new Set(files));
    assert.equal(found[0], files[0]);
  });
}

const BELOW: readonly [string, string | undefined][] = [
  ["/w/shop/src/a.ts", "src/a.ts"],
  ["/w/shop/..a.ts", "..a.ts"],
  ["/w/shop", undefined],
  ["/w/shopping/a.ts", undefined],
  ["/etc/passwd", undefined],
  ["/w/shop/cafe\u0301.ts", "caf\u00e9.ts"],
];

for (const [file, path] of BELOW) {
  test(`${file} below /w/shop`, () => assert.equal(below("/w/shop", file), path));
}

const ENDS: readonly [string, string, boolean][] = [
  ["src/a.ts", "src/a.ts", true],
  ["a.ts", "src/a.ts", true],
  ["./src/a.ts", "src/a.ts", true],
  ["a.ts", "src/ba.ts", false],
  ["", "src/a.ts", false],
  ["/", "src/a.ts", false],
];

for (const [end, path, isNamed] of ENDS) {
  test(`"${end}" ${isNamed ? "names" : "does not name"} ${path}`, () => assert.equal(names(end, path), isNamed));
}
