import { type Hit, type Memory, MemoryKind, RecallPath, type RecallResponse } from "hummock";
import { anchorOf } from "./paths.js";
import { oneLine, type Words } from "./words.js";

const MINUTES_AN_HOUR = 60;
const HOURS_A_DAY = 24;
const DAYS_A_YEAR = 365.25;

/** A hit as a list shows it. */
export interface ShownHit {
  readonly hit: Hit;
  readonly memory: Memory;
  readonly label: string;
  /** Score and place. */
  readonly description: string;
  /** Why it was chosen. */
  readonly detail: string;
}

/** Hits of one group of a reply, under their heading. */
export interface HitGroup {
  readonly heading: string;
  readonly hits: readonly ShownHit[];
}

/** The groups of a reply that have any hits, in its order. */
export function groupsOf(reply: RecallResponse, words: Words): HitGroup[] {
  const groups: [string, Hit[]][] = [
    [words("Memories"), reply.hits],
    [words("Code"), reply.codeFragments],
    [words("Domains"), reply.domains],
  ];
  const all = groups.flatMap(([, hits]) => hits).flatMap(({ memory }) => memory ?? []);
  const titles = new Map(all.map(memory => [memory.id, titleOf(memory)]));
  return groups
    .map(([heading, hits]) => ({ heading, hits: hits.flatMap(hit => shown(hit, titles, words)) }))
    .filter(({ hits }) => hits.length);
}

/** The heading of a memory: the symbol of code, else its title, else its id. */
export function titleOf(memory: Memory): string {
  const symbol = memory.detail.case === "codeFragment" ? memory.detail.value.symbol : "";
  return oneLine(symbol || memory.title || memory.id);
}

/** What a memory is about as `path:line`; empty where it names no file. */
export function placeText(memory: Memory): string {
  const anchor = anchorOf(memory);
  if (!anchor) return "";
  return oneLine(anchor.startLine ? `${anchor.path}:${anchor.startLine}` : anchor.path);
}

/** A kind in one short word; a kind of a newer service by its number. */
export function kindWord(kind: MemoryKind, words: Words): string {
  switch (kind) {
    case MemoryKind.LEARNING_RECORD:
      return words("record");
    case MemoryKind.DOMAIN_KNOWLEDGE:
      return words("domain");
    case MemoryKind.CODE_FRAGMENT:
      return words("code");
    case MemoryKind.NOTE:
      return words("note");
    case MemoryKind.ENTRY:
      return words("entry");
    default:
      return String(kind);
  }
}

/**
 * Why a hit was chosen, in one line: what probably replaces it, the paths that found it, its matched words, age and
 * verdicts.
 *
 * @param titles Titles of the memories around it by their ids.
 */
export function whyOf(hit: Hit, titles: ReadonlyMap<string, string>, words: Words): string {
  const newer = hit.likelyReplacedBy;
  const parts = newer ? [words("probably replaced by “{0}”", titles.get(newer) ?? oneLine(newer))] : [];
  parts.push(...hit.paths.map(path => foundBy(path, hit, words)));
  const matched = hit.matchedTerms.map(oneLine).join(", ");
  if (matched) parts.push(words("words: {0}", matched));
  for (const { asked, meant } of hit.corrections)
    parts.push(words("{0} taken for {1}", oneLine(asked), oneLine(meant)));
  parts.push(words("{0} old", age(hit.ageDays, words)));
  if (hit.helpfulCount) parts.push(words("found helpful: {0}", hit.helpfulCount));
  if (hit.wrongCount) parts.push(words("found wrong: {0}", hit.wrongCount));
  if (hit.nearTwin) parts.push(words("another version of a hit above"));
  return parts.join(" · ");
}

/** An age in its largest fitting unit. */
function age(days: number, words: Words): string {
  const hours = days * HOURS_A_DAY;
  if (hours < 1) return words("{0} min", Math.floor(hours * MINUTES_AN_HOUR));
  if (days < 1) return words("{0} h", Math.floor(hours));
  return days < DAYS_A_YEAR ? words("{0} d", Math.floor(days)) : words("{0} y", Math.floor(days / DAYS_A_YEAR));
}

function foundBy(path: RecallPath, { similarity, keywordScore }: Hit, words: Words): string {
  switch (path) {
    case RecallPath.VECTOR:
      return words("by meaning {0}", similarity.toFixed(2));
    case RecallPath.KEYWORD:
      return words("by words {0}", keywordScore.toFixed(1));
    case RecallPath.DOMAIN:
      return words("by the domain's name");
    default:
      return String(path);
  }
}

function shown(hit: Hit, titles: ReadonlyMap<string, string>, words: Words): ShownHit[] {
  const { memory } = hit;
  if (!memory) return [];
  const parts = [hit.score.toFixed(2), kindWord(memory.kind, words), placeText(memory)];
  const description = parts.filter(part => part).join(" · ");
  return [{ hit, memory, label: titleOf(memory), description, detail: whyOf(hit, titles, words) }];
}
