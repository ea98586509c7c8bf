import { readFileSync, lstatSync, type Stats } from "node:fs";
import { basename, dirname, isAbsolute, join, normalize } from "node:path";

const LONGEST_PROJECT = 256;
const LONGEST_GIT_FILE_BYTES = 4096;
const WORKTREES = "/.git/worktrees/";

/** A folder that is open, and where its memories are. */
export interface Place {
  /** Name of the project. */
  readonly project: string;
  /** The folder that holds `.git`, else the folder itself: the paths of notes are below it. */
  readonly root: string;
}

/**
 * The project of an open folder, as `hummock-hook` names it: what is set, else the name of the folder around it that
 * holds `.git`, else its own. A worktree has its repository's name.
 *
 * @param set Names in the order in which they count; empty ones do not.
 * @returns undefined where nothing gives it a name: the root of a disk.
 */
export function placeOf(folder: string, set: readonly (string | undefined)[] = []): Place | undefined {
  const { root, repository } = repositoryAround(normalize(folder));
  const named = set.find(name => name) ?? Array.from(basename(repository)).slice(0, LONGEST_PROJECT).join("");
  return named ? { project: named, root } : undefined;
}

function repositoryAround(folder: string): { root: string; repository: string } {
  for (let at = folder; ; at = dirname(at)) {
    const git = statOf(join(at, ".git"));
    if (git) return { root: at, repository: git.isFile() ? repositoryOf(at) : at };
    if (at === dirname(at)) return { root: folder, repository: folder };
  }
}

/** The repository that a worktree belongs to; itself where its `.git` names none, as a submodule's. */
function repositoryOf(worktree: string): string {
  let text: string;
  try {
    text = readFileSync(join(worktree, ".git"), "utf8").slice(0, LONGEST_GIT_FILE_BYTES).trim();
  } catch {
    return worktree;
  }
  const [path, inside] = text
    .replace(/^gitdir: /, "")
    .replaceAll("\\", "/")
    .split(WORKTREES);
  const isLink = text.startsWith("gitdir: ") && inside !== undefined && path && isAbsolute(path);
  return isLink ? normalize(path) : worktree;
}

function statOf(path: string): Stats | undefined {
  try {
    return lstatSync(path);
  } catch {
    return undefined;
  }
}
