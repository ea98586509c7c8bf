"""A store without room left."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import lmdb
import pytest

from hummock.core.errors import StorageFull
from hummock.core.settings import ProjectSettings
from hummock.ports.writes import WriteRequest
from hummock.store import StoreLimits, WritableStore
from hummock.store.errors import DiskFull
from hummock.store.lmdb import environment
from tests.ports.asking import ask, ids, put
from tests.store.opening import MIB, Blocker, opened
from tests.strategies import Entry, delete_request, put_request, write_request

pytestmark = pytest.mark.long

BIG = ("潮汐木芯" * 2000,)


def removal(memory_id: str, request_id: str) -> WriteRequest[int]:
    return write_request(lambda unit: unit.delete(memory_id), request_id)


def fill(store: WritableStore) -> int:
    """Puts large memories until there is no room; the number that went in."""
    for number in range(10_000):
        try:
            put(store, "p", Entry(id=f"m{number}", words=BIG))
        except StorageFull:
            return number
    raise AssertionError("never full")


def test_a_full_store_refuses_writes_and_still_reads_and_removes(tmp_path: Path) -> None:
    """Deletes must work at 100 %."""
    with opened(tmp_path, quota_bytes=2 * MIB) as store:
        number = fill(store)
        assert number > 10
        with pytest.raises(StorageFull, match="of 2097152 bytes"):
            put(store, "p", Entry(id="more", words=BIG))
        status = store.status()
        assert status.used_bytes <= status.quota_bytes == 2 * MIB
        assert len(ask(store, seed=1, pool=10_000)) == number
        for each in range(number):
            store.write("p", delete_request([f"m{each}"])).result(30)
        assert len(ask(store, seed=1)) == 0
        put(store, "p", Entry(id="again", words=BIG))


def test_a_full_map_refuses_writes_and_still_reads(tmp_path: Path) -> None:
    limits = StoreLimits(map_reserve_share=0.0)
    with opened(tmp_path, map_bytes=2 * MIB, quota_bytes=100 * MIB, limits=limits) as store:
        number = fill(store)
        assert number > 10
        assert len(ask(store, seed=1, pool=10_000)) == number
    with opened(tmp_path, map_bytes=4 * MIB, quota_bytes=100 * MIB) as store:
        assert len(ask(store, seed=1, pool=10_000)) == number
        put(store, "p", Entry(id="more"))


def test_the_quota_leaves_a_part_of_the_map_for_removing(tmp_path: Path) -> None:
    with opened(tmp_path, map_bytes=4 * MIB, quota_bytes=100 * MIB) as store:
        number = fill(store)
        for each in range(number):
            store.write("p", delete_request([f"m{each}"])).result(30)
        assert store.project("p") is not None
        put(store, "p", Entry(id="again"))


def test_a_write_without_room_leaves_its_neighbours_alone(tmp_path: Path) -> None:
    with opened(tmp_path, quota_bytes=2 * MIB) as store:
        put(store, "p", Entry(id="old"))
        entries = [Entry(id=f"m{number}", words=(*BIG, str(number))) for number in range(200)]
        huge = store.write("p", put_request(entries))
        small = store.write("p", put_request([Entry(id="small")]))
        with pytest.raises(StorageFull):
            huge.result(30)
        assert small.result(30).seq == 2
        assert ids(ask(store, seed=1)) == {"old", "small"}


def test_a_write_that_fills_the_map_leaves_its_neighbours_alone(tmp_path: Path) -> None:
    limits = StoreLimits(map_reserve_share=0.0)
    with opened(tmp_path, map_bytes=4 * MIB, quota_bytes=100 * MIB, limits=limits) as store:
        put(store, "p", Entry(id="old"))
        blocker = Blocker(store)
        before = store.write("p", put_request([Entry(id="before")]))
        huge = store.write("p", put_request([Entry(id=f"m{number}", words=BIG) for number in range(300)]))
        after = store.write("p", put_request([Entry(id="after")]))
        blocker.release()
        assert (before.result(30).seq, after.result(30).seq) == (2, 3)
        with pytest.raises(StorageFull) as caught:
            huge.result(30)
        assert isinstance(caught.value.__cause__, lmdb.MapFullError)
        assert ids(ask(store, seed=1)) == {"old", "before", "after"}
    with opened(tmp_path) as store:
        assert ids(ask(store, seed=1)) == {"old", "before", "after"}


def test_a_nearly_full_disk_refuses_writes_but_not_removals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path) as store:
        put(store, "p", Entry(id="a"))
        monkeypatch.setattr(environment.Environment, "free_disk_bytes", lambda self: 1000)
        with pytest.raises(DiskFull, match="make room on the disk"):
            put(store, "p", Entry(id="b"))
        store.write("p", delete_request(["a"])).result(30)
        assert len(ask(store, seed=1)) == 0


def test_a_disk_that_fills_during_a_commit_loses_nothing(tmp_path: Path) -> None:
    """The process may not write files beyond 1 MiB, which fails like a full disk does."""
    code = """
