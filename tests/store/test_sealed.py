"""Sessions, messages, what was learnt, and ids: what the disk has not kept is noticed, all else is answered."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import lmdb
import pytest

from hummock.core.errors import DataLoss, EventDamaged, HummockError
from hummock.core.learning import Injected, LearningEvent, TurnObserved
from hummock.core.memory import Filter
from hummock.core.session import Session
from hummock.core.settings import NO_SETTINGS
from hummock.learning.log import record
from hummock.learning.redact import Redaction
from hummock.learning.references import Entries
from hummock.learning.state import Learning
from hummock.ports.writes import UnitOfWork
from hummock.store import WritableStore
from hummock.store.errors import EntryDamaged
from hummock.store.tables import integrity, keys, sessions
from hummock.store.upkeep import check
from tests.ports.asking import put
from tests.store.damage import MESSAGES, SESSIONS, talk
from tests.store.opening import opened
from tests.store.test_checksums import flipped
from tests.store.test_golden_directories import CHOSEN, restored
from tests.strategies import Entry, write_request
from tests.sure import sure

ALL = {f"m{number}" for number in range(9)}
KEY = keys.name_key(1, "s2")


def filled(directory: Path) -> None:
    with opened(directory) as store:
        put(store, "p", *(Entry(id=name, words=("tide", name), session_id="t") for name in sorted(ALL)))
        store.write("p", write_request(talk)).result(30)
        store.write("p", write_request(lambda unit: unit.set_settings(CHOSEN))).result(30)


def changed(directory: Path, table: str, key: bytes, change: Callable[[bytes], bytes]) -> None:
    """Changes what a table holds under a key, behind the store's back."""
    with lmdb.open(str(directory), max_dbs=64, map_size=1 << 28, lib_version=0) as env:
        database = env.open_db(table.encode())
        with env.begin(write=True) as txn:
            value = sure(txn.get(key, db=database))
            txn.put(key, change(value), db=database)


def renamed(directory: Path, table: str, key: bytes, other: bytes) -> None:
    """Changes a key's bytes in the file, so that it stays where it was, whatever its order is now."""
    with lmdb.open(str(directory), max_dbs=64, readonly=True, lib_version=0) as env, env.begin() as txn:
        value = txn.get(key, db=env.open_db(table.encode(), txn=txn, create=False))
    assert value is not None
    changed_in_file(directory, key + value, other + value)


def changed_in_file(directory: Path, old: bytes, new: bytes) -> None:
    """Changes bytes wherever they are."""
    file = directory / "data.mdb"
    data = file.read_bytes()
    assert old in data
    file.write_bytes(data.replace(old, new))


def problems(directory: Path) -> set[str]:
    return {problem.what for problem in check(directory, lambda done, total: None).problems}


def observed(scope: str) -> LearningEvent:
    return TurnObserved(scope=scope, turn=2, user_text="", assistant_hash=b"", used_ids=())


def of_sessions(store: WritableStore) -> set[str]:
    archived = [store.sessions.page("p", None, 99, archived=archived).sessions for archived in (True, False)]
    assert {one.id for one in store.sessions.all("p")} == {one.id for page in archived for one in page}
    return {one.id for page in archived for one in page}


