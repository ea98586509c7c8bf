"""Events of writes whose operations are no longer kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from hummock.core.memory import EventPage
from hummock.store import DEFAULT_LIMITS, WritableStore
from hummock.store.tables import keys
from tests.ports.asking import put
from tests.store.opening import EAGER, opened
from tests.strategies import Entry, delete_request


def entries_of(store: WritableStore, table: str) -> int:
    with store._engine.reading() as txn:
        return store._engine.count(txn, getattr(store._engine.tables, table))


def test_what_is_no_longer_kept_is_out_of_reach_and_told_so(tmp_path: Path) -> None:
    with opened(tmp_path, limits=EAGER) as store:
        for number in range(20):
            put(store, "p", Entry(id=str(number)))
        assert store.memory_events("p", 3, full=False) == EventPage(events=(), seq=20, is_reset=True)
        kept = store.memory_events("p", 20 - EAGER.ops_kept, full=False)
        assert [event.memory_id for event in kept.events] == [str(number) for number in range(15, 20)]


def test_ids_of_removed_memories_go_with_the_operations(tmp_path: Path) -> None:
    with opened(tmp_path, limits=EAGER) as store:
        put(store, "p", *(Entry(id=str(number)) for number in range(8)))
        for number in range(8):
            store.write("p", delete_request([str(number)])).result(30)
        assert entries_of(store, "removed") == EAGER.ops_kept
        assert entries_of(store, "ops") == EAGER.ops_kept


@pytest.mark.parametrize("after", [0, 1])
def test_a_removal_written_before_ids_were_kept_is_a_gap(tmp_path: Path, after: int) -> None:
    """S4-44."""
    with opened(tmp_path, limits=DEFAULT_LIMITS) as store:
        put(store, "p", Entry(id="a"))
        store.write("p", delete_request(["a"])).result(30)
        engine = store._engine
        with engine.writing(number=1) as txn:
            for key, _ in list(keys.entries(txn, engine.tables.removed, keys.project_prefix(1))):
                txn.delete(key, db=engine.tables.removed)
        assert store.memory_events("p", after, full=False) == EventPage(events=(), seq=2, is_reset=True)
        put(store, "p", Entry(id="b"))
        assert [event.memory_id for event in store.memory_events("p", 2, full=False).events] == ["b"]
