"""Sessions where calls meet, stores are full, and removals are cut short."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count
from pathlib import Path

import lmdb
import pytest

from hummock.core.errors import RequestIdReused, SessionNotFound, StorageFull
from hummock.core.session import PromptRole, SessionMessage
from hummock.memories.sessions import Sessions, title_of
from hummock.ports.store import Store
from hummock.ports.writes import UnitOfWork
from tests.fakes import FakeClock
from tests.memories.commands import creation, removal, saying
from tests.store.opening import MIB, opened
from tests.strategies import write_request
from tests.workplace import Workplace

REQUEST_ID = "5f0c0a5e-0000-4000-8000-000000000000"
MESSAGE_TABLES = (b"message", b"message_id", b"session_deleted")


def sessions_of(store: Store) -> Sessions:
    numbers = count()
    return Sessions(store, FakeClock(), make_id=lambda: f"made-{next(numbers)}")


@pytest.fixture
def sessions(work: Workplace) -> Sessions:
    return sessions_of(work.store)


def fill(store: Store, session_id: str, messages: int) -> None:
    """Many messages in one write."""

    def apply(work: UnitOfWork) -> None:
        for number in range(messages):
            session = work.sessions.get(session_id)
            assert session is not None
            said = SessionMessage(id=f"m{number}", role=PromptRole.USER, content="还款", raw="", send_time=1.0)
            work.sessions.append(session, said)

    store.write("p", write_request(apply)).result(timeout=30)


def say_until_full(sessions: Sessions) -> int:
    """Appends large messages until there is no room; how many went in."""
    for number in range(1000):
        try:
            sessions.append(saying("潮汐木芯" * 2000))
        except StorageFull:
            return number
    raise AssertionError("never full")


def entries(directory: Path) -> dict[bytes, int]:
    """Number of entries on disk in the tables of messages."""
    with lmdb.open(str(directory), readonly=True, lock=False, max_dbs=64) as env, env.begin() as txn:
        return {name: txn.stat(env.open_db(name, txn=txn, create=False))["entries"] for name in MESSAGE_TABLES}


def test_calls_that_come_together_get_one_active_session(sessions: Sessions) -> None:
    """S4-11."""
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: sessions.active("p"), range(8)))
    assert len({answer.session.id for answer in answers}) == 1
    assert sum(answer.is_new for answer in answers) == 1


def test_a_repeated_creation_is_one_session(sessions: Sessions) -> None:
    first = sessions.create(creation("", REQUEST_ID))
    assert sessions.create(creation("", REQUEST_ID)) == first
    with pytest.raises(RequestIdReused):
        sessions.create(replace(creation("", REQUEST_ID), fingerprint=b"other"))
    assert len(sessions.page("p", None, 9, archived=False).sessions) == 1


def test_a_repeated_removal_leaves_a_session_that_was_made_since(sessions: Sessions) -> None:
    sessions.create(creation())
    first = sessions.delete(removal(request_id=REQUEST_ID))
    sessions.create(creation())
    assert sessions.delete(removal(request_id=REQUEST_ID)) == first
    assert sessions.get("p", "s").id == "s"


@pytest.mark.parametrize("messages", [0, 1, 1023, 1024, 1025, 2500])
def test_a_removal_takes_every_message_from_the_disk(tmp_path: Path, messages: int) -> None:
    with opened(tmp_path) as store:
        sessions = sessions_of(store)
        sessions.create(creation())
        sessions.create(creation("kept"))
        sessions.append(saying("stays", "kept"))
        fill(store, "s", messages)
        assert sessions.delete(removal()).message_count == messages
    assert entries(tmp_path) == {b"message": 1, b"message_id": 1, b"session_deleted": 0}


def test_a_removal_that_was_cut_short_is_finished_by_the_next(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        sessions = sessions_of(store)
        for name in ("s", "t"):
            sessions.create(creation(name))
        fill(store, "s", 5)
        # The state that a service killed after its first write leaves.
        store.write("p", write_request(lambda work: work.sessions.delete("s"))).result(timeout=30)
        with pytest.raises(SessionNotFound):
            sessions.get("p", "s")
        sessions.delete(removal("t"))
    assert entries(tmp_path) == dict.fromkeys(MESSAGE_TABLES, 0)


def test_a_full_store_takes_no_message_and_still_removes_sessions(tmp_path: Path) -> None:
    with opened(tmp_path, quota_bytes=2 * MIB) as store:
        sessions = sessions_of(store)
        sessions.create(creation())
        kept = say_until_full(sessions)
        assert kept > 10
        assert len(store.sessions.behind("p", "s", 0, 1 << 30)) == kept
        assert sessions.delete(removal()).message_count == kept
        sessions.create(creation())
        assert sessions.append(saying("again")).position == 1


@pytest.mark.parametrize("call", [lambda each: each.append(saying("x")), lambda each: each.delete(removal())])
def test_an_unknown_session_makes_none(work: Workplace, sessions: Sessions, call: Callable[[Sessions], object]) -> None:
    with pytest.raises(SessionNotFound):
        call(sessions)
    assert work.store.project("p") is None


@pytest.mark.parametrize(
    ("content", "title"),
    [
        ("", ""),
        (" \n\t\n ", ""),
        ("  还款\u3000方式\tnow  \nmore", "还款 方式 now"),
        ("x" * 40, "x" * 40),
        ("x" * 41, "x" * 39 + "…"),
        ("\x1b[31mred\u202egnirts", "[31mredgnirts"),
    ],
)
def test_a_title_is_one_line_without_what_a_terminal_would_obey(content: str, title: str) -> None:
    """S4-07."""
    assert title_of(content) == title