@pytest.mark.parametrize("damage", [flipped, lambda value: value[:-1], lambda value: b"\xc1", lambda value: bytes(40)])
def test_a_damaged_session_is_an_error_and_the_others_are_listed(
    tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    filled(tmp_path)
    changed(tmp_path, "session_record", KEY, damage)
    with opened(tmp_path) as store:
        with pytest.raises(DataLoss, match="session s2 is damaged on the disk"):
            store.sessions.get("p", "s2")
        assert of_sessions(store) == set(SESSIONS) - {"s2"}
        assert store.status().damaged_count == 1
        store.write("p", write_request(lambda unit: unit.sessions.create(new("n")))).result(30)
        assert of_sessions(store) == {*SESSIONS, "n"} - {"s2"}
    assert "a session cannot be read" in problems(tmp_path)


def new(session_id: str) -> Session:
    return Session(id=session_id, title="", create_time=2.0, update_time=2.0)


@pytest.mark.parametrize("other", ["a2", "s3", "z2"])
def test_a_session_whose_id_is_damaged_is_an_error_and_not_one_that_is_not_there(tmp_path: Path, other: str) -> None:
    filled(tmp_path)
    renamed(tmp_path, "session_record", KEY, keys.name_key(1, other))
    with opened(tmp_path) as store:
        with pytest.raises(EntryDamaged, match="session s2"):
            store.sessions.get("p", "s2")
        assert of_sessions(store) == set(SESSIONS) - {"s2"}
        # Nobody makes a second one by mistake.
        with pytest.raises(EntryDamaged):
            store.write("p", write_request(lambda unit: unit.sessions.get("s2"))).result(30)


def test_a_damaged_message_is_left_out_of_its_session(tmp_path: Path) -> None:
    filled(tmp_path)
    with opened(tmp_path) as store:
        number = store.sessions.get("p", "s2").number
    changed(tmp_path, "message", sessions.message_key(1, number, 5), flipped)
    changed(tmp_path, "message_id", sessions.message_id_key(1, number, "s2-7"), flipped)
    with opened(tmp_path) as store:
        for position, message_id in ((4, "s2-4"), (7, "s2-7")):
            with pytest.raises(DataLoss, match=r"a (message|number) of a session is damaged"):
                store.sessions.message("p", "s2", message_id)
            assert store.sessions.message("p", "s2", f"s2-{position + 1}") is not None
        others = [position for position in range(1, MESSAGES + 1) if position != 5]
        assert [one.position for one in store.sessions.behind("p", "s2", 0, 1 << 20)] == others
        page = store.sessions.before("p", "s2", 7, 3, 1 << 20)
        assert ([one.position for one in page.messages], page.has_before) == ([3, 4, 6], True)
        assert store.status().damaged_count == 1
        assert len(store.sessions.behind("p", "s3", 0, 1 << 20)) == MESSAGES
    assert {"a message cannot be read", "an id of a message names none"} <= problems(tmp_path)


def test_a_place_that_has_become_something_else_ends_no_list(tmp_path: Path) -> None:
    """Its key is after all others, or before them, and what it holds has no seal."""
    filled(tmp_path)
    with lmdb.open(str(tmp_path), max_dbs=64, readonly=True, lib_version=0) as env, env.begin() as txn:
        database = env.open_db(b"session_order", txn=txn, create=False)
        (entry,) = [key + value for key, value in txn.cursor(database) if value.endswith(b"s4")]
    for damage in (b"\xee", b"\0"):
        changed_in_file(tmp_path, entry, damage * len(entry))
        with opened(tmp_path) as store:
            assert of_sessions(store) == set(SESSIONS) - {"s4"}
            assert store.status().damaged_count == 1
        changed_in_file(tmp_path, damage * len(entry), entry)


def test_a_message_whose_id_has_become_something_else_is_an_error(tmp_path: Path) -> None:
    """No bytes in the place of a number are taken for those from before there were seals."""
    filled(tmp_path)
    with opened(tmp_path) as store:
        number = store.sessions.get("p", "s2").number
    key = sessions.message_id_key(1, number, "s2-7")
    renamed(tmp_path, "message_id", key, key[:-1] + b"8")
    changed_in_file(tmp_path, key[:-1] + b"8" + b"\xc1", key[:-1] + b"8" + b"\x10")
    with opened(tmp_path) as store:
        with pytest.raises(DataLoss):
            store.sessions.message("p", "s2", "s2-7")
        assert store.sessions.message("p", "s2", "s2-6") is not None
        assert store.sessions.message("p", "s2", "nobody") is None


def test_a_damaged_place_takes_no_other_session_out_of_the_list(tmp_path: Path) -> None:
    """This holds also for one that has moved out of its project's keys."""
    filled(tmp_path)
    with lmdb.open(str(tmp_path), max_dbs=64, readonly=True, lib_version=0) as env, env.begin() as txn:
        database = env.open_db(b"session_order", txn=txn, create=False)
        (place,) = [key for key, value in txn.cursor(database) if value.endswith(b"s4")]
    renamed(tmp_path, "session_order", place, b"\xff" + place[1:])
    with opened(tmp_path) as store:
        assert of_sessions(store) == set(SESSIONS) - {"s4"}
        assert store.sessions.get("p", "s4").id == "s4"
        assert store.status().damaged_count == 1
    assert "a session has no place" in problems(tmp_path)


@pytest.mark.parametrize("other", ["", "m3", "m7", "a2"])
def test_a_damaged_id_is_an_error_and_all_other_memories_are_found(tmp_path: Path, other: str) -> None:
    filled(tmp_path)
    key = keys.name_key(1, "m2")
    if other:
        renamed(tmp_path, "by_id", key, keys.name_key(1, other))
    else:
        changed(tmp_path, "by_id", key, flipped)
    with opened(tmp_path) as store:
        with pytest.raises(DataLoss, match="the id of memory m2 is damaged on the disk"):
            store.get("p", ["m2"], 0, full=True)
        # In a page without order another may be lost after it, which is said.
        if other not in ALL:
            assert None not in store.get("p", sorted(ALL - {"m2"}), 0, full=True)
        assert {one.id for one in store.page("p", Filter(), 0, 99, full=True).memories} == ALL
        # Who writes alongside it is not kept from it.
        if other not in ALL:
            put(store, "p", Entry(id="m20"), Entry(id="m6y"))
            assert None not in store.get("p", ["m20", "m6y"], 0, full=True)
        with pytest.raises(DataLoss):
            put(store, "p", Entry(id="m2"))
    assert "a memory is not found by its id" in problems(tmp_path)


def test_a_damaged_event_is_left_out_of_the_log_and_no_replay_goes_on_without_it(tmp_path: Path) -> None:
    filled(tmp_path)
    changed(tmp_path, "event", keys.event_key(1, 3), flipped)
    with opened(tmp_path) as store:
        events = store.read_learning("p", lambda log: log.events(1, 4))
        assert [one.number for one in events] == [2, 4, 5]
        assert store.status().damaged_count == 1
        redaction = Redaction(memory_ids=frozenset({"m1"}), scopes={}, texts=())
        with pytest.raises(EventDamaged, match="event 3 of the learning log is damaged"):
            store.read_learning("p", lambda log: list(redaction.changed(log)))
        store.write("p", write_request(lambda unit: record(unit.learning, observed("s1")))).result(30)
        assert store.read_learning("p", lambda log: log.turn("s1")) == 2
    assert "an event cannot be read" in problems(tmp_path)


def test_what_follows_from_the_log_is_taken_for_none_where_it_is_damaged_and_turns_go_on(tmp_path: Path) -> None:
    filled(tmp_path)
    changed(tmp_path, "usage", keys.usage_key(1, keys.hashed("s1"), "m4"), flipped)
    changed(tmp_path, "link", keys.name_key(1, "m5"), flipped)
    with opened(tmp_path) as store:
        assert set(store.read_learning("p", lambda log: log.usage("s1"))) == ALL - {"m4"}
        assert len(store.read_learning("p", lambda log: log.usage("s2"))) == len(ALL)
        assert {one for one, _ in store.read_learning("p", lambda log: list(log.profiles()))} == ALL - {"m5"}
        assert store.status().damaged_count == 2
    renamed(tmp_path, "link", keys.name_key(1, "m7"), keys.name_key(1, "m9"))
    with opened(tmp_path) as store:
        assert store.read_learning("p", lambda log: log.profile("m7")) is None
        assert store.read_learning("p", lambda log: log.profile("nobody")) is None
        assert store.status().damaged_count == 1
    renamed(tmp_path, "link", keys.name_key(1, "m9"), keys.name_key(1, "m7"))
    assert {"a usage cannot be read", "what was learnt of a memory cannot be read"} <= problems(tmp_path)
    with opened(tmp_path) as store:
        used = Injected(scope="s1", turn=2, referenced_ids=("m4",), injected_ids=("m4",), dropped_ids=())
        store.write("p", write_request(lambda unit: record(unit.learning, used))).result(30)
        assert set(store.read_learning("p", lambda log: log.usage("s1"))) == ALL
        store.write("p", write_request(lambda unit: unit.delete("m5"))).result(30)
    assert problems(tmp_path) == set()


@pytest.mark.parametrize(
    ("table", "key", "read"),
    [
        ("learning", keys.project_prefix(1), lambda log: log.state()),
        ("turn", keys.name_key(1, "s1"), lambda log: log.turn("s1")),
    ],
)
def test_a_clock_that_is_damaged_is_an_error(
    tmp_path: Path, table: str, key: bytes, read: Callable[[object], object]
) -> None:
    """To begin again at 0 would count turns twice."""
    filled(tmp_path)
    changed(tmp_path, table, key, flipped)
    with opened(tmp_path) as store:
        with pytest.raises(EntryDamaged):
            store.read_learning("p", read)
        with pytest.raises(EntryDamaged):
            store.write("p", write_request(lambda unit: record(unit.learning, observed("s1")))).result(30)
        assert len(store.page("p", Filter(), 0, 99, full=True).memories) == len(ALL)


def test_damaged_settings_are_none_and_can_be_set_again(tmp_path: Path) -> None:
    """The values that hold without any redact, hold back and remove nothing."""
    filled(tmp_path)
    changed(tmp_path, "settings", keys.project_prefix(1), flipped)
    with opened(tmp_path) as store:
        assert store.settings("p") == NO_SETTINGS
        assert store.status().damaged_count == 1
        store.write("p", write_request(lambda unit: unit.set_settings(CHOSEN))).result(30)
        assert store.settings("p") == CHOSEN


def test_damaged_held_memories_are_left_out_of_the_queue(tmp_path: Path) -> None:
    filled(tmp_path)
    changed(tmp_path, "review", keys.name_key(1, "m99"), flipped)
    with opened(tmp_path) as store:
        assert store.review.page("p", "", 9).held == ()
        with pytest.raises(DataLoss, match="held for review"):
            store.review.get("p", ["m99"])
        assert store.status().damaged_count == 1


def test_a_value_in_the_place_of_another_is_noticed(tmp_path: Path) -> None:
    """Both are what was written, and neither is what was written there."""
    filled(tmp_path)
    with opened(tmp_path) as store:
        one, other = (store.sessions.get("p", name).number for name in ("s1", "s2"))
    with lmdb.open(str(tmp_path), max_dbs=64, map_size=1 << 28, lib_version=0) as env:
        database = env.open_db(b"message")
        with env.begin(write=True) as txn:
            first, second = sessions.message_key(1, one, 1), sessions.message_key(1, other, 1)
            txn.put(first, txn.replace(second, txn.get(first, b"", db=database), db=database) or b"", db=database)
    with opened(tmp_path) as store:
        for name in ("s1", "s2"):
            with pytest.raises(DataLoss):
                store.sessions.message("p", name, f"{name}-0")


def test_what_was_stored_before_there_were_seals_stays_and_gets_them_as_it_is_written(tmp_path: Path) -> None:
    """S4-44."""
    restored(tmp_path, "before_seals")
    key = keys.name_key(3, "s")
    with opened(tmp_path) as store:
        before = store.sessions.get("talk", "s")
        assert [one.id for one in store.sessions.behind("talk", "s", 0, 1 << 20)] == ["m0", "m1", "m2", "m3", "m4"]
        assert [one.number for one in store.read_learning("talk", lambda log: log.events(0, 9))] == [1, 2, 3]
        assert set(store.read_learning("talk", lambda log: log.usage("s"))) == {"a"}
        assert store.review.page("talk", "", 9).held[0].memory.id == "held"
        assert store.get("talk", ["a", "none"], 0, full=True)[1] is None
        assert is_sealed(store, key) is False
        store.write("talk", write_request(archive)).result(30)
        assert is_sealed(store, key)
        assert store.sessions.get("talk", "s").number == before.number
        assert store.status().damaged_count == 0
    assert problems(tmp_path) == set()


def archive(unit: UnitOfWork) -> None:
    session = sure(unit.sessions.get("s"))
    unit.sessions.change(session)


def is_sealed(store: WritableStore, key: bytes) -> bool:
    environment = store._engine
    with environment.reading() as txn:
        stored = txn.get(key, b"", db=environment.tables.session_record)
    return integrity.opened(key, stored) != stored


def test_replay_refuses_a_log_that_lacks_an_event(tmp_path: Path) -> None:
    filled(tmp_path)
    changed(tmp_path, "event", keys.event_key(1, 3), flipped)
    with opened(tmp_path) as store, pytest.raises(HummockError, match="event 3"):
        Learning(store, Entries(), lambda project: "").replay("p", None)
