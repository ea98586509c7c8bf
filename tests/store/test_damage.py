from __future__ import annotations

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.long


def test_damage_is_noticed_or_harmless() -> None:
    """A process of its own contains crashes of LMDB, here as in `make fuzz-damage`."""
    command = [sys.executable, "-m", "tests.store.damage", "--cases", "36", "--seed", "7"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    counts = json.loads(ran.stdout)
    assert sum(counts.values()) == 36
    assert counts["harmless"] > 5
    assert counts["noticed"] > 5
