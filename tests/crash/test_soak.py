"""Conversations survive restarts whole, whether the service was stopped or killed."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from tests.crash.soak import run

pytestmark = pytest.mark.long


def test_conversations_are_whole_behind_a_stop_and_a_kill(tmp_path: Path, models_dir: Path, model: str) -> None:
    """S4-02, S4-14."""
    lives = count(1)
    figures = run(tmp_path, models_dir, model, seed=1, rounds=2, turns=3, is_over=lambda: next(lives) == 3)
    assert figures.lives == 3
    assert figures.lost == []
    assert len(figures.turn_s) == 3 * 2 * 3 * 4
