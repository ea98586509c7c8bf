from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from enum import IntEnum
from pathlib import Path
from threading import Event

import pytest

from hummock.core.errors import InvalidRequest, RequestIdReused, Unavailable
from hummock.core.session import PromptRole, Session, SessionMessage
from hummock.ports.writes import UnitOfWork, WriteRequest, Written
from hummock.store.errors import DataFileCut
from hummock.store.limits import DEFAULT_LIMITS, StoreLimits
from hummock.store.write.group import GroupCommit, Job, Outcome
from hummock.store.write.writer import BULK_SHARE, Writer
from tests.ports.asking import ask, ids, put
from tests.store.opening import Blocker, opened
from tests.strategies import Entry, put_request, write_request


class Colour(IntEnum):
    RED = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    ids: tuple[str, ...]
    colour: Colour
    hash: bytes
    score: float


def fail(unit: UnitOfWork) -> None:
    Entry(id="broken", words=("broken",)).put(unit)
    raise KeyError("broken")


def test_a_failing_write_leaves_its_neighbours_alone(tmp_path: Path) -> None:
    """A failed job never aborts its neighbours in a group commit."""
    with opened(tmp_path) as store:
        blocker = Blocker(store)
        first = store.write("p", put_request([Entry(id="a")]))
        broken = store.write("p", write_request(fail))
        last = store.write("p", put_request([Entry(id="b")]))
        blocker.release()
        assert (first.result(30).seq, last.result(30).seq) == (1, 2)
        with pytest.raises(KeyError):
            broken.result(30)
        assert set(ask(store, terms=["tide", "broken"]).memory_id) == {"a", "b"}


def test_a_failing_write_that_made_a_project_gives_its_terms_back(tmp_path: Path) -> None:
    """The group is written again without it, and the numbers of its terms go to those of others."""
    with opened(tmp_path) as store:
        blocker = Blocker(store)
        broken = store.write("new", write_request(fail))
        others = [
            store.write("new", put_request([Entry(id="a", words=("harbour", "broken"))])),
            store.write("new", put_request([Entry(id="b", words=("broken", "lamp"))])),
        ]
        blocker.release()
        with pytest.raises(KeyError):
            broken.result(30)
        assert [other.result(30).seq for other in others] == [1, 2]

        def found() -> list[set[str]]:
            return [ids(ask(store, "new", terms=[word])) for word in ("broken", "harbour", "lamp")]

        assert found() == [{"a", "b"}, {"a"}, {"b"}]
    with opened(tmp_path) as store:
        assert found() == [{"a", "b"}, {"a"}, {"b"}]


