import assert from "node:assert/strict";
import { test } from "node:test";
import { create, MemoryKind, RecallPath, RecallResponseSchema } from "hummock";
import { groupsOf } from "../src/hits.js";
import { inEnglish, oneLine } from "../src/words.js";

const REPLY = create(RecallResponseSchema, {
  hits: [
    {
      memory: {
        id: "new",
        kind: MemoryKind.NOTE,
        title: "parseDate takes ISO 8601",
        metadata: { path: "src/dates.ts" },
      },
      score: 0.914,
      similarity: 0.71,
      keywordScore: 3.25,
      paths: [RecallPath.VECTOR, RecallPath.KEYWORD],
      matchedTerms: ["parsedate", "formats"],
      ageDays: 12.4,
      helpfulCount: 2,
      wrongCount: 1,
    },
    {
      memory: { id: "old", kind: MemoryKind.NOTE, title: "parseDate\ntakes\u202e anything" },
      score: 0.5,
      paths: [RecallPath.KEYWORD],
      corrections: [{ asked: "parseDaet", meant: "parseDate" }],
      ageDays: 0.2,
      nearTwin: true,
      likelyReplacedBy: "new",
    },
  ],
  codeFragments: [
    {
      memory: {
        id: "f",
        kind: MemoryKind.CODE_FRAGMENT,
        title: "function parseDate(text: string)",
        detail: {
          case: "codeFragment",
          value: { path: "src/dates.ts", startLine: 7, endLine: 9, symbol: "parseDate" },
        },
      },
      score: 1,
      paths: [RecallPath.DOMAIN],
      ageDays: 800,
    },
  ],
});

test("hits are listed by group, each with its score, place and why it was chosen", () => {
  const groups = groupsOf(REPLY, inEnglish).map(({ heading, hits }) => [
    heading,
    ...hits.map(({ label, description, detail }) => [label, description, detail]),
  ]);
  assert.deepEqual(groups, [
    [
      "Memories",
      [
        "parseDate takes ISO 8601",
        "0.91 · note · src/dates.ts",
        "by meaning 0.71 · by words 3.3 · words: parsedate, formats · 12 d old · found helpful: 2 · found wrong: 1",
      ],
      [
        "parseDate takes anything",
        "0.50 · note",
        "probably replaced by “parseDate takes ISO 8601” · by words 0.0 · parseDaet taken for parseDate · 4 h old" +
          " · another version of a hit above",
      ],
    ],
    ["Code", ["parseDate", "1.00 · code · src/dates.ts:7", "by the domain's name · 2 y old"]],
  ]);
});

test("an empty reply has no groups", () => {
  assert.deepEqual(groupsOf(create(RecallResponseSchema), inEnglish), []);
});

test("a long text is cut at 120 characters, never inside one", () => {
  const line = oneLine("潮".repeat(60) + "🌊".repeat(61));
  assert.equal(Array.from(line).length, 120);
  assert.ok(line.endsWith("🌊…"));
});
