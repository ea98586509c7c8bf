"""Retention by age, by count, by bytes; memories of the indexer are exempt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest
from msgspec.structs import replace

from hummock.core.deadline import Deadline
from hummock.core.errors import DeadlinePassed
from hummock.core.memory import Draft, Filter, Origin
from hummock.core.project import ProjectInfo
from hummock.core.settings import ProjectSettings, RetentionSettings
from hummock.memories import retention as room
from hummock.memories.forget import Forget, ForgetCommand
from hummock.memories.garden import DELETED_AT_ONCE
from hummock.memories.retention import Retention
from hummock.memories.sessions import Sessions
from hummock.ports.writes import ProjectRemoval, UnitOfWork
from hummock.store.snapshot import TableSnapshot
from tests.memories.commands import creation, saying
from tests.snapshots import at
from tests.strategies import write_request
from tests.workplace import Workplace, note

DAY = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A store, what keeps it small, and its sessions."""

    work: Workplace
    retention: Retention
    sessions: Sessions

    def keep(self, project: str = "p", /, **values: float) -> None:
        """Sets what a project keeps, and notes it as the writer would."""
        settings = ProjectSettings(retention=RetentionSettings(**values))  # type: ignore[arg-type]  # by their names
        self.write(project, lambda work: work.set_settings(settings))

    def write(self, project: str, apply: Callable[[UnitOfWork], None]) -> None:
        def applied(work: UnitOfWork) -> ProjectInfo:
            apply(work)
            return work.info()

        self.work.store.write(project, write_request(applied)).result()

    def ids(self, project: str = "p") -> list[str]:
        page = self.work.store.page(project, Filter(), 0, 1000, full=False)
        return [one.id for one in page.memories]


@pytest.fixture
def kept(work: Workplace) -> Kept:
    numbers = count()
    sessions = Sessions(work.store, work.clock, make_id=lambda: f"made-{next(numbers)}")
    retention = Retention(work.store, Forget(work.store), sessions, work.clock)
    work.store.follow(retention.note)
    return Kept(work=work, retention=retention, sessions=sessions)


def of_the_indexer(draft: Draft) -> Draft:
    return replace(draft, origin=Origin.INDEXER)


def test_what_is_too_old_is_forgotten_within_the_hour(kept: Kept) -> None:
    kept.keep(max_age_days=2)
    kept.work.teach(note("tide", "old"), of_the_indexer(note("lamp", "code")))
    kept.retention.look()
    kept.work.clock.move(DAY)
    kept.work.teach(note("pier", "young"))
    kept.work.clock.move(DAY)
    kept.retention.look()
    # Two days are not more than two days.
    assert kept.ids() == ["old", "code", "young"]
    kept.work.clock.move(3600)
    kept.retention.look()
    assert kept.ids() == ["code", "young"]


def test_sessions_go_when_their_newest_message_is_too_old(kept: Kept) -> None:
    kept.keep(max_age_days=1)
    for name in ("silent", "alive"):
        kept.sessions.create(creation(name))
    kept.work.clock.move(DAY)
    kept.sessions.append(saying("still here", "alive"))
    kept.work.clock.move(3600)
    kept.retention.look()
    assert [one.id for one in kept.work.store.sessions.all("p")] == ["alive"]


def test_of_too_many_the_newest_stay_and_what_is_written_again_is_new(kept: Kept) -> None:
    kept.work.teach(
        *(note(f"tide {number}", f"m{number}") for number in range(6)), of_the_indexer(note("lamp", "code"))
    )
    kept.work.teach(note("tide again", "m0"))
    kept.keep(max_memories=3)
    kept.retention.look()
    assert kept.ids() == ["m4", "m5", "code", "m0"]
    kept.work.teach(note("pier", "m6"))
    kept.retention.look()
    assert kept.ids() == ["m5", "code", "m0", "m6"]


@pytest.mark.parametrize(("name", "most"), [("max_memories", 1), ("max_bytes", len("tide 29"))])
def test_more_than_a_write_takes_go_in_one_look(
    kept: Kept, monkeypatch: pytest.MonkeyPatch, name: str, most: int
) -> None:
    monkeypatch.setattr(room, "DELETED_AT_ONCE", 4)
    kept.work.teach(*(note(f"tide {number}", f"m{number}") for number in range(10, 30)))
    kept.keep(**{name: most})
    kept.retention.look()
    assert kept.ids() == ["m29"]


def test_bytes_are_those_of_the_texts(kept: Kept) -> None:
    kept.work.teach(
        note("a" * 100, "a"), note("还款" * 10, "b"), of_the_indexer(note("c" * 900, "code")), note("d" * 40, "d")
    )
    kept.keep(max_bytes=100)
    kept.retention.look()
    assert kept.ids() == ["b", "code", "d"]
    kept.keep(max_bytes=99)
    kept.retention.look()
    assert kept.ids() == ["code", "d"]