import resource, sys
from pathlib import Path
from hummock.core.errors import StorageFull
from hummock.core.settings import ProjectSettings
from tests.ports.asking import ask, put
from tests.store.opening import opened
from tests.strategies import Entry
with opened(Path(sys.argv[1])) as store:
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
    number = 0
    try:
        while True:
            put(store, "p", Entry(id=f"m{number}", words=("x" * 9000,)))
            number += 1
    except StorageFull as error:
        assert "disk" in str(error), error
    assert len(ask(store, seed=1, pool=10000)) == number
    print(number)
"""
    ran = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    with opened(tmp_path) as store:
        assert len(ask(store, seed=1, pool=10_000)) == int(ran.stdout) > 10
        put(store, "p", Entry(id="more"))


def test_a_replacement_in_a_full_store_keeps_the_old_memory(tmp_path: Path) -> None:
    with opened(tmp_path, quota_bytes=2 * MIB) as store:
        small = Entry(id="a", words=("tide",))
        put(store, "p", small)
        fill(store)
        with pytest.raises(StorageFull):
            put(store, "p", replace(small, words=BIG * 3))
        assert store.get("p", ["a"], 0, full=True) == [small.memory()]


def test_what_the_map_limits_is_mended_by_the_map(tmp_path: Path) -> None:
    """A larger quota would change nothing."""
    with opened(tmp_path, map_bytes=4 * MIB, quota_bytes=100 * MIB) as store:
        entries = [Entry(id=f"m{number}", words=(*BIG, str(number))) for number in range(200)]
        with pytest.raises(StorageFull, match=r"raise storage\.map_bytes") as caught:
            store.write("p", put_request(entries)).result(30)
        assert caught.value.reason == "STORAGE_FULL"
    limits = StoreLimits(map_reserve_share=0.0)
    with (
        opened(tmp_path, map_bytes=4 * MIB, quota_bytes=4 * MIB, limits=limits) as store,
        pytest.raises(StorageFull, match=r"raise storage\.map_bytes"),
    ):
        store.write("p", put_request(entries)).result(30)


def test_nothing_but_removing_takes_what_is_kept_for_it(tmp_path: Path) -> None:
    """Settings of new projects, and what is noted of requests that do nothing, filled the map until Delete failed."""
    with opened(tmp_path, map_bytes=2 * MIB, quota_bytes=100 * MIB) as store:
        number = fill(store)
        refused = 0
        for at in range(4000):
            for project, request in (
                (f"new{at}", write_request(lambda unit: unit.set_settings(ProjectSettings()))),
                ("p", removal("unknown", f"request-{at}")),
            ):
                future = store.write(project, request)
                refused += isinstance(future.exception(30), StorageFull)
            if refused > 20:
                break
        assert refused > 20
        for each in range(number):
            store.write("p", removal(f"m{each}", f"removal-{each}")).result(30)
        assert len(ask(store, seed=1)) == 0
        put(store, "p", Entry(id="again"))
