"""Every step of a write fails once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import lmdb
import pytest

from hummock.core.errors import StorageFull, Unavailable
from hummock.store import WritableStore
from hummock.store.write.group import GroupCommit, Job, Outcome
from hummock.store.write.write_batch import WriteBatch
from tests.ports.asking import ask, put
from tests.store.answering import answers
from tests.store.opening import Blocker, opened
from tests.strategies import Entry, delete_request, put_request

BEFORE = (Entry(id="a", words=("tide", "还款"), seeds=(1, 2)), Entry(id="b", words=("loan",)))
CHANGE = (Entry(id="a", words=("loan", "core"), seeds=(3,)), Entry(id="c", tags=("java",), session_id="s1"))


def fail_at(patch: pytest.MonkeyPatch, step: int) -> list[int]:
    """Makes the step-th put into a table fail as in a full map; the list grows with every put."""
    puts: list[int] = []
    original = WriteBatch.put

    def failing(batch: WriteBatch, table: lmdb._Database, entries: Iterable[tuple[bytes, bytes]]) -> None:
        for entry in entries:
            puts.append(len(puts))
            if len(puts) == step:
                raise lmdb.MapFullError("put")
            original(batch, table, [entry])

    patch.setattr(WriteBatch, "put", failing)
    return puts


def state(store: WritableStore) -> object:
    memories = store.get("p", ["a", "b", "c"], 0, full=True)
    texts = store.look_up("p", [], [entry.key for entry in (*BEFORE, *CHANGE)]).holders
    return answers(store), memories, texts, store.project("p")


def test_a_write_that_fails_at_any_step_has_no_effect_and_can_be_repeated(tmp_path: Path) -> None:
    """A batch is all or nothing."""
    with opened(tmp_path) as store:
        put(store, "p", *BEFORE)
        before = state(store)
        for step in range(1, 100):
            with pytest.MonkeyPatch.context() as fault:
                puts = fail_at(fault, step)
                future = store.write("p", put_request(CHANGE, "request-1"))
                if future.exception(30) is None:
                    break
                assert isinstance(future.exception(30), StorageFull)
                assert len(puts) == step
            assert state(store) == before
        assert step > 20
        assert {memory.id for memory in store.get("p", ["a", "b", "c"], 2, full=True) if memory} == {"a", "b", "c"}
        after = state(store)
    with opened(tmp_path) as store:
        assert state(store) == after


def test_a_group_whose_commit_finds_no_room_is_committed_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = GroupCommit._commit

    def without_room(group: GroupCommit, jobs: list[Job], is_awaited: Callable[[], bool]) -> list[Outcome]:
        if len(jobs) > 1 or jobs[0].request.request_id == "large":
            raise lmdb.DiskError("commit")
        return commit(group, jobs, is_awaited)

    with opened(tmp_path) as store:
        put(store, "p", *BEFORE)
        monkeypatch.setattr(GroupCommit, "_commit", without_room)
        blocker = Blocker(store)
        removal = store.write("p", delete_request(["a"]))
        large = store.write("p", put_request([], "large"))
        blocker.release()
        assert removal.result(30).seq == 2
        with pytest.raises(StorageFull, match="make room on the disk"):
            large.result(30)
        assert set(ask(store, seed=1).memory_id) == {"b"}


def test_a_database_that_gave_up_stops_the_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """LMDB answers nothing any more after such an error, and callers must learn that only a restart helps."""

    def panic(group: GroupCommit, jobs: list[Job], is_awaited: Callable[[], bool]) -> list[Outcome]:
        raise lmdb.PanicError("commit")

    with opened(tmp_path) as store:
        put(store, "p", *BEFORE)
        with monkeypatch.context() as fault:
            fault.setattr(GroupCommit, "_commit", panic)
            with pytest.raises(Unavailable, match="restart the service") as caught:
                store.write("p", delete_request(["a"])).result(30)
        assert isinstance(caught.value.__cause__, lmdb.PanicError)
        with pytest.raises(Unavailable, match="restart the service"):
            put(store, "p", *CHANGE)
        assert "the writer stopped" in caplog.text
    with opened(tmp_path) as store:
        assert set(ask(store, seed=1).memory_id) == {"a", "b"}
