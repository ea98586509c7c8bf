"""A call that is repeated until it is answered has one effect, whatever the network does to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.once.proxy import Fate
from tests.once.run import run

pytestmark = pytest.mark.long


@pytest.mark.parametrize("seed", [1])
def test_calls_that_are_lost_doubled_and_reordered_leave_what_they_would_have_left(
    tmp_path: Path, models_dir: Path, model: str, seed: int
) -> None:
    """V1, I6."""
    outcome = run(tmp_path, models_dir, model, seed, projects=3, steps=60)
    assert outcome.faulty == outcome.faultless
    assert set(outcome.fates) == set(Fate)
