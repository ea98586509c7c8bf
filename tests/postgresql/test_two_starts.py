"""Services that start at once over a database whose words an earlier analyzer made: one makes them anew, once."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import msgspec
import psycopg
import pytest

from hummock.core.errors import StartError
from hummock.core.memory import Terms
from hummock.ports.writes import ClaimLost
from hummock.store.tables import record_codec
from hummock.store.tables.lookups import DIRECTORY_KEY
from hummock.store.write import reanalyse
from hummock.text import terms
from hummock.text.terms import Piece
from tests.ports.asking import ask, ids, put
from tests.store.aging import FIRST_ANALYZER
from tests.store.opening import opened_shared
from tests.strategies import Entry

pytestmark = pytest.mark.long

PROJECTS, MEMORIES = ("p", "q"), 10
OTHER = "another service makes the words of all memories anew; this one starts when that is done"


@pytest.fixture
def aged(database: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A database that says that its words are those of the first analyzer; they are made anew three at a time."""
    with opened_shared(database) as store:
        for project in PROJECTS:
            put(store, project, *(Entry(id=f"m{at}", words=("tide", f"w{at}")) for at in range(MEMORIES)))
        engine = store._engine
        with engine.writing() as txn:
            record = record_codec.decode_directory(txn.get(DIRECTORY_KEY, b"", db=engine.tables.meta))
            old = msgspec.structs.replace(record, analyzer=FIRST_ANALYZER)
            txn.put(DIRECTORY_KEY, record_codec.encode(old), db=engine.tables.meta)
    monkeypatch.setattr(reanalyse, "_MEMORIES_AT_ONCE", 3)
    return database


def start(dsn: str, lines: list[str], waits: Event | None = None) -> set[str]:
    """Starts a service, and asks it; `waits` is set when it waits for another one."""

    def say(line: str) -> None:
        lines.append(line)
        if waits is not None and line == OTHER:
            waits.set()

    with opened_shared(dsn, say=say) as store:
        return ids(ask(store, "q", terms=("tide",)))


@pytest.mark.parametrize("dies", [False, True])
def test_of_two_that_start_at_once_one_makes_the_words_anew(
    aged: str, monkeypatch: pytest.MonkeyPatch, dies: bool
) -> None:
    """The other waits for it; and goes on where it was, where it dies."""
    made: list[int] = []
    waits = Event()

    def counted(memories: Sequence[Sequence[Piece]]) -> list[Terms]:
        if not made:
            assert waits.wait(60)
        if dies and len(made) == 2 and not any(size < 0 for size in made):
            made.append(-1)
            raise OSError("power cut")
        made.append(len(memories))
        return terms.terms_of(memories)

    monkeypatch.setattr(reanalyse, "terms_of", counted)
    lines: tuple[list[str], list[str]] = ([], [])
    with ThreadPoolExecutor(2) as pool:
        started = [pool.submit(start, aged, said, waits) for said in lines]
        failures = [future.exception(120) for future in started]
    assert sum(size for size in made if size > 0) == len(PROJECTS) * MEMORIES
    assert [isinstance(failure, StartError) for failure in failures].count(True) == dies
    answers = [future.result() for future, failure in zip(started, failures, strict=True) if failure is None]
    assert answers == [{f"m{at}" for at in range(MEMORIES)}] * (1 if dies else 2)
    assert sorted(OTHER in said for said in lines) == [False, True]
    again: list[str] = []
    start(aged, again)
    assert again == []


def test_one_that_was_frozen_past_its_lease_ends_behind_the_words_that_it_was_writing(
    aged: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The words are written under a claim that nobody can take meanwhile; after them it has no claim."""

    def frozen(memories: Sequence[Sequence[Piece]]) -> list[Terms]:
        with psycopg.connect(aged, autocommit=True) as connection:
            connection.execute("UPDATE hummock.service SET until = clock_timestamp()")
        return terms.terms_of(memories)

    with monkeypatch.context() as patch:
        patch.setattr(reanalyse, "terms_of", frozen)
        with pytest.raises(ClaimLost, match="no claim to reanalyse"):
            start(aged, [])
    lines: list[str] = []
    start(aged, lines)
    assert lines[-1] == f"the words of {len(PROJECTS) * MEMORIES - 3} memories are made anew"
