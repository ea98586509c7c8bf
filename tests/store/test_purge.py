"""Removed content is nowhere in the directory any more, and the rest is unchanged."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from hummock.core.learning import TurnObserved
from hummock.core.memory import Filter
from hummock.core.session import PromptRole, Session, SessionMessage
from hummock.learning.log import record
from hummock.memories.forget import Forget, ForgetCommand
from hummock.ports.writes import UnitOfWork
from hummock.store.errors import DirectoryInUse, DirectoryUnusable
from hummock.store.lmdb.files import DirectoryLock
from hummock.store.upkeep import Backups, Purged, check, compact, purge
from hummock.store.upkeep.moment import inspected
from hummock.store.write.project_removal import Remains
from tests.ports.asking import ask, ids, put
from tests.store.opening import opened
from tests.store.test_backup import held, made
from tests.store.test_project_removal import fill, removal
from tests.strategies import Entry, delete_request, embedding, learned_request, put_request, write_request

CANARY = "canary-7f3a9c"
HAN = "金丝雀密码七三九"
KEYWORD = "canarykeyword"
WORDS = (CANARY, HAN, "canaryword", KEYWORD)
DELETED = {CANARY, HAN, "canaryword"}


def found(directory: Path) -> set[str]:
    """Words that some byte sequence of the directory still holds."""
    contents = [path.read_bytes() for path in directory.rglob("*") if path.is_file()]
    return {word for word in WORDS if any(word.encode() in content for content in contents)}


def purged(data: Path, now: float = 1e9) -> Purged:
    return purge(data, now, lambda done, total: None)


def nothing(done: int, total: int) -> None:
    """A progress callback that does nothing."""


def tell(unit: UnitOfWork) -> None:
    unit.sessions.create(Session(id=f"{CANARY}-session", title=HAN, create_time=1.0, update_time=1.0))
    session = unit.sessions.get(f"{CANARY}-session")
    assert session is not None
    for number in range(600):
        said = SessionMessage(id=f"m{number}", role=PromptRole.USER, content=HAN, raw=CANARY, send_time=1.0)
        session = replace(session, message_count=unit.sessions.append(session, said).position)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory from which a memory, a session and a project were removed; what they left was not cleared yet."""
    directory = tmp_path / "data"
    monkeypatch.setattr(Remains, "clear_some", lambda remains: False)
    with opened(directory) as store:
        fill(store)
        secret = Entry(id=f"{CANARY}-id", words=("canaryword", HAN), tags=(CANARY,), seeds=(91,))
        store.write("p", put_request([secret], "5f0c0f5e-0000-4000-8000-0000000000aa")).result(30)
        store.write("p", write_request(tell)).result(30)
        fill(store, CANARY)
        put(store, CANARY, replace_id(secret))
        assert found(directory) == DELETED
        store.write("p", delete_request([secret.id])).result(30)
        store.write("p", write_request(lambda unit: unit.sessions.delete(f"{CANARY}-session"))).result(30)
        store.remove_project(CANARY, removal("5f0c0f5e-0000-4000-8000-0000000000ab")).result(30)
    (directory / "service.log").write_text(CANARY)
    return directory


def replace_id(entry: Entry) -> Entry:
    return Entry(id="other", words=entry.words, seeds=(92,))


def test_no_byte_no_vector_and_no_answer_of_what_was_removed_is_left(data: Path) -> None:
    """X7, I5."""
    assert found(data) == DELETED
    done = purged(data)
    assert found(data) == set()
    assert done.left_out["term"] > 0
    assert (data / "data.mdb").stat().st_mode & 0o777 == 0o600
    with inspected(data) as snapshot:
        assert {snapshot.count(table) for table in ("retired", "retired_age", "request", "ops", "removed")} == {0}
    with opened(data) as store:
        assert store.vectors([embedding(91).digest]) == [None]


