"""Damages copies of a store at seeded places and reads each in a process of its own: `… --cases N --seed S`.

Prints how many came to what:
    refused: the store did not open, or a read ended with an error that says why;
    noticed: memories were left out, and it was said how many;
    harmless: everything was as before;
    crashed: LMDB ended the process, which nothing but a process of its own can contain;
    wrong: something else than what was written was shown, or memories were missing and nothing was said.
Ends with status 1 when anything was wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
from collections import Counter
from pathlib import Path
from random import Random

import lmdb

from hummock.core.errors import HummockError
from hummock.core.memory import Filter
from hummock.store import EmbeddedStore
from hummock.store.lmdb.data_file import DATA_FILE
from tests.ports.asking import ask, put
from tests.store.opening import opened
from tests.strategies import Entry

MEMORIES = 60
_PATIENCE_S = 20


def entry(number: int) -> Entry:
    """One memory of the store."""
    return Entry(
        id=f"m{number}",
        words=("tide", f"w{number}", *("潮汐木芯" for _ in range(number * 7))),
        seeds=(number, number + 1),
        session_id=f"s{number % 5}",
        tags=("java",),
    )


def answers(store: EmbeddedStore) -> dict[str, str]:
    """What is shown of every memory: in a list, in an export, by its id and among the hits of a question."""
    shown = {}
    for memory in store.page("p", Filter(), 0, 1000, full=True).memories:
        shown[f"list {memory.id}"] = repr(memory)
    for one in store.export("p", 0, store.generation("p").seq, with_vectors=False).memories:
        shown[f"export {one.memory.id}"] = repr(one.memory)
    for found in store.load("p", sorted(ask(store, terms=["tide"], pool=1000).doc.tolist()), full=True):
        if found is not None:
            shown[f"hit {found.id}"] = repr(found)
    return shown


def outcome(directory: Path, expected: dict[str, str]) -> str:
    """What a damaged store comes to, in this process."""
    try:
        with opened(directory) as store:
            shown = answers(store)
            damaged = store.status().damaged_count
    except (HummockError, lmdb.Error) as error:
        return f"refused {type(error).__name__}"
    if any(expected.get(name) != value for name, value in shown.items()):
        return "wrong"
    if shown == expected:
        return "harmless"
    return "noticed" if damaged else "wrong"


def in_child(directory: Path, expected: dict[str, str]) -> str:
    """The same in a process that may crash or hang."""
    here, there = os.pipe()
    child = os.fork()
    if not child:
        signal.alarm(_PATIENCE_S)
        # What LMDB says before it gives up is no failure of this program.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        try:
            os.write(there, outcome(directory, expected).encode())
        except BaseException as error:
            os.write(there, f"raised {type(error).__name__}".encode())
        os._exit(0)
    os.close(there)
    with os.fdopen(here, "rb") as pipe:
        said = pipe.read().decode()
    _, status = os.waitpid(child, 0)
    return f"crashed {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else said


def damaged(data: bytes, random: Random) -> bytes:
    """With one other bit, or sixteen other bytes."""
    at = random.randrange(len(data))
    if random.random() < 0.5:
        return data[:at] + bytes([data[at] ^ 1 << random.randrange(8)]) + data[at + 1 :]
    return data[:at] + random.randbytes(len(data[at : at + 16])) + data[at + 16 :]


def run(cases: int, seed: int) -> Counter[str]:
    """Damages so many copies."""
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        whole, copy = Path(folder, "whole"), Path(folder, "copy")
        with opened(whole) as store:
            put(store, "p", *(entry(number) for number in range(MEMORIES)))
            put(store, "p", *(entry(number) for number in range(0, MEMORIES, 7)))
            expected = answers(store)
        data = (whole / DATA_FILE).read_bytes()
        for case in range(cases):
            shutil.rmtree(copy, ignore_errors=True)
            copy.mkdir()
            random = Random(f"{seed}/{case}")  # noqa: S311 - to be repeated, not to be secret
            (copy / DATA_FILE).write_bytes(damaged(data, random))
            said = in_child(copy, expected)
            counts[said] += 1
            if said.startswith(("wrong", "raised")):
                print(f"case {case}: {said}", file=sys.stderr)
    return counts


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    counts = run(asked.cases, asked.seed)
    print(json.dumps(counts, sort_keys=True))
    sys.exit(any(said.startswith(("wrong", "raised")) for said in counts))


if __name__ == "__main__":
    main()
