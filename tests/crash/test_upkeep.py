"""Backups, restores, purges and removals that were killed lose nothing, and the next one does the whole of it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hummock.store.errors import DirectoryUnusable
from hummock.store.upkeep import Backups, check
from tests.crash.killing import is_killed
from tests.ports.asking import ask, ids, put
from tests.store.opening import opened
from tests.store.test_backup import held, made, restored
from tests.store.test_project_removal import cleared, fill, rows
from tests.store.test_purge import found, purged
from tests.strategies import Entry, delete_request
from tests.sure import sure

pytestmark = pytest.mark.long

OF_BACKUPS = range(0, 200, 9)
OF_PURGES = (0, 1, 2, 9, 20, *range(33, 60, 2))
OF_REMOVALS = (0, 1, 2, 3, 4, 5, 7, 10, 14, 22)


def test_kills_in_a_backup_leave_the_one_before_and_the_next_is_whole(tmp_path: Path) -> None:
    """S13."""
    data, first = tmp_path / "data", tmp_path / "first"
    with opened(data) as store:
        fill(store)
    made(data, Backups(first))
    before = held(data)
    with opened(data) as store:
        put(store, "p", Entry(id="new", words=("reef",)))
    now, seen = held(data), set()
    for point in OF_BACKUPS:
        backups = tmp_path / f"backups-{point}"
        shutil.copytree(first, backups)
        if not is_killed("backup", point, data, backups):
            break
        restored(Backups(backups), tmp_path / f"killed-{point}")
        after = held(tmp_path / f"killed-{point}")
        assert after in (before, now)
        seen.add(after == now)
        made(data, Backups(backups), now=3.0)
        restored(Backups(backups), tmp_path / f"again-{point}")
        assert held(tmp_path / f"again-{point}") == now
    else:
        pytest.fail("the points do not cover the whole backup")
    assert False in seen


def test_kills_in_a_restore_leave_no_data_or_all_of_it(tmp_path: Path) -> None:
    """S13."""
    data, backups = tmp_path / "data", tmp_path / "backups"
    with opened(data) as store:
        fill(store)
    made(data, Backups(backups))
    for point in OF_BACKUPS:
        new = tmp_path / f"new-{point}"
        if not is_killed("restore", point, new, backups):
            assert held(new) == held(data)
            break
        if (new / "data.mdb").exists():
            with pytest.raises(DirectoryUnusable):
                restored(Backups(backups), new)
        else:
            restored(Backups(backups), new)
        assert held(new) == held(data)
    else:
        pytest.fail("the points do not cover the whole restore")


def test_kills_in_a_purge_lose_nothing(tmp_path: Path) -> None:
    """S1, X7."""
    first = tmp_path / "first"
    with opened(first) as store:
        fill(store)
        put(store, "p", Entry(id="secret", words=("canaryword",)))
        store.write("p", delete_request(["secret"])).result(30)
    before = held(first)
    for point in OF_PURGES:
        data = tmp_path / str(point)
        shutil.copytree(first, data)
        was_killed = is_killed("purge", point, data)
        with opened(data) as store:
            assert ids(ask(store, terms=["harbour"])) == {"a"}
        assert held(data) == before
        purged(data)
        assert check(data, lambda done, total: None).problems == ()
        assert held(data) == before
        assert found(data) == set()
        if not was_killed:
            return
    pytest.fail("the points do not cover the whole purge")


def test_kills_while_a_project_is_removed_leave_all_of_it_or_nothing(tmp_path: Path) -> None:
    """S4-02."""
    with opened(tmp_path / "before") as store:
        fill(store)
        fill(store, "other")
        whole, other = rows(store, 1), rows(store, 2)
    outcomes = []
    for point in OF_REMOVALS:
        directory = tmp_path / str(point)
        shutil.copytree(tmp_path / "before", directory)
        assert is_killed("remove", point, directory)
        with opened(directory) as store:
            is_there = store.project("p") is not None
            outcomes.append(is_there)
            if is_there:
                assert rows(store, 1) == whole
                assert ids(ask(store, terms=["harbour"])) == {"a"}
                continue
            assert not ids(ask(store, terms=["tide", "harbour"]))
            put(store, "p", Entry(id="new", words=("reef",)))
            assert ids(ask(store, terms=["tide", "harbour", "reef"])) == {"new"}
            cleared(store)
            assert rows(store, 1) == {}
            assert rows(store, 2) == other
            assert sure(store.project("p")).memory_count == 1
    # What was not committed has not happened; what was acknowledged has.
    assert outcomes == [True, True, *[False] * (len(OF_REMOVALS) - 2)]
