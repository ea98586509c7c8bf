"""A wall clock that jumps forgets nothing for good, and one that was set right does not keep for ever what is due."""

from __future__ import annotations

import logging
import os
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from hummock.core.memory import Filter
from hummock.core.project import ProjectInfo
from hummock.core.session import CreateSession
from hummock.core.settings import ProjectSettings, RetentionSettings
from hummock.memories.forget import Forget
from hummock.memories.retention import Expiry, Retention
from hummock.memories.sessions import Sessions
from hummock.ports.writes import UnitOfWork, WriteRequest
from hummock.store.lmdb.files import DATA_FILE
from hummock.store.settled_clock import SettledClock
from tests.fakes import FakeClock
from tests.store.opening import opened, opened_shared
from tests.strategies import write_request
from tests.workplace import Workplace, note, over, workplace

DAY = 86_400.0
NOW = 1_700_000_000.0
LEAPS = (300.0, 7_200.0, DAY, 40 * DAY, 100 * DAY, 3650 * DAY, 30_000 * DAY)
"""Leaps from a sleep of the machine to a clock that is a lifetime ahead."""

SETTLED_S = 600.0
LATER = 7e9
"""A time after that of every clock that is right."""


class Forgetting:
    """A project of which something is forgotten by each of the ways that go by the clock."""

    def __init__(self, work: Workplace) -> None:
        self.work = work
        numbers = count()
        self.sessions = Sessions(work.store, work.clock, make_id=lambda: f"made-{next(numbers)}")
        self.retention = Retention(work.store, Forget(work.store), self.sessions, work.clock)
        self.expiry = Expiry(work.store)
        settings = ProjectSettings(retention=RetentionSettings(max_age_days=30))

        def keep(unit: UnitOfWork) -> ProjectInfo:
            unit.set_settings(settings)
            return unit.info()

        work.store.write("p", write_request(keep)).result()
        work.store.follow(self.retention.note)
        work.teach(note("tide table", "kept"), replace(note("pier lamp", "ending"), expire_time=NOW + 29 * DAY))
        session = CreateSession(project="p", request_id="", fingerprint=b"c", session_id="talk", title="")
        self.sessions.create(session)
        assert not self.repeat("once")

    def repeat(self, request_id: str) -> bool:
        """True if a write with this id was known."""

        def apply(unit: UnitOfWork) -> ProjectInfo:
            return unit.info()

        request = WriteRequest(
            request_id=request_id, fingerprint=b"f", reply_type=ProjectInfo, apply=apply, creates=False
        )
        return self.work.store.write("p", request).result().is_repeat

    def look(self) -> None:
        """Runs the work of the background threads, and a write."""
        self.retention.note("p", 0)
        self.retention.look()
        while self.expiry.remove_some():
            pass
        self.work.teach(note("a write beside it", "other"))

    def left(self) -> set[str]:
        """Stored memories, hidden or not."""
        self.work.clock.leap(NOW - self.work.clock.now())
        ids = {one.id for one in self.work.store.page("p", Filter(), 0, 100, full=False).memories} - {"other"}
        return ids | {session.id for session in self.work.store.sessions.all("p")}


ALL = {"kept", "ending", "talk"}


@pytest.mark.parametrize("back", [False, True], ids=["ahead", "back and ahead"])
@pytest.mark.parametrize("leap_s", LEAPS)
def test_a_clock_that_is_wrong_for_some_seconds_forgets_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, leap_s: float, back: bool
) -> None:
    with workplace(tmp_path) as work, caplog.at_level(logging.WARNING):
        one = Forgetting(work)
        one.look()
        if back:
            work.clock.leap(-leap_s)
            one.look()
        work.clock.leap(leap_s)
        for _ in range(5):
            one.look()
            work.clock.move(2.0)
        # Who repeats a write meanwhile is told what was answered before.
        assert one.repeat("once")
        assert work.store.status().clock_ahead_s == pytest.approx(leap_s)
        work.clock.leap(-leap_s)
        one.look()
        assert work.store.status().clock_ahead_s == 0.0
        assert one.left() == ALL
        assert one.repeat("once")
    assert "nothing is forgotten for good until" in caplog.text


