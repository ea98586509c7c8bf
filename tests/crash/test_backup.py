"""Backups and restores that were killed leave what was there, and the next one does the whole of it."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hummock.store.errors import DirectoryUnusable
from hummock.store.upkeep import Backups
from tests.ports.asking import put
from tests.store.opening import opened
from tests.store.test_backup import held, made, restored
from tests.store.test_project_removal import fill
from tests.strategies import Entry

pytestmark = pytest.mark.long

POINTS = range(0, 200, 9)


def killed(verb: str, data: Path, backups: Path, point: int) -> bool:
    """True if the point was reached; otherwise all was done."""
    command = [sys.executable, "-m", "tests.crash.backup_until_killed", verb, str(data), str(backups), str(point)]
    status = subprocess.run(command, check=False).returncode
    assert status in (0, -signal.SIGKILL)
    return status != 0


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
    for point in POINTS:
        backups = tmp_path / f"backups-{point}"
        shutil.copytree(first, backups)
        if not killed("backup", data, backups, point):
            break
        restored(Backups(backups), tmp_path / f"killed-{point}")
        found = held(tmp_path / f"killed-{point}")
        assert found in (before, now)
        seen.add(found == now)
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
    for point in range(0, 200, 9):
        new = tmp_path / f"new-{point}"
        if not killed("restore", new, backups, point):
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
