"""Memories held for review: durable, kept alongside the others, and gone with their project."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from hummock.core.review import Quarantined
from hummock.ports.writes import UnitOfWork
from hummock.store.upkeep import check, compact
from hummock.store.upkeep.moment import digests, inspected
from tests.ports.asking import put
from tests.store.opening import opened
from tests.strategies import Entry, write_request


def waiting(memory_id: str, text: str = "tide") -> Quarantined:
    memory = replace(Entry(id=memory_id, words=(text,)).memory(), chunk_count=0)
    return Quarantined(memory=memory, families=("override", "encoded"), hold_time=3.5)


def digest(directory: Path) -> str:
    with inspected(directory) as snapshot:
        return digests(snapshot)[0].digest


def test_what_is_held_is_there_after_a_restart(tmp_path: Path) -> None:
    one, other = waiting("潮汐木芯"), waiting("x" * 256, "潮汐")

    def hold(unit: UnitOfWork) -> None:
        unit.review.put(one)
        unit.review.put(other)

    with opened(tmp_path) as store:
        store.write("p", write_request(hold)).result(30)
    with opened(tmp_path) as store:
        assert store.review.get("p", ["潮汐木芯", "stranger", "x" * 256]) == [one, None, other]
        assert store.review.get("q", ["潮汐木芯"]) == [None]
        assert store.review.page("q", "", 9).held == ()
        first = store.review.page("p", "", 1)
        assert (first.held, first.next_after) == ((other,), other.memory.id)
        second = store.review.page("p", first.next_after, 1)
        assert (second.held, second.next_after) == ((one,), "")
    assert check(tmp_path, lambda done, total: None).problems == ()


def test_a_write_that_fails_holds_nothing(tmp_path: Path) -> None:
    def fail(unit: UnitOfWork) -> None:
        unit.review.put(waiting("m"))
        raise ValueError("as asked")

    with opened(tmp_path) as store:
        put(store, "p", Entry(id="there"))
        assert isinstance(store.write("p", write_request(fail)).exception(30), ValueError)
        assert store.review.get("p", ["m"]) == [None]


def test_what_is_held_counts_for_a_digest_and_is_kept_by_compact(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        put(store, "p", Entry(id="there"))
    before = digest(tmp_path)
    with opened(tmp_path) as store:
        store.write("p", write_request(lambda unit: unit.review.put(waiting("m")))).result(30)
    held = digest(tmp_path)
    compact(tmp_path, lambda done, total: None)
    assert digest(tmp_path) == held != before
    with opened(tmp_path) as store:
        assert store.review.get("p", ["m"]) == [waiting("m")]
        store.write("p", write_request(lambda unit: unit.review.delete("m"))).result(30)
        assert store.review.get("p", ["m"]) == [None]
    assert digest(tmp_path) == before
