import { isAbsolute, join, relative, sep } from "node:path";
import type { Memory } from "hummock";

/** Names of the metadata by which a note says what it is about. */
export const PATH = "path";
export const START_LINE = "start_line";
export const END_LINE = "end_line";

/** The name of the metadata by which the index says below which folder a path is. */
const ROOT = "root";

/** Begins the tag by which the index says its name. */
const INDEX_TAG = "repository:";

/** A piece of a file, as a memory names it: the path has "/" between its parts, lines count from 1. */
export interface Anchor {
  readonly path: string;
  readonly startLine: number | undefined;
  /** Inclusive. */
  readonly endLine: number | undefined;
}

/** What a memory is about: the place of a code fragment, or that of a note with its path in the metadata. */
export function anchorOf(memory: Memory): Anchor | undefined {
  if (memory.detail.case === "codeFragment") {
    const { path, startLine, endLine } = memory.detail.value;
    return { path, startLine: startLine || undefined, endLine: endLine || undefined };
  }
  const path = memory.metadata[PATH];
  if (!path) return undefined;
  const startLine = lineOf(memory.metadata[START_LINE]);
  return { path, startLine, endLine: startLine && Math.max(startLine, lineOf(memory.metadata[END_LINE]) ?? startLine) };
}

/** Paths of the files that a memory rests on or says to look at first. */
export function filesOf(memory: Memory): readonly string[] {
  const { case: kind, value } = memory.detail;
  return kind === "learningRecord" ? value.sourceFiles : kind === "domainKnowledge" ? value.keyFiles : [];
}

/** The path of a file below a folder, with "/" between its parts; undefined where it is not inside. */
export function below(folder: string, file: string): string | undefined {
  const path = relative(folder, file);
  const isInside = path !== "" && path !== ".." && !path.startsWith(`..${sep}`) && !isAbsolute(path);
  return isInside ? path.split(sep).join("/").normalize("NFC") : undefined;
}

/**
 * Files that an anchor may name, the likeliest first, all of them inside an open folder: what a memory says is not
 * trusted with others.
 *
 * @param folders The open folders and the roots of their repositories.
 */
export function filesNamed(memory: Memory, anchor: Anchor, folders: readonly string[]): string[] {
  const root = memory.metadata[ROOT];
  // All indexes of a project but the first one put their name before their paths.
  const name = memory.tags.find(tag => tag.startsWith(INDEX_TAG))?.slice(INDEX_TAG.length);
  const path = name && anchor.path.startsWith(`${name}/`) ? anchor.path.slice(name.length + 1) : anchor.path;
  const roots = root && isAbsolute(root) ? [root, ...folders] : folders;
  const files = roots.map(folder => join(folder, path));
  return [...new Set(files)].filter(file => folders.some(folder => below(folder, file) !== undefined));
}

/** Whether a path, or the end of one, names the file that has this path below its root. */
export function names(end: string, path: string): boolean {
  const wanted = end.normalize("NFC").replace(/^\.?\/+/, "");
  return wanted !== "" && (path === wanted || path.endsWith(`/${wanted}`));
}

function lineOf(text: string | undefined): number | undefined {
  return text && /^[1-9]\d{0,8}$/.test(text) ? Number(text) : undefined;
}
