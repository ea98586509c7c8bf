"""Calculation of the cost that a token and TLS add to a recall."""

from __future__ import annotations

import pytest

from bench.access import InTurns

pytestmark = pytest.mark.long


def test_what_is_added_is_the_median_of_pairs_in_percent_of_the_plain_median() -> None:
    found = InTurns(plain_s=[1.0, 2.0, 9.0], guarded_s=[1.02, 2.06, 9.9])
    assert found.added_percent == pytest.approx(100 * 0.06 / 2.0)
