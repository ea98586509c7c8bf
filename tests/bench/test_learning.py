from __future__ import annotations

from typing import cast

import pytest

from bench.learning import Asked, entry_names, figures, rows
from bench.service import Serving

pytestmark = pytest.mark.long


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

    assert {row.row for row in found} == {17}
    assert [row.what.partition(",")[0] for row in found] == ["Render(commit)"] * 2 + ["ObserveTurn"] * 2
    assert [(row.value, row.reached) for row in found] == [(1.0, True), (pytest.approx(1.2), False)] * 2
    assert found[1].note == "12.00 ms, without 10.00 ms; another service without one 1.10 ×"
