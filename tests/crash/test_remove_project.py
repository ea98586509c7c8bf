"""A project that was being removed when the process was killed is there whole, or not at all."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ports.asking import ask, ids, put
from tests.store.opening import opened
from tests.store.test_project_removal import cleared, fill, rows
from tests.strategies import Entry

pytestmark = pytest.mark.long

POINTS = (0, 1, 2, 3, 4, 5, 7, 10, 14, 22)


def test_kills_while_a_project_is_removed_leave_all_of_it_or_nothing(tmp_path: Path) -> None:
    """S4-02."""
    with opened(tmp_path / "before") as store:
        fill(store)
        fill(store, "other")
        whole, other = rows(store, 1), rows(store, 2)
    outcomes = []
    for point in POINTS:
        directory = tmp_path / str(point)
        shutil.copytree(tmp_path / "before", directory)
        command = [sys.executable, "-m", "tests.crash.remove_until_killed", str(directory), str(point)]
        assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
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
            stored = store.project("p")
            assert stored is not None
            assert stored.memory_count == 1
    # What was not committed has not happened; what was acknowledged has.
    assert outcomes == [True, True, *[False] * (len(POINTS) - 2)]
