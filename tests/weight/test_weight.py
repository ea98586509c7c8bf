"""Limits on how much one call runs through. They only go down.

Who makes a call lighter lowers its numbers here; who makes it heavier finds out why before he changes anything else.
`python -m tests.weight.tracing --list Recall` names the files and functions.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.long

LIMITS = {
    #                 files passed, files run, own calls, store entries, transactions
    "Recall": (27, 71, 351, 2, 1),
    "Recall, cached": (9, 22, 57, 1, 0),
    "RenderTurn": (41, 102, 621, 7, 2),
    "Learn": (23, 74, 557, 6, 3),
}

SLACK = 0.1
"""Share by which a count may be below its limit before the limit is to be lowered."""

_TIMEOUT_S = 300.0


@pytest.fixture(scope="module")
def weights() -> dict[str, dict[str, int]]:
    """The counts, of a process whose threads are all watched from their beginning."""
    command = [sys.executable, "-m", "tests.weight.tracing"]
    found = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=True)
    counts: dict[str, dict[str, int]] = json.loads(found.stdout)
    return counts


@pytest.mark.parametrize("call", LIMITS)
def test_a_call_runs_through_no_more_than_it_did(weights: dict[str, dict[str, int]], call: str) -> None:
    limits = dict(zip(weights[call], LIMITS[call], strict=True))
    above = {count: (weights[call][count], limit) for count, limit in limits.items() if weights[call][count] > limit}
    assert not above, "counted, and its limit"


@pytest.mark.parametrize("call", LIMITS)
def test_the_limits_are_those_of_todays_code(weights: dict[str, dict[str, int]], call: str) -> None:
    limits = dict(zip(weights[call], LIMITS[call], strict=True))
    below = {
        count: (weights[call][count], limit)
        for count, limit in limits.items()
        if weights[call][count] < (1 - SLACK) * limit - 1
    }
    assert not below, "counted, and a limit to be lowered"
