"""The work that every peer does, and how it is timed. Runs in the peers' own environment: NumPy and nothing of ours.

Find the 50 nearest by vector and the 50 best by words among the memories of a project, or those of them that have a
tag, join the two lists, take 10 that differ from each other (maximal marginal relevance), give back their texts.
"""

from __future__ import annotations

import json
import math
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

CANDIDATES, HITS, RELEVANCE_WEIGHT, RRF_K = 50, 10, 0.7, 60
_WARM_UP = 50
_ASKING_S, _FEWEST = 60.0, 50
"""A peer is asked for so long, unless its questions are used up before; but so many at least."""

Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Memory:
    """A stored memory: `terms` are the words of the text, cut by Hummock's analyzer, separated by blanks."""

    place: int
    project: str
    tags: tuple[str, ...]
    text: str
    terms: str
    vector: Vectors


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Question:
    """A question to the memories of a project with a tag; an empty tag stands for all of them."""

    project: str
    tag: str
    terms: str
    vector: Vectors


Search = Callable[[Question], list[str]]
"""Texts of the ten chosen, in order."""
Store = Callable[[Sequence[Memory], Path], None]
"""Stores the memories in an empty directory, and makes what indexes a user would make."""
Opened = Callable[[Path], AbstractContextManager[Search]]
"""The search over such a directory."""


def run(package: str, store: Store, opened: Opened) -> None:
    """The main function of a peer's module: `python -m bench.peers.<peer> DATA TAG`, JSON to stdout.

    What is stored stays in the folder of the data for the next run of the same version.
    """
    data, tag = Path(sys.argv[1]), sys.argv[2]
    memories, questions = read_memories(data), read_questions(data, tag)
    directory = data / f"{package}-{version(package)}"
    stored_s = _stored_s(memories, directory, store)
    by_text = {memory.text: memory for memory in memories}
    with opened(directory) as search:
        for question in questions[:_WARM_UP]:
            search(question)
        times_s: list[float] = []
        until_s = time.perf_counter() + _ASKING_S
        for question in questions[_WARM_UP:]:
            if len(times_s) >= _FEWEST and time.perf_counter() > until_s:
                break
            started_s = time.perf_counter()
            found = search(question)
            times_s.append(time.perf_counter() - started_s)
            check(question, [by_text[text] for text in found])
    ordered = sorted(times_s)
    values = {
        "package": package,
        "version": version(package),
        "memories": len(memories),
        "stored_s": stored_s,
        "calls": len(ordered),
        "p50_ms": 1e3 * ordered[math.ceil(0.5 * len(ordered)) - 1],
        "p99_ms": 1e3 * ordered[math.ceil(0.99 * len(ordered)) - 1],
    }
    print(json.dumps(values))


def _stored_s(memories: Sequence[Memory], directory: Path, store: Store) -> float:
    """Seconds that storing takes, or took in an earlier run."""
    ready = directory.with_name(f"{directory.name}.ready")
    if not ready.exists():
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir()
        started_s = time.perf_counter()
        store(memories, directory)
        ready.write_text(str(time.perf_counter() - started_s))
    return float(ready.read_text())


def check(question: Question, found: Sequence[Memory]) -> None:
    """Raises: ValueError: it is not what was asked for."""
    if len(found) != HITS or len({memory.place for memory in found}) != HITS:
        raise ValueError(f"{len(found)} results instead of {HITS} different ones")
    if any(memory.project != question.project or question.tag not in ("", *memory.tags) for memory in found):
        raise ValueError("a result does not pass the filter")


def read_memories(data: Path) -> list[Memory]:
    """Memories in the folder that `bench.peers` wrote."""
    vectors: Vectors = np.load(data / "vectors.npy")
    return [Memory(vector=vectors[line["place"]], **_of(line)) for line in _lines(data / "memories.jsonl")]


def read_questions(data: Path, tag: str) -> list[Question]:
    """Questions in the order in which they are asked, all of the memories that have the tag."""
    vectors: Vectors = np.load(data / "question-vectors.npy")
    lines = _lines(data / "questions.jsonl")
    return [Question(vector=vectors[row], tag=tag, **_of(line)) for row, line in enumerate(lines)]


def joined(*lists: Sequence[int]) -> list[int]:
    """One list of several, best first, by reciprocal rank fusion: for peers that leave joining to their users."""
    scores: dict[int, float] = {}
    for each in lists:
        for rank, place in enumerate(each):
            scores[place] = scores.get(place, 0.0) + 1 / (RRF_K + rank)
    return sorted(scores, key=lambda place: (-scores[place], place))[:CANDIDATES]


def different(vector: Vectors, candidates: Vectors) -> list[int]:
    """Rows of ten candidates, by maximal marginal relevance in NumPy: for peers that leave it to their users."""
    relevance = candidates @ vector
    closest = np.full(len(candidates), -np.inf, np.float32)
    left = np.ones(len(candidates), np.bool_)
    chosen: list[int] = []
    while len(chosen) < min(HITS, len(candidates)):
        likeness = closest if chosen else np.zeros(len(candidates), np.float32)
        gain = RELEVANCE_WEIGHT * relevance - (1 - RELEVANCE_WEIGHT) * likeness
        pick = int(np.argmax(np.where(left, gain, -np.inf)))
        chosen.append(pick)
        left[pick] = False
        closest = np.maximum(closest, candidates @ candidates[pick])
    return chosen


def _of(line: dict[str, Any]) -> dict[str, Any]:
    return {**line, "tags": tuple(line["tags"])} if "tags" in line else line


def _lines(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]
