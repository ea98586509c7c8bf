from __future__ import annotations

from collections import Counter

import pytest

from bench.deadlines import Answers

pytestmark = pytest.mark.long


def test_the_share_counts_what_was_late() -> None:
    answers = Answers(times_s=[0.001] * 199, late=1, left_out=Counter(vector=3, context_window=5))

    assert answers.percent == 99.5
    assert answers.line().endswith("late 1; left out: context_window 5, vector 3")


def test_where_none_was_answered_none_is() -> None:
    answers = Answers(times_s=[], late=4, left_out=Counter())

    assert answers.percent == 0
    assert answers.line() == "none answered; late 4; left out: nothing"