def test_no_byte_of_what_was_forgotten_is_left_not_even_in_the_learning_log(tmp_path: Path) -> None:
    """X7, I7."""
    said = TurnObserved(scope=f"{CANARY}-session", turn=1, user_text=f"about {HAN}", used_ids=(CANARY,))
    with opened(tmp_path) as store:
        fill(store)
        put(store, "p", Entry(id=CANARY, words=("canaryword", HAN), session_id=f"{CANARY}-session", seeds=(91,)))
        store.write("p", learned_request(CANARY, KEYWORD)).result(30)
        store.write("p", write_request(tell)).result(30)
        store.write("p", write_request(lambda unit: record(unit.learning, said))).result(30)
        where = Filter(session_ids=(f"{CANARY}-session",))
        command = ForgetCommand(project="p", request_id="", fingerprint=b"", where=where, with_sessions=True)
        receipt, _ = Forget(store)(command)
        assert (receipt.memory_count, receipt.session_count, receipt.message_count) == (1, 1, 600)
        assert store.vectors([embedding(91).digest]) == [None]
        assert found(tmp_path) == set(WORDS)
    purged(tmp_path)
    assert found(tmp_path) == set()
    assert check(tmp_path, nothing).problems == ()
    with opened(tmp_path) as store:
        assert ids(ask(store, terms=["harbour"])) == {"a"}


def test_what_is_there_is_as_it_was_and_takes_what_is_new(data: Path) -> None:
    """I3."""
    before = held(data)
    done = purged(data)
    assert check(data, nothing).problems == ()
    assert held(data) == before
    assert done.rebuilt.after_bytes < done.rebuilt.before_bytes
    with opened(data) as store:
        assert ids(ask(store, terms=["harbour"])) == {"a"}
        put(store, "p", Entry(id="new", words=("reef", "canaryword"), seeds=(91,)))
        assert ids(ask(store, terms=["reef"])) == ids(ask(store, terms=["canaryword"])) == {"new"}
        assert store.memory_events("p", 1, full=False).is_reset
        assert len(store.page("p", Filter(), 0, 99, full=True).memories) == 23
    assert check(data, nothing).problems == ()


def test_purging_says_which_backups_may_hold_it_still(data: Path, tmp_path: Path) -> None:
    """X7."""
    backups = Backups(tmp_path / "backups")
    name = made(data, backups).name
    assert [backup.name for backup in purged(data).backups] == [name]
    after = made(data, backups, now=2.0, keep=1).name
    assert [backup.name for backup in purged(data).backups] == [after]
    assert found(tmp_path / "backups") == set()


def test_compacting_gives_back_room_and_changes_nothing(data: Path) -> None:
    with inspected(data) as snapshot:
        before = {table: list(snapshot.entries(table)) for table in snapshot.tables}
    rebuilt = compact(data, nothing)
    assert rebuilt.after_bytes == (data / "data.mdb").stat().st_size < rebuilt.before_bytes
    with inspected(data) as snapshot:
        assert {table: list(snapshot.entries(table)) for table in snapshot.tables} == before


def test_a_directory_in_use_is_left_alone(data: Path) -> None:
    before = held(data)
    lock = DirectoryLock(data)
    with pytest.raises(DirectoryInUse, match="stop that process"):
        purged(data)
    lock.release()
    assert held(data) == before


def test_memories_that_have_expired_are_counted_and_left_to_the_service(data: Path) -> None:
    def put_ending(unit: UnitOfWork) -> None:
        entry = Entry(id="ends")
        unit.put(replace(entry.memory(), expire_time=9e9), entry.key, entry.terms(), [embedding(1)])

    with opened(data) as store:
        store.write("p", write_request(put_ending)).result(30)
    assert (purged(data, now=8e9).expired_count, purged(data, now=9e9).expired_count) == (0, 1)


def test_nothing_is_made_where_there_is_no_data(tmp_path: Path) -> None:
    with pytest.raises(DirectoryUnusable, match="holds no data"):
        purged(tmp_path)
    assert list(tmp_path.iterdir()) == []
