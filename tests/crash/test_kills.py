"""A service that is killed while many write comes back with all that it has acknowledged, and nothing twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash.kills import run

pytestmark = pytest.mark.long


def test_five_kills_under_eight_writers_lose_and_double_nothing(tmp_path: Path, models_dir: Path, model: str) -> None:
    """S4-02, S4-33, I1 to I3, I5 to I7."""
    figures = run(tmp_path, models_dir, model, kills=5, seed=1)
    assert figures.violations == []
    assert figures.kills == 5
    assert figures.memories > 0
    assert figures.in_flight > 0