@pytest.mark.parametrize("leap_s", LEAPS)
def test_a_clock_that_was_set_right_forgets_what_is_due_behind_ten_minutes(tmp_path: Path, leap_s: float) -> None:
    with workplace(tmp_path) as work:
        one = Forgetting(work)
        one.look()
        work.clock.leap(leap_s)
        one.look()
        (shown,) = work.store.get("p", ["ending"], 0, full=False)
        assert (shown is None) is (leap_s >= 29 * DAY)
        for _ in range(7):
            work.clock.move(SETTLED_S / 6)
            one.look()
        assert work.store.status().clock_ahead_s == 0.0
        assert one.left() == (ALL if leap_s < 29 * DAY else set())


@pytest.mark.parametrize("unused_s", LEAPS)
def test_a_start_with_a_clock_far_ahead_of_the_newest_write_waits_as_well(tmp_path: Path, unused_s: float) -> None:
    with workplace(tmp_path) as work:
        Forgetting(work)
    os.utime(tmp_path / DATA_FILE, (NOW, NOW))
    clock = FakeClock(NOW + unused_s)
    is_due = unused_s >= 29 * DAY
    with opened(tmp_path, clock=clock) as store:
        expiry = Expiry(store)
        assert not expiry.remove_some()
        clock.move(SETTLED_S)
        assert expiry.remove_some() is is_due


def test_a_start_far_ahead_of_the_clock_of_postgresql_waits_as_well(database: str) -> None:
    """The database's own clock is what a service's is compared with."""
    with opened_shared(database) as store:
        over(store, FakeClock()).teach(replace(note("pier lamp", "ending"), expire_time=LATER))
    clock = FakeClock(LATER + DAY)
    with opened_shared(database, clock=clock) as store:
        expiry = Expiry(store)
        assert not expiry.remove_some()
        assert store.status().clock_ahead_s > 0.0
        clock.move(SETTLED_S)
        assert expiry.remove_some()
        assert store.status().clock_ahead_s == 0.0


def test_a_start_behind_a_night_forgets_at_once(tmp_path: Path) -> None:
    clock = FakeClock(NOW)
    assert SettledClock(clock, NOW - DAY / 2).settled() == NOW
    assert SettledClock(clock, None).settled() == NOW


@given(st.lists(st.tuples(st.floats(0, 500), st.floats(-1e9, 1e9)), max_size=30))
def test_it_is_never_ahead_of_the_clock_and_reaches_it_when_that_is_left_alone(
    steps: list[tuple[float, float]],
) -> None:
    clock = FakeClock(4e9)
    settled = SettledClock(clock)
    for passed_s, leap_s in steps:
        clock.move(passed_s)
        clock.leap(leap_s)
        assert settled.settled() <= clock.now() + 1e-3
    clock.move(SETTLED_S + 1)
    assert settled.settled() == pytest.approx(clock.now())


def test_a_machine_that_sleeps_again_and_again_is_behind_by_its_last_sleeps_alone() -> None:
    clock = FakeClock(NOW)
    settled = SettledClock(clock)
    for _ in range(200):
        clock.move(300.0)
        clock.leap(120.0)
        assert clock.now() - settled.settled() <= 3 * 120.0


def test_a_leap_that_is_taken_back_in_part_counts_from_then_on() -> None:
    clock = FakeClock(NOW)
    settled = SettledClock(clock)
    clock.leap(100 * DAY)
    settled.settled()
    clock.move(SETTLED_S - 1)
    clock.leap(-50 * DAY)
    assert settled.settled() == NOW + SETTLED_S - 1
    clock.move(2.0)
    assert settled.settled() == NOW + SETTLED_S + 1
    clock.move(SETTLED_S)
    assert settled.settled() == clock.now()
