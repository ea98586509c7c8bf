"""Choice of observed turns and questions when learning is measured."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bench.eval.learning import LearningRow, as_json, from_json, keep, lessons, markdown
from tests.bench_eval import datasets

pytestmark = pytest.mark.long


def test_no_question_is_asked_that_was_observed(tmp_path: Path) -> None:
    """S3-01."""
    for lesson in lessons(datasets.write(tmp_path)):
        observed = {question.id for question in lesson.observed}
        chinese = [name for name in lesson.asked if name.startswith("zh")]
        assert observed
        assert not any(question.id in observed for name in chinese for question in lesson.asked[name])


def test_paragraphs_are_observed_or_not(tmp_path: Path) -> None:
    """S3-01."""
    for lesson in lessons(datasets.write(tmp_path)):
        taught = {name for question in lesson.observed for name in question.relevant}
        for name, questions in lesson.asked.items():
            is_taught = not name.partition(", ")[2].startswith("not")
            assert all((question.relevant <= taught) is is_taught for question in questions)


ROW = LearningRow(
    model="m", lesson="l", slice="zh, observed", queries=4, before=(0.0, 0.25, 0.5), after=(0.25, 0.5, 0.5),
    interval5=(0.1, 0.9), won=1, lost=0, emb_space="e", commit="c",
)  # fmt: skip


def test_rows_are_kept_with_what_they_mean() -> None:
    assert as_json([ROW])["rows"][0]["after"] == (0.25, 0.5, 0.5)
    assert "| 0.000 / 0.250 / 0.500 | 0.250 / 0.500 / 0.500 | 1, 0 |" in markdown([ROW])


def test_a_model_that_is_measured_again_leaves_the_others_where_they_are(tmp_path: Path) -> None:
    file = tmp_path / "learning.json"
    other, again = replace(ROW, model="n"), replace(ROW, lesson="another", won=2)
    keep([ROW, other], ["n", "m"], file)
    keep([again], ["n", "m"], file)
    assert from_json(json.loads(file.read_text(encoding="utf-8"))) == [other, again]


def test_figures_of_uncommitted_changes_are_refused_aloud(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "learning.json"
    keep([replace(ROW, commit="c0ffee-dirty")], ["m"], file)
    assert not file.exists()
    assert "not committed" in capsys.readouterr().err
