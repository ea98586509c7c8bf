import assert from "node:assert/strict";
import { test } from "node:test";
import { create, LearnResultSchema, LearnStatus } from "hummock";
import { isNew, noteOf, outcomeOf } from "../src/notes.js";
import { inEnglish } from "../src/words.js";

test("a note has its remark before the text, and its place in the metadata", () => {
  const anchor = { path: "src/dates.ts", startLine: 3, endLine: 5 };
  const { content, metadata } = noteOf("return new Date(text);", { remark: " ISO 8601 only ", anchor });
  assert.equal(content, "ISO 8601 only\n\nreturn new Date(text);");
  assert.deepEqual(metadata, { path: "src/dates.ts", start_line: "3", end_line: "5" });
});

test("a note without remark and place is its text", () => {
  const { content, metadata } = noteOf("one\ntwo");
  assert.deepEqual([content, metadata], ["one\ntwo", {}]);
});

test("a path that the metadata cannot hold is left out", () => {
  const anchor = { path: "d/".repeat(300), startLine: 1, endLine: 1 };
  assert.deepEqual(noteOf("text", { anchor }).metadata, {});
});

const OUTCOMES: readonly [string, object, string, boolean, boolean][] = [
  ["new", { status: LearnStatus.CREATED }, "Remembered.", false, true],
  ["known", { status: LearnStatus.DUPLICATE }, "This was remembered already.", false, false],
  [
    "redacted",
    { status: LearnStatus.CREATED, secrets: [{ kind: "password", count: 2, redacted: true }] },
    "Remembered. Secrets were found and replaced before it was stored: 2 × password.",
    true,
    true,
  ],
  [
    "kept with its secrets",
    { status: LearnStatus.CREATED, secrets: [{ kind: "cloud key", count: 1 }] },
    "Remembered. It holds secrets, which were stored as they are (secrets.policy): 1 × cloud key.",
    true,
    true,
  ],
  [
    "held",
    { status: LearnStatus.HELD, heldFor: ["override"] },
    "It reads like an instruction to a model (override) and waits for review.",
    true,
    false,
  ],
];

for (const [what, init, message, isWarning, canBeUndone] of OUTCOMES) {
  test(`what is said of a note that is ${what}`, () => {
    const result = create(LearnResultSchema, init);
    assert.deepEqual(outcomeOf(result, inEnglish), { message, isWarning });
    assert.equal(isNew(result), canBeUndone);
  });
}
