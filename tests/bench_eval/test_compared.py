from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from bench.eval import summary
from bench.eval.asking import Path as RecallPath
from bench.eval.compared import changed_answers, changed_figures, committed
from bench.eval.halves import Half
from bench.eval.summary import ModelRows, Row

FIGURES = {"r1": 0.5, "r5": 0.6, "r10": 0.7, "mrr": 0.55, "ndcg10": 0.6, "share10": 0.7, "all3": 0.5, "below": 0.0}
ROW = Row(
    set="mill",
    slice="zh",
    half=Half.ALL,
    path=RecallPath.FUSED,
    queries=40,
    intervals={"r1": (0.4, 0.6)},
    commit="c0ffee",
    **FIGURES,
)
BEFORE = ModelRows(model="toy", emb_space="s", rows=(ROW,))


def answer(question: str, **ranks: int) -> Mapping[str, object]:
    return {"id": question, "paths": {path: {"ranks": [ranks[path]] if ranks.get(path) else []} for path in RecallPath}}


def test_only_figures_that_moved_are_told() -> None:
    after = replace(BEFORE, rows=(replace(ROW, r1=0.525, mrr=0.54),))
    assert changed_figures([BEFORE], after) == ["mill zh fused: r1 0.500 → 0.525, mrr 0.550 → 0.540"]


def test_equal_figures_are_said_to_be_equal() -> None:
    assert changed_figures([BEFORE], BEFORE) == ["toy: all figures as committed"]


def test_a_part_of_the_questions_is_not_compared_with_all_of_them() -> None:
    after = replace(BEFORE, rows=(replace(ROW, queries=10, r1=0.9),))
    assert changed_figures([BEFORE], after) == ["toy: all figures as committed"]


def test_a_model_that_was_never_measured_has_nothing_to_compare_with() -> None:
    assert changed_figures([BEFORE], replace(BEFORE, model="new")) == ["new: no committed run to compare with"]


def test_questions_won_and_lost_are_named() -> None:
    before = [answer("q1", vector=1, fused=2), answer("q2", vector=1, fused=1), answer("gone", fused=1)]
    after = [answer("q1", vector=1, fused=1), answer("q2", vector=1), answer("new", fused=1)]
    assert changed_answers(before, after) == ["fused: won 1 (q1); lost 1 (q2)"]


def test_long_lists_of_questions_are_cut() -> None:
    before = [answer(f"q{i}") for i in range(9)]
    after = [answer(f"q{i}", keyword=1) for i in range(9)]
    assert changed_answers(before, after) == ["keyword: won 9 (q0, q1, q2, q3, q4, …); lost none"]


def test_without_an_earlier_run_no_question_is_won_or_lost() -> None:
    assert changed_answers([], [answer("q1", vector=1)]) == []


def test_the_committed_summary_is_read_and_not_the_one_in_the_folder(tmp_path: Path) -> None:
    path = tmp_path / "eval.json"
    path.write_text(json.dumps(summary.as_json([BEFORE])), encoding="utf-8")
    identity = ["-c", "user.name=test", "-c", "user.email=test@example.org"]
    for command in (["init", "--quiet"], ["add", "eval.json"], [*identity, "commit", "--quiet", "-m", "figures"]):
        subprocess.run(["git", "-C", str(tmp_path), *command], check=True)
    path.write_text("{}", encoding="utf-8")
    assert [model.model for model in committed(path)] == ["toy"]


def test_a_summary_that_was_never_committed_is_no_error(tmp_path: Path) -> None:
    assert committed(tmp_path / "eval.json") == []
