from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from hummock.core.memory import Filter
from tests.ports.asking import ask
from tests.store.crashing import BATCH, batch
from tests.store.opening import opened
from tests.strategies import put_request

pytestmark = pytest.mark.long

KILLS = 10


def test_every_acknowledged_write_survives_being_killed(tmp_path: Path) -> None:
    """Kill -9 in the middle of writing: nothing acknowledged is lost, no batch is torn, repeats have no effect."""
    first = 0
    for kill in range(KILLS):
        acknowledged = _write_and_kill(tmp_path, first, lines=1 + 7 * kill)
        with opened(tmp_path) as store:
            memories = store.page("p", Filter(), 0, 100_000, full=True).memories
            stored = Counter(int(memory.payload.content.split()[-1][1:]) for memory in memories if memory.payload)
            assert set(stored.values()) <= {BATCH}, "a batch is torn"
            ids = {memory.id for memory in memories}
            assert {entry.id for number in acknowledged for entry in batch(number)} <= ids
            project = store.project("p")
            assert project is not None
            assert project.memory_count == len(memories)
            assert project.seq > max(acknowledged) - first
            found = ask(store, seed=1, terms=["tide"], pool=100_000)
            assert set(found.memory_id) == ids
            last = max(acknowledged)
            repeat = store.write("p", put_request(batch(last), f"request-{last}")).result(30)
            assert repeat.seq <= project.seq
            assert store.project("p") == project
        first = max(stored, default=0) // 3 * 3 + 3


def _write_and_kill(directory: Path, first: int, lines: int) -> list[int]:
    """Lets a process write until so many batches are acknowledged, kills it, and gives the acknowledged batches."""
    command = [sys.executable, "-m", "tests.store.crashing", str(directory), str(first)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        acknowledged = [int(process.stdout.readline()) for _ in range(lines)]
        process.send_signal(signal.SIGKILL)
        # A line that was cut off was never said.
        rest = [line for line in process.stdout if line.endswith("\n")]
    return acknowledged + [int(line) for line in rest]