@pytest.fixture
def commits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Number of writes in each transaction."""
    counted: list[int] = []

    class Counting(GroupCommit):
        def commit(self, jobs: Sequence[Job], is_awaited: Callable[[], bool] = lambda: False) -> list[Outcome]:
            outcomes = super().commit(jobs, is_awaited)
            counted.append(len(outcomes))
            return outcomes

    monkeypatch.setattr("hummock.store.write.writer.GroupCommit", Counting)
    return counted


def test_waiting_writes_share_one_transaction(tmp_path: Path, commits: list[int]) -> None:
    with opened(tmp_path, limits=StoreLimits(group_jobs=8)) as store:
        blocker = Blocker(store)
        futures = [store.write("p", put_request([Entry(id=f"m{number}")])) for number in range(12)]
        blocker.release()
        assert [future.result(30).seq for future in futures] == list(range(1, 13))
    assert sum(commits) == 13
    assert len(commits) <= 4
    assert max(commits) <= 8


def say(unit: UnitOfWork) -> None:
    session = unit.sessions.get("s")
    if session is None:
        session = Session(id="s", title="", create_time=1.0, update_time=1.0)
        unit.sessions.create(session)
    number = session.message_count
    message = SessionMessage(id=f"m{number}", role=PromptRole.USER, content="还款", raw="", send_time=1.0)
    unit.sessions.append(session, message)


@pytest.mark.parametrize("write", [put_request([Entry(id="a")]), write_request(say)], ids=["memory", "message"])
@pytest.mark.parametrize("fails", [False, True])
def test_a_large_group_is_split_by_its_bytes(
    tmp_path: Path, commits: list[int], write: WriteRequest[int], fails: bool
) -> None:
    with opened(tmp_path, limits=StoreLimits(group_bytes=1)) as store:
        blocker = Blocker(store)
        broken = store.write("p", write_request(fail)) if fails else None
        futures = [store.write("p", write) for _ in range(5)]
        blocker.release()
        assert [future.result(30).seq for future in futures] == [1, 2, 3, 4, 5]
        assert broken is None or isinstance(broken.exception(30), KeyError)
    assert commits == [1, 1 + fails, 1, 1, 1, 1]


def test_repeats_within_one_group_have_one_effect(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        blocker = Blocker(store)
        same = [store.write("p", put_request([Entry(id="a")], "id-1", b"one")) for _ in range(3)]
        other = store.write("p", put_request([Entry(id="b")], "id-1", b"two"))
        blocker.release()
        assert [future.result(30).seq for future in same] == [1, 1, 1]
        with pytest.raises(RequestIdReused):
            other.result(30)


def test_a_repeat_after_a_restart_has_the_whole_first_reply(tmp_path: Path) -> None:
    reply = Reply(ids=("a", "世界"), colour=Colour.RED, hash=b"\x00\xff", score=0.5)
    request = WriteRequest(request_id="id-1", fingerprint=b"f", reply_type=Reply, apply=lambda unit: reply)
    with opened(tmp_path) as store:
        assert store.write("p", request).result(30).reply is reply
    with opened(tmp_path) as store:
        repeated = store.write("p", request).result(30)
        assert repeated == Written(seq=1, reply=reply, is_repeat=True)
        assert isinstance(repeated.reply.colour, Colour)


def test_a_write_whose_caller_has_gone_is_dropped(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        blocker = Blocker(store)
        gone = store.write("p", put_request([Entry(id="a")]))
        assert gone.cancel()
        after = store.write("p", put_request([Entry(id="b")]))
        blocker.release()
        assert after.result(30).seq == 1
        assert store.get("p", ["a"], 0, full=False) == [None]


def test_nobody_waits_forever_when_the_writer_dies(tmp_path: Path) -> None:
    class Broken(GroupCommit):
        def __init__(self) -> None:
            self.entered = Event()
            self.go = Event()

        def commit(self, jobs: object, is_awaited: object = None) -> list[Outcome]:
            self.entered.set()
            assert self.go.wait(30)
            raise SystemError("a bug")

    def publish(projects: Iterable[str], shrunk: Collection[str]) -> None:
        raise AssertionError

    group = Broken()
    writer = Writer(group, publish, lambda: False, DEFAULT_LIMITS.group_jobs)
    first = writer.submit("p", put_request([]))
    assert group.entered.wait(30)
    queued = writer.submit("p", put_request([]))
    group.go.set()
    for future in (first, queued):
        with pytest.raises(Unavailable, match="restart"):
            future.result(30)
    with pytest.raises(Unavailable):
        writer.submit("p", put_request([])).result(30)
    writer.close()


class Idle(GroupCommit):
    """Work without anything to commit."""

    def __init__(self) -> None:
        pass


def test_a_writer_with_nothing_to_write_does_what_it_left_for_later() -> None:
    left, rested = iter([True, True, False]), Event()

    def rest() -> bool:
        does_more = next(left, False)
        if not does_more:
            rested.set()
        return does_more

    writer = Writer(Idle(), lambda projects, shrunk: None, rest, 8)
    assert rested.wait(30)
    writer.close()


class Recording(GroupCommit):
    """Notes that it commits, and does nothing else."""

    def __init__(self, order: list[str]) -> None:
        self.order = order

    def commit(  # type: ignore[override] # a list will do here
        self, jobs: list[Job], is_awaited: Callable[[], bool] = lambda: False
    ) -> list[Outcome]:
        self.order.append("committed")
        return [Outcome(job=job, written=Written(seq=1, reply=7)) for job in jobs]


def test_what_fails_beside_writes_stops_no_writer() -> None:
    """The write says what is wrong, where it fails as well; what was left is tried again behind it."""
    order, failed, rested = list[str](), Event(), Event()

    def rest() -> bool:
        if not failed.is_set():
            failed.set()
            raise DataFileCut(Path("data"), 1, 2)
        rested.set()
        return False

    writer = Writer(Recording(order), lambda projects, shrunk: None, rest, 8)
    assert failed.wait(30)
    future: Future[Written[int]] = writer.submit("p", put_request([]))
    assert future.result(30).reply == 7
    assert rested.wait(30)
    writer.close()
    assert writer.stopped == ""


def test_callers_are_told_only_after_the_write_is_published() -> None:
    order: list[str] = []

    def publish(projects: Iterable[str], shrunk: Collection[str]) -> None:
        order.append(f"published {sorted(projects)}")

    writer = Writer(Recording(order), publish, lambda: False, 8)
    future: Future[Written[int]] = writer.submit("p", put_request([]))
    future.add_done_callback(lambda done: order.append("told"))
    writer.close()
    assert order == ["committed", "published ['p']", "told"]


@pytest.mark.parametrize("name", ["", "项" * 200])
def test_a_project_needs_a_name_of_bounded_length(tmp_path: Path, name: str) -> None:
    with opened(tmp_path) as store:
        with pytest.raises(InvalidRequest, match="project"):
            put(store, name, Entry(id="a"))
        assert store.status().project_count == 0


def test_interactive_writes_are_committed_before_bulk_and_bulk_keeps_its_share(
    tmp_path: Path, commits: list[int]
) -> None:
    """D16."""
    order: list[str] = []

    def noting(name: str, *, is_bulk: bool = False) -> WriteRequest[int]:
        def apply(unit: UnitOfWork) -> int:
            order.append(name)
            return 0

        return replace(write_request(apply), is_bulk=is_bulk)

    with opened(tmp_path, limits=StoreLimits(group_jobs=2)) as store:
        blocker = Blocker(store)
        futures = [store.write("p", noting(f"bulk {number}", is_bulk=True)) for number in range(3)]
        futures += [store.write("p", noting(f"call {number}")) for number in range(2 * BULK_SHARE)]
        blocker.release()
        for future in futures:
            future.result(30)
    groups, taken = [], 0
    for size in commits[1:]:
        groups.append(order[taken : taken + size])
        taken += size
    assert [[one.split()[0] for one in group] for group in groups] == [
        *[["call"] * 2] * (BULK_SHARE - 1),
        ["call", "bulk"],
        ["call"],
        ["bulk"] * 2,
    ]
    assert [one for one in order if one.startswith("call")] == [f"call {number}" for number in range(2 * BULK_SHARE)]


@pytest.mark.parametrize("fails", [False, True])
def test_an_interactive_write_waits_for_little_of_a_bulk_load(tmp_path: Path, commits: list[int], fails: bool) -> None:
    """D16: what a transaction did not take of the load stands behind who came meanwhile; also done again."""
    begun, may_end = Event(), Event()

    def slow(unit: UnitOfWork) -> int:
        begun.set()
        assert may_end.wait(30)
        Entry(id="b0").put(unit)
        return 0

    with opened(tmp_path) as store:
        blocker = Blocker(store)
        broken = store.write("p", replace(write_request(fail), is_bulk=True)) if fails else None
        bulk = [store.write("p", replace(write_request(slow), is_bulk=True))]
        bulk += [store.write("p", replace(put_request([Entry(id=f"b{n}")]), is_bulk=True)) for n in (1, 2)]
        blocker.release()
        assert begun.wait(30)
        call = store.write("p", put_request([Entry(id="call")]))
        may_end.set()
        assert [one.result(30).seq for one in (bulk[0], call, *bulk[1:])] == [1, 2, 3, 4]
        assert broken is None or isinstance(broken.exception(30), KeyError)
    assert commits == [1, 1 + fails, 1, 2]
