from __future__ import annotations

from collections import Counter
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.access import InTurns
from bench.asking import Latency
from bench.deadlines import Answers
from bench.learning import Asked, entry_names, figures, rows
from bench.service import Serving

pytestmark = pytest.mark.long

TIMES_S = st.lists(st.floats(min_value=0, max_value=100), min_size=1, max_size=300)


@given(TIMES_S)
def test_a_percentile_is_the_smallest_time_that_so_many_calls_did_not_exceed(times_s: list[float]) -> None:
    latency = Latency.of(times_s)
    for percent, value_ms in ((500, latency.p50_ms), (950, latency.p95_ms), (990, latency.p99_ms)):
        enough = [each for each in times_s if sum(one <= each for one in times_s) * 1000 >= percent * len(times_s)]
        assert value_ms == round(min(enough) * 1000, 4)


@given(TIMES_S)
def test_percentiles_do_not_depend_on_the_order_of_calls(times_s: list[float]) -> None:
    assert Latency.of(times_s) == Latency.of(sorted(times_s, reverse=True))


def test_a_single_call_is_every_percentile() -> None:
    latency = Latency.of([0.0125])
    assert {latency.p50_ms, latency.p95_ms, latency.p99_ms, latency.p99_9_ms, latency.max_ms} == {12.5}


def test_few_calls_show_no_thousandth() -> None:
    assert "p99.9" not in Latency.of([0.001] * 999).line()
    assert "p99.9" in Latency.of([0.001] * 1000).line()


# Calculation of the cost that a token and TLS add to a recall.


def test_what_is_added_is_the_median_of_pairs_in_percent_of_the_plain_median() -> None:
    found = InTurns(plain_s=[1.0, 2.0, 9.0], guarded_s=[1.02, 2.06, 9.9])
    assert found.added_percent == pytest.approx(100 * 0.06 / 2.0)


def test_the_share_counts_what_was_late() -> None:
    answers = Answers(times_s=[0.001] * 199, late=1, left_out=Counter(vector=3, context_window=5))
    assert answers.percent == 99.5
    assert answers.line().endswith("late 1; left out: context_window 5, vector 3")


def test_where_none_was_answered_none_is() -> None:
    answers = Answers(times_s=[], late=4, left_out=Counter())
    assert answers.percent == 0
    assert answers.line() == "none answered; late 4; left out: nothing"


def test_names_are_as_many_as_asked_for_all_different_and_the_same_on_every_run() -> None:
    names = entry_names(50)
    assert len(set(names)) == 50
    assert names == entry_names(50)
    assert {len(name) for name in names} == {3, 4}


def test_each_call_has_a_figure_beside_every_language_model() -> None:
    service = cast(Serving, None)
    asked = {name: Asked(service=service, render_s=[0.002], observe_s=[0.001]) for name in ("none", "dead")}
    assert [name for name, _ in figures(asked)] == [
        "Render(commit), 1,000 entries, language model: none",
        "Render(commit), 1,000 entries, language model: dead",
        "ObserveTurn, 1,000 entries, language model: none",
        "ObserveTurn, 1,000 entries, language model: dead",
    ]


def test_a_language_model_that_does_not_answer_is_held_against_none() -> None:
    service = cast(Serving, None)
    p99_s = {"none": 0.010, "none, again": 0.011, "dead": 0.010, "hanging": 0.012}
    asked = {name: Asked(service=service, render_s=[each], observe_s=[each]) for name, each in p99_s.items()}
    found = list(rows(asked))
    assert [row.what.partition(",")[0] for row in found] == ["Render(commit)"] * 2 + ["ObserveTurn"] * 2
    assert [(row.value, row.reached) for row in found] == [(1.0, True), (pytest.approx(1.2), False)] * 2
    assert found[1].note == "12.00 ms, without 10.00 ms; another service without one 1.10 ×"
