"""Content of one project is in no answer of another, in no refusal and in no log."""

from __future__ import annotations

from pathlib import Path

import pytest

from hummock.rpc.policy import SERVICES
from tests.isolation.calls import CALLS, SAYS_NUMBERS
from tests.isolation.mixed import run

pytestmark = pytest.mark.long


def test_every_method_of_the_contract_is_called() -> None:
    """X1."""
    assert set(CALLS) == {method.name for service in SERVICES for method in service.methods}


def test_two_thousand_calls_of_sixty_four_projects_never_cross(tmp_path: Path, models_dir: Path, model: str) -> None:
    """S0-06, S1-06, X1, I4."""
    figures = run(tmp_path, models_dir, model, projects=64, calls=2000, seed=1)
    assert figures.crossings == []
    assert figures.logged == 0
    assert figures.cached > 0
    # What shows nothing of its own could not have shown what is another's.
    assert {method for method in CALLS if not figures.own[method]} <= SAYS_NUMBERS
