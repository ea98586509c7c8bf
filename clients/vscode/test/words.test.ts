import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

const ROOT = join(__dirname, "..");

function read(name: string): string {
  return readFileSync(join(ROOT, name), "utf8");
}

test("every message of the sources has a translation, and there are no others", () => {
  const sources = readdirSync(join(ROOT, "src")).map(name => read(`src/${name}`));
  const used = sources.flatMap(source =>
    [...source.matchAll(/\bwords\(\s*"((?:[^"\\]|\\.)*)"/g)].map(found => found[1]),
  );
  assert.ok(used.length > 40);
  const known: Record<string, string> = JSON.parse(read("l10n/bundle.l10n.zh-cn.json"));
  assert.deepEqual(new Set(used), new Set(Object.keys(known)));
  for (const [message, translated] of Object.entries(known)) {
    assert.deepEqual(placeholders(translated), placeholders(message), message);
  }
});

test("every name in package.json has a text in both languages", () => {
  const names = new Set([...read("package.json").matchAll(/"%([\w.]+)%"/g)].map(found => found[1]));
  for (const file of ["package.nls.json", "package.nls.zh-cn.json"]) {
    assert.deepEqual(new Set(Object.keys(JSON.parse(read(file)))), names, file);
  }
});

function placeholders(text: string): string[] {
  return [...text.matchAll(/\{\d+\}/g)].map(([each]) => each).sort();
}
