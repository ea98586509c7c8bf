from __future__ import annotations

from typing import cast

from bench.learning import Asked, entry_names, figures
from bench.service import Serving


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
