import { create, type LearnResult, LearnStatus, type Memory, MemoryKind, MemorySchema } from "hummock";
import { type Anchor, END_LINE, PATH, START_LINE } from "./paths.js";
import { oneLine, type Words } from "./words.js";

/** The limit of a value of the metadata, in characters. */
const LONGEST_VALUE = 512;

/** A note to learn, with the place that it is about in its metadata. */
export function noteOf(text: string, about: { remark?: string; anchor?: Anchor | undefined } = {}): Memory {
  const remark = about.remark?.trim() ?? "";
  const { anchor } = about;
  const metadata: Record<string, string> = {};
  if (anchor && anchor.path.length <= LONGEST_VALUE) {
    metadata[PATH] = anchor.path;
    if (anchor.startLine) metadata[START_LINE] = String(anchor.startLine);
    if (anchor.endLine) metadata[END_LINE] = String(anchor.endLine);
  }
  const content = remark ? `${remark}\n\n${text}` : text;
  return create(MemorySchema, { kind: MemoryKind.NOTE, content, metadata });
}

/** What became of a note, for its user, and whether it deserves a warning. */
export function outcomeOf(result: LearnResult, words: Words): { message: string; isWarning: boolean } {
  const secrets = result.secrets.map(({ kind, count }) => `${count} × ${oneLine(kind)}`).join(", ");
  const isRedacted = result.secrets.some(({ redacted }) => redacted);
  const parts = [done(result, words)];
  if (secrets && isRedacted) parts.push(words("Secrets were found and replaced before it was stored: {0}.", secrets));
  if (secrets && !isRedacted) {
    parts.push(words("It holds secrets, which were stored as they are (secrets.policy): {0}.", secrets));
  }
  return { message: parts.join(" "), isWarning: result.secrets.length > 0 || result.status === LearnStatus.HELD };
}

/** Whether a learnt note can be taken back by deleting its id: others were there before, or are none yet. */
export function isNew(result: LearnResult): boolean {
  return result.status === LearnStatus.CREATED;
}

function done(result: LearnResult, words: Words): string {
  switch (result.status) {
    case LearnStatus.DUPLICATE:
    case LearnStatus.UNCHANGED:
      return words("This was remembered already.");
    case LearnStatus.HELD:
      return words("It reads like an instruction to a model ({0}) and waits for review.", result.heldFor.join(", "));
    default:
      return words("Remembered.");
  }
}
