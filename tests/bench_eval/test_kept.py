from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bench.eval import summary
from bench.eval.__main__ import keep
from bench.eval.summary import ModelRows
from tests.bench_eval.test_compared import BEFORE


def kept(file: Path) -> list[ModelRows]:
    return summary.from_json(json.loads(file.read_text(encoding="utf-8")))


def test_the_default_model_comes_first_whenever_it_was_measured(tmp_path: Path) -> None:
    file = tmp_path / "eval.json"
    for model in ("second", "first"):
        keep(replace(BEFORE, model=model), ["first", "second"], file)

    assert [each.model for each in kept(file)] == ["first", "second"]


def test_figures_of_changes_that_are_not_committed_are_refused_aloud(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "eval.json"
    keep(BEFORE, ["toy"], file)
    (row,) = BEFORE.rows

    keep(replace(BEFORE, rows=(replace(row, slice="en"), replace(row, r1=0.9, commit="c0ffee-dirty"))), ["toy"], file)

    assert [(each.slice, each.r1) for each in kept(file)[0].rows] == [("zh", 0.5)]
    assert "not committed" in capsys.readouterr().err