def test_others_keep_all_they_have(kept: Kept) -> None:
    for project in ("p", "q"):
        kept.work.teach(note("tide", "one"), note("lamp", "two"), project=project)
    kept.keep(max_memories=1)
    kept.retention.look()
    assert (kept.ids("p"), kept.ids("q")) == (["two"], ["one", "two"])
    kept.keep()
    kept.work.teach(note("pier", "three"))
    kept.retention.look()
    assert kept.ids("p") == ["two", "three"]


def test_what_was_set_before_a_start_holds_behind_it(tmp_path: Path, kept: Kept) -> None:
    kept.work.teach(note("tide", "one"), note("lamp", "two"))
    kept.keep(max_memories=1)
    # Nobody has told this one of the writes.
    Retention(kept.work.store, Forget(kept.work.store), kept.sessions, kept.work.clock).look()
    assert kept.ids() == ["two"]


def test_a_project_that_fails_stops_no_other_and_comes_again(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    for project in ("p", "q"):
        kept.work.teach(note("tide", "one"), note("lamp", "two"), project=project)
        kept.keep(project, max_memories=1)
    whole, broken = TableSnapshot.first_passing, [True]

    def first_passing(snapshot: TableSnapshot, where: Filter, limit: int) -> tuple[tuple[str, ...], int]:
        if broken:  # "p" is looked at first
            broken.clear()
            raise OSError("the disk is away")
        return whole(snapshot, where, limit)

    monkeypatch.setattr(TableSnapshot, "first_passing", first_passing)
    with pytest.raises(OSError, match="away"):
        kept.retention.look()
    assert (kept.ids("p"), kept.ids("q")) == (["one", "two"], ["two"])
    kept.retention.look()
    assert kept.ids("p") == ["two"]


def test_a_project_that_was_deleted_is_none(kept: Kept) -> None:
    kept.work.teach(note("tide", "one"), note("lamp", "two"))
    kept.keep(max_age_days=1, max_memories=1, max_bytes=1)
    kept.work.store.remove_project("p", ProjectRemoval(request_id="", fingerprint=b"")).result()
    kept.retention.look()
    assert kept.work.store.project("p") is None


# Forgetting in a large project: in parts, and only for as long as somebody waits.


SIZE = DELETED_AT_ONCE + 88
ALL_USER_INPUTS = ForgetCommand(
    project="p", request_id="", fingerprint=b"f", where=Filter(origins=frozenset({Origin.USER_INPUT}))
)


@pytest.fixture
def large(work: Workplace) -> Workplace:
    work.teach(*(note(f"tide {number}", f"m{number}", Origin.USER_INPUT) for number in range(SIZE)))
    return work


def until_asked(times: int) -> Deadline:
    """A deadline that ends after this many looks at the clock, as for a caller who hangs up."""
    looks = count(1)
    return Deadline(until_s=times + 0.5, monotonic=lambda: float(next(looks)))


def test_a_project_is_forgotten_in_parts_that_say_what_is_left(large: Workplace) -> None:
    """X7."""
    forget = Forget(large.store)
    counted, _ = forget.count(ALL_USER_INPUTS)
    first, _ = forget(ALL_USER_INPUTS)
    second, _ = forget(ALL_USER_INPUTS)
    assert (counted.memory_count, counted.remaining_count) == (SIZE, 0)
    assert (first.memory_count, first.remaining_count) == (DELETED_AT_ONCE, 88)
    assert (second.memory_count, second.remaining_count) == (88, 0)
    assert at(large.store, "p").first_passing(Filter(), 1) == ((), 0)


@pytest.mark.parametrize("looks", [0, 1, 2])
def test_who_hangs_up_while_it_looks_has_nothing_forgotten(large: Workplace, looks: int) -> None:
    """X7: after each page that it reads, and before what is held is read."""
    forget, seq = Forget(large.store), large.store.generation("p").seq
    for ask in (forget, forget.count):
        with pytest.raises(DeadlinePassed):
            ask(ALL_USER_INPUTS, until_asked(looks))
    assert large.store.generation("p").seq == seq
    assert len(at(large.store, "p").first_passing(Filter(), SIZE)[0]) == SIZE


@pytest.mark.parametrize("looks", [0, 1])
@pytest.mark.parametrize("only_count", [True, False])
def test_who_hangs_up_while_a_filter_is_tried_has_nothing_deleted(
    large: Workplace, looks: int, only_count: bool
) -> None:
    seq = large.store.generation("p").seq
    with pytest.raises(DeadlinePassed):
        large.garden.delete_where(
            "p", "", ALL_USER_INPUTS.where, b"f", only_count=only_count, deadline=until_asked(looks)
        )
    assert large.store.generation("p").seq == seq
