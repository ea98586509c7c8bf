"""Commit subjects of this repository, and the files and functions that each of them changed (set `history`).

A tree is learnt as it was before all commits that are asked about: what a subject asks for was still to be done.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.eval.answers import REPOSITORY
from bench.eval.code_questions import FOLDERS
from bench.eval.indexed import Indexed, SetSkipped, at_commit
from bench.eval.sets import Corpus, Question, Slice
from bench.eval.ways import AGENT, CODE
from hummock_client.v1 import memory_pb2 as pb
from hummock_tools.indexing.chunker import SourceFile, fragments
from hummock_tools.indexing.walk import git

TREES = (("bf23efb", "11db27c"), ("11db27c", "6c357f1"))
"""Trees that are learnt, and the last commit that is asked about of each: some 120 and 160 commits, before most files
were moved to other folders."""

_MOST_FILES, _MOST_FUNCTIONS = 6, 12
"""A commit that changes more is about no place in particular."""
_COMMIT = re.compile(r"\x01(?P<commit>[0-9a-f]+)\x00(?P<subject>.*)\n")
_FILE = re.compile(r"^diff --git a/(?P<old>.+) b/(?P<new>.+)$", re.MULTILINE)
_MADE_OR_REMOVED = re.compile(r"^(?:new|deleted) file mode ", re.MULTILINE)
_HUNK = re.compile(r"^@@ -(?P<first>\d+)(?:,(?P<count>\d+))? ", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Changes of a commit to existing files: lines of the old file by path, first and last inclusive.

    Where lines were only put in, the first is the line after them and the last the one before: so a function has them
    where it has both.
    """

    commit: str
    subject: str
    lines: Mapping[str, tuple[tuple[int, int], ...]]


def history(_: Path, root: Path = REPOSITORY, trees: Sequence[tuple[str, str]] = TREES) -> Corpus:
    """A project for each tree, and the commits after it. Raises: SetSkipped, where the clone has no such history."""
    projects: dict[str, tuple[pb.Memory, ...]] = {}
    asked: dict[str, list[Question]] = {"file": [], "function": []}
    for tree, last in trees:
        files = at_commit(root, tree, FOLDERS)
        found = list(changes(root, tree, last)) if files else []
        if not found:
            raise SetSkipped(f"this clone does not reach from {tree} to {last}")
        indexed, project = Indexed.of(files), f"history-{tree}"
        projects[project] = indexed.memories()
        for change in found:
            for kind, question in _questions(root, project, indexed, change):
                asked[kind].append(question)
    return Corpus(
        name="history",
        projects=projects,
        slices=tuple(
            Slice(set="history", name=way.named(kind), questions=tuple(questions), way=way)
            for way in (AGENT, CODE)
            for kind, questions in asked.items()
        ),
    )


def _questions(root: Path, project: str, tree: Indexed, change: Change) -> Iterator[tuple[str, Question]]:
    """Questions from the commit's subject, by slice: any part of the changed files, and the changed functions."""
    touched = [path for path in change.lines if tree.of_file(path)]
    if not 1 <= len(touched) <= _MOST_FILES:
        return
    yield "file", _question(project, change, [tree.of_file(path) for path in touched])
    functions = [ids for path in touched for ids in _functions(root, change, path, tree)]
    if 1 <= len(functions) <= _MOST_FUNCTIONS:
        yield "function", _question(project, change, functions)


def changes(root: Path, after: str, last: str) -> Iterator[Change]:
    """The commits after one, up to another, the newest first; renames count as a file gone and one made."""
    log = git(
        *(root, "log", "--format=%x01%H%x00%s", "-p", "-U0", "--no-renames", "--no-merges", "--no-ext-diff"),
        *(f"{after}..{last}", "--", *FOLDERS),
    ).decode(errors="replace")
    starts = list(_COMMIT.finditer(log))
    for place, start in enumerate(starts):
        end = starts[place + 1].start() if place + 1 < len(starts) else len(log)
        yield Change(commit=start["commit"], subject=start["subject"], lines=dict(_lines(log[start.end() : end])))


def _lines(patch: str) -> Iterator[tuple[str, tuple[tuple[int, int], ...]]]:
    files = list(_FILE.finditer(patch))
    for place, file in enumerate(files):
        text = patch[file.end() : files[place + 1].start() if place + 1 < len(files) else len(patch)]
        head = text.partition("\n@@ ")[0]
        if _MADE_OR_REMOVED.search(head):
            continue
        yield file["old"], tuple(_span(hunk) for hunk in _HUNK.finditer(text))


def _span(hunk: re.Match[str]) -> tuple[int, int]:
    first, count = int(hunk["first"]), int(hunk["count"] or 1)
    return (first, first + count - 1) if count else (first + 1, first)


def _functions(root: Path, change: Change, path: str, tree: Indexed) -> Iterator[frozenset[str]]:
    """Fragments, as the tree has them, of each function that the commit changed in a file, in the order of lines."""
    before = git(root, "show", f"{change.commit}^:{path}")
    cut = fragments(SourceFile(path=path, data=before)) if before else []
    changed: dict[str, None] = {}
    for fragment in cut:
        if fragment.symbol and _is_changed(fragment.start_line, fragment.end_line, change.lines[path]):
            changed[fragment.symbol] = None
    whole = [symbol for symbol in changed if not any(other.startswith(f"{symbol}.") for other in changed)]
    for symbol in whole:
        ids = frozenset(each.id for each in tree.fragments if (each.path, each.symbol) == (path, symbol))
        if ids:
            yield ids


def _is_changed(start: int, end: int, spans: Sequence[tuple[int, int]]) -> bool:
    return any(start <= last and first <= end for first, last in spans)


def _question(project: str, change: Change, wanted: Sequence[frozenset[str]]) -> Question:
    relevant = frozenset[str]().union(*wanted)
    return Question(id=change.commit[:12], project=project, text=change.subject, relevant=relevant)
