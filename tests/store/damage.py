"""Damages copies of a store at seeded places and reads each in a process of its own: `… --cases N --seed S`.

Prints how many came to what:
    refused: the store did not open, or a read ended with an error that says why;
    noticed: what is damaged was left out and it was said how many, or who asked for it by its name was told;
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
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from operator import methodcaller
from pathlib import Path
from random import Random
from typing import TypeAlias

from msgspec.structs import astuple, replace

from hummock.core.errors import DataLoss, HummockError
from hummock.core.learning import Injected, KeywordsSet, TurnObserved
from hummock.core.memory import Filter
from hummock.core.review import Quarantined
from hummock.core.session import PromptRole, Session, SessionMessage
from hummock.learning.log import record
from hummock.ports.learning import LearningReader
from hummock.ports.writes import UnitOfWork
from hummock.store import WritableStore
from hummock.store.lmdb.files import DATA_FILE
from tests.ports.asking import ask, put
from tests.store.opening import opened
from tests.strategies import Entry, write_request
from tests.sure import sure

MEMORIES = 60
SESSIONS = tuple(f"s{number}" for number in range(8))
MESSAGES = 12
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


def talk(unit: UnitOfWork) -> None:
    """Sessions with messages, one of them archived, and what was learnt in them."""
    for session_id in SESSIONS:
        unit.sessions.create(Session(id=session_id, title="", create_time=1.0, update_time=1.0))
        for number in range(MESSAGES):
            session = sure(unit.sessions.get(session_id))
            message_id, content = f"{session_id}-{number}", f"tide {number}" * 9
            unit.sessions.append(
                session, SessionMessage(id=message_id, role=PromptRole.USER, content=content, raw="", send_time=1.0)
            )
        used = tuple(f"m{number}" for number in range(9))
        said_so = TurnObserved(scope=session_id, turn=1, user_text="tide", assistant_hash=b"", used_ids=used)
        record(unit.learning, said_so)
        record(
            unit.learning, Injected(scope=session_id, turn=1, referenced_ids=used, injected_ids=used, dropped_ids=())
        )
    first = sure(unit.sessions.get(SESSIONS[0]))
    unit.sessions.change(replace(first, is_archived=True))
    for number in range(9):
        record(unit.learning, KeywordsSet(memory_id=f"m{number}", keywords=(f"harbour{number}",)))
    memory = entry(99).memory()
    unit.review.put(Quarantined(memory=replace(memory, chunk_count=0), families=("override",), hold_time=1.0))


def answers(store: WritableStore) -> tuple[dict[str, str], set[str]]:
    """Shown content of everything stored, by question, and the questions refused as damaged."""
    shown = of_memories(store)
    refused: set[str] = set()
    for name, read in [*single_questions(store), *questions(store)]:
        try:
            found = read()
        except DataLoss:
            refused.add(name)
            continue
        if isinstance(found, dict):
            shown |= {f"{name} {key}": repr(value) for key, value in found.items()}
        else:
            shown[name] = repr(found)
    return shown, refused


Question: TypeAlias = tuple[str, Callable[[], object]]
"""Name of a question, and the call that reads its answer."""


def single_questions(store: WritableStore) -> Iterator[Question]:
    """Questions for single things by name."""
    for number in range(MEMORIES):
        memory_id = f"m{number}"
        yield f"id {memory_id}", partial(store.get, "p", [memory_id], 0, full=True)
        yield f"profile {memory_id}", learnt(store, methodcaller("profile", memory_id))
    for session_id in SESSIONS:
        yield f"session {session_id}", partial(store.sessions.get, "p", session_id)
        yield f"turn {session_id}", learnt(store, methodcaller("turn", session_id))
        for number in range(MESSAGES):
            message_id = f"{session_id}-{number}"
            yield f"message {message_id}", partial(store.sessions.message, "p", session_id, message_id)
    yield "learning", learnt(store, methodcaller("state"))
    yield "held", partial(store.review.get, "p", [entry(99).id])


def questions(store: WritableStore) -> Iterator[Question]:
    """Questions for many things, by the names of all that is found."""
    for archived in (True, False):
        yield f"sessions {archived}", partial(listed, store, archived=archived)
    yield "all", lambda: by_id(store.sessions.all("p"))
    yield "review", lambda: {one.memory.id: one for one in store.review.page("p", "", 99).held}
    for session_id in SESSIONS:
        yield f"before {session_id}", partial(before, store, session_id)
        yield f"behind {session_id}", partial(behind, store, session_id)
        yield f"usage {session_id}", learnt(store, methodcaller("usage", session_id))
    yield "scopes", learnt(store, lambda log: dict(log.scopes()))
    yield "profiles", learnt(store, lambda log: dict(log.profiles()))
    yield "events", learnt(store, lambda log: {one.number: one for one in log.events(0, 99)})


def listed(store: WritableStore, *, archived: bool) -> dict[str, object]:
    """Sessions by their order."""
    return by_id(store.sessions.page("p", None, 99, archived=archived).sessions)


def before(store: WritableStore, session_id: str) -> dict[str, object]:
    """The last messages of a session."""
    return by_id(store.sessions.before("p", session_id, None, 99, 1 << 20).messages)


def behind(store: WritableStore, session_id: str) -> dict[str, object]:
    """The first messages of a session."""
    return by_id(store.sessions.behind("p", session_id, 0, 1 << 20))


def learnt(store: WritableStore, read: Callable[[LearningReader], object]) -> Callable[[], object]:
    """A question for what was learnt."""
    return partial(store.read_learning, "p", read)


def by_id(found: Iterable[Session | SessionMessage]) -> dict[str, object]:
    """Found sessions or messages by their ids; sessions with all of their fields."""
    return {one.id: astuple(one) for one in found}


def of_memories(store: WritableStore) -> dict[str, str]:
    """Shown content of every memory: in a list, in an export and among the hits of a question."""
    shown = {}
    for memory in store.page("p", Filter(), 0, 1000, full=True).memories:
        shown[f"list {memory.id}"] = repr(memory)
    for one in store.export("p", 0, store.generation("p").seq, with_vectors=False).memories:
        shown[f"export {one.memory.id}"] = repr(one.memory)
    for found in store.load("p", sorted(ask(store, terms=["tide"], pool=1000).rows["doc"].tolist()), full=True):
        if found is not None:
            shown[f"hit {found.id}"] = repr(found)
    return shown


def outcome(directory: Path, expected: dict[str, str]) -> str:
    """Outcome of opening and reading a damaged store, in this process."""
    try:
        with opened(directory) as store:
            shown, refused = answers(store)
            damaged = store.status().damaged_count
    except HummockError as error:
        return f"refused {type(error).__name__}"
    if damaged:
        # It is made of the log, as if there had been none before.
        shown = {name: value for name, value in shown.items() if not (name.startswith("profile ") and value == "None")}
    if any(expected.get(name) != value for name, value in shown.items()):
        return "wrong"
    if damaged or refused:
        return "noticed"
    return "harmless" if shown == expected else "wrong"


def in_child(directory: Path, expected: dict[str, str]) -> str:
    """Runs `outcome` in a child process, which may crash or hang."""
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


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 1)


def empty(path: Path) -> None:
    os.truncate(path, 0)


def replace_by_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def damaged(data: bytes, random: Random) -> bytes:
    """A copy of the data with one bit flipped, or sixteen bytes replaced."""
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
            store.write("p", write_request(talk)).result(30)
            expected, _ = answers(store)
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
