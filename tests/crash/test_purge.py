"""A purge that was killed has left the data as it was, or purged; the next one does the whole of it."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hummock.store.upkeep import check
from tests.ports.asking import ask, ids, put
from tests.store.opening import opened
from tests.store.test_backup import held
from tests.store.test_project_removal import fill
from tests.store.test_purge import found, purged
from tests.strategies import Entry, delete_request

pytestmark = pytest.mark.long

POINTS = (0, 1, 2, 9, 20, *range(33, 60, 2))


def test_kills_in_a_purge_lose_nothing(tmp_path: Path) -> None:
    """S1, X7."""
    first = tmp_path / "first"
    with opened(first) as store:
        fill(store)
        put(store, "p", Entry(id="secret", words=("canaryword",)))
        store.write("p", delete_request(["secret"])).result(30)
    before = held(first)
    for point in POINTS:
        data = tmp_path / str(point)
        shutil.copytree(first, data)
        command = [sys.executable, "-m", "tests.crash.purge_until_killed", str(data), str(point)]
        status = subprocess.run(command, check=False).returncode
        assert status in (0, -signal.SIGKILL)
        with opened(data) as store:
            assert ids(ask(store, terms=["harbour"])) == {"a"}
        assert held(data) == before
        purged(data)
        assert check(data, lambda done, total: None).problems == ()
        assert held(data) == before
        assert found(data) == set()
        if not status:
            return
    pytest.fail("the points do not cover the whole purge")
