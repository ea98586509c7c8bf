from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench.eval import summary
from bench.eval.__main__ import keep
from bench.eval.answers import Answer
from bench.eval.made import Half, half_of
from bench.eval.sets import Question, Slice
from bench.eval.summary import ModelRows, Row, changed_answers, changed_figures, committed, markdown, rows_of
from bench.eval.ways import RecallPath, Way

pytestmark = pytest.mark.long

IDS = [f"q{i}" for i in range(20)]


def asked() -> Slice:
    questions = tuple(Question(id=each, project="p", text="?", relevant=frozenset({"right"})) for each in IDS)
    return Slice(set="mill", name="zh", questions=questions)


def answers(**places: int) -> list[Answer]:
    """Every question's right memory in the given place of each path; 0 leaves it out."""
    return [
        Answer(
            question=question,
            path=path,
            hits=tuple("right" if place == places[path] else f"w{place}" for place in range(1, 11)),
            scores=(1.0,) * 10,
        )
        for question in asked().questions
        for path in RecallPath
    ]


def row(rows: list[Row], path: RecallPath, half: Half = Half.ALL) -> Row:
    return next(each for each in rows if each.path is path and each.half is half)


def test_a_slice_has_a_row_for_each_path_and_half() -> None:
    rows = rows_of(asked(), answers(vector=1, keyword=2, fused=1, reranked=1), "c0ffee")
    assert len(rows) == len(RecallPath) * len(Half)
    halves = [row(rows, RecallPath.VECTOR, half).queries for half in (Half.TUNE, Half.REPORT)]
    assert halves == [sum(half_of(each) is half for each in IDS) for half in (Half.TUNE, Half.REPORT)]
    assert sum(halves) == row(rows, RecallPath.VECTOR).queries == 20


def test_figures_of_a_path_are_those_of_its_answers() -> None:
    second = row(rows_of(asked(), answers(vector=1, keyword=2, fused=1, reranked=1), "c0ffee"), RecallPath.KEYWORD)
    assert second.recalls() == (0.0, 1.0, 1.0)
    assert (second.mrr, second.all3, second.share10) == (0.5, 1.0, 1.0)
    assert second.ndcg10 == pytest.approx(0.6309)
    assert second.intervals["r1"] == pytest.approx((0.0, 0.1611), abs=1e-4)


def test_a_joined_order_below_the_better_path_at_any_cut_is_a_miss_and_single_paths_are_below_nothing() -> None:
    rows = rows_of(asked(), answers(vector=1, keyword=7, fused=1, reranked=2), "c0ffee")
    assert row(rows, RecallPath.FUSED).fits
    assert row(rows, RecallPath.RERANKED).below == 1.0
    assert not row(rows, RecallPath.RERANKED).fits
    rows = rows_of(asked(), answers(vector=0, keyword=1, fused=1, reranked=1), "c0ffee")
    assert row(rows, RecallPath.VECTOR).below == 0.0


def test_a_half_without_questions_has_no_rows() -> None:
    only = [
        each for each in answers(vector=1, keyword=1, fused=1, reranked=1) if half_of(each.question.id) is Half.TUNE
    ]
    assert {each.half for each in rows_of(asked(), only, "c0ffee")} == {Half.TUNE, Half.ALL}


def models() -> list[ModelRows]:
    rows = tuple(rows_of(asked(), answers(vector=1, keyword=2, fused=1, reranked=1), "c0ffee"))
    return [ModelRows(model=name, emb_space=f"space of {name}", rows=rows) for name in ("first", "second")]


def test_the_summary_is_read_as_it_was_written() -> None:
    written = json.loads(json.dumps(summary.as_json(models())))
    assert {_known(each) for each in summary.from_json(written)} == {_known(each) for each in models()}


def _known(model: ModelRows) -> tuple[str, str, frozenset[str]]:
    return model.model, model.emb_space, frozenset(map(repr, model.rows))


def test_the_top_of_the_summary_has_one_row_for_each_slice_and_path_of_the_default_model() -> None:
    written = summary.as_json(models())
    assert written["model"] == "first"
    assert [(each["set"], each["slice"], each["path"]) for each in written["slices"]] == [
        ("mill", "zh", path) for path in ("vector", "keyword", "fused", "reranked")
    ]
    assert {each["half"] for each in written["slices"]} == {"report"}
    assert {"queries", "r1", "r5", "r10", "mrr", "ndcg10"} <= written["slices"][0].keys()


def test_what_was_found_takes_the_place_of_its_own_slices_only() -> None:
    first, second = models()
    other = tuple(replace(each, slice="en") for each in first.rows)
    again = replace(first, rows=tuple(replace(each, r1=0.5) for each in first.rows))
    found = {each.model: each for each in summary.merged([replace(first, rows=first.rows + other), second], again)}
    assert found["second"] == second
    assert {each.r1 for each in found["first"].rows if each.slice == "zh"} == {0.5}
    assert set(map(repr, found["first"].rows)) == set(map(repr, again.rows + other))


def test_rows_of_another_space_are_dropped() -> None:
    first, _ = models()
    found = replace(first, emb_space="new", rows=tuple(replace(each, slice="en") for each in first.rows))
    assert [{row.slice for row in each.rows} for each in summary.merged([first], found)] == [{"en"}]


def test_the_table_says_what_was_asked_and_which_orders_miss() -> None:
    rows = tuple(rows_of(asked(), answers(vector=1, keyword=7, fused=1, reranked=2), "c0ffee"))
    shown = markdown(ModelRows(model="first", emb_space="0" * 32, rows=rows), [Half.ALL])
    assert "preset AGENT" in shown
    lines = shown.splitlines()
    assert next(line for line in lines if "| fused |" in line).endswith("| 0.000 |")
    assert next(line for line in lines if "| reranked |" in line).endswith("| 1.000 miss |")


FIGURES: dict[str, Any] = {
    "r1": 0.5, "r5": 0.6, "r10": 0.7, "mrr": 0.55, "ndcg10": 0.6, "share10": 0.7, "all3": 0.5, "below": 0.0,
}  # fmt: skip
ROW = Row(
    set="mill", slice="zh", half=Half.ALL, path=RecallPath.FUSED, queries=40, intervals={"r1": (0.4, 0.6)},
    commit="c0ffee", **FIGURES,
)  # fmt: skip
BEFORE = ModelRows(model="toy", emb_space="s", rows=(ROW,))


def answer(question: str, **ranks: int) -> Mapping[str, object]:
    return {"id": question, "paths": {path: {"ranks": [ranks[path]] if ranks.get(path) else []} for path in RecallPath}}


def with_row(**changes: Any) -> ModelRows:
    return replace(BEFORE, rows=(replace(ROW, **changes),))


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (BEFORE, with_row(r1=0.525, mrr=0.54), "mill zh fused: r1 0.500 → 0.525, mrr 0.550 → 0.540"),
        (BEFORE, BEFORE, "toy: all figures as committed"),
        # A part of the questions is not compared with all of them.
        (BEFORE, with_row(queries=10, r1=0.9), "toy: all figures as committed"),
        (BEFORE, replace(BEFORE, model="new"), "new: no committed run to compare with"),
        # More noise than before.
        (with_row(returned=0.0, none=1.0), with_row(returned=2.0, none=0.5),
         "mill zh fused: returned 0.000 → 2.000, none 1.000 → 0.500"),
    ],
    ids=["moved", "equal", "a part", "never measured", "noise"],
)  # fmt: skip
def test_only_figures_that_moved_are_told(before: ModelRows, after: ModelRows, expected: str) -> None:
    assert changed_figures([before], after) == [expected]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (
            [answer("q1", vector=1, fused=2), answer("q2", vector=1, fused=1), answer("gone", fused=1)],
            [answer("q1", vector=1, fused=1), answer("q2", vector=1), answer("new", fused=1)],
            ["fused: won 1 (q1); lost 1 (q2)"],
        ),
        # Long lists of questions are cut.
        (
            [answer(f"q{i}") for i in range(9)],
            [answer(f"q{i}", keyword=1) for i in range(9)],
            ["keyword: won 9 (q0, q1, q2, q3, q4, …); lost none"],
        ),
        # Without an earlier run no question is won or lost.
        ([], [answer("q1", vector=1)], []),
        # Answers by fewer paths are compared by those that both have.
        (
            [{"id": "q", "paths": {"reranked": {"ranks": []}}}],
            [answer("q", reranked=1)],
            ["reranked: won 1 (q); lost none"],
        ),
    ],
    ids=["won and lost", "cut", "no earlier run", "fewer paths"],
)
def test_questions_won_and_lost_are_named(
    before: list[Mapping[str, object]], after: list[Mapping[str, object]], expected: list[str]
) -> None:
    assert changed_answers(before, after) == expected


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


def kept(file: Path) -> list[ModelRows]:
    return summary.from_json(json.loads(file.read_text(encoding="utf-8")))


def test_the_default_model_comes_first_whenever_it_was_measured(tmp_path: Path) -> None:
    file = tmp_path / "eval.json"
    for model in ("second", "first"):
        keep(replace(BEFORE, model=model), ["first", "second"], file)
    assert [each.model for each in kept(file)] == ["first", "second"]


def test_figures_of_uncommitted_changes_are_refused_aloud(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "eval.json"
    keep(BEFORE, ["toy"], file)
    (row,) = BEFORE.rows
    keep(replace(BEFORE, rows=(replace(row, slice="en"), replace(row, r1=0.9, commit="c0ffee-dirty"))), ["toy"], file)
    assert [(each.slice, each.r1) for each in kept(file)[0].rows] == [("zh", 0.5)]
    assert "not committed" in capsys.readouterr().err


def noise_answers(*hits: int) -> list[Answer]:
    questions = tuple(Question(id=each, project="p", text="?", relevant=frozenset()) for each in IDS)
    return [
        Answer(
            question=question,
            path=RecallPath.RERANKED,
            hits=tuple(f"w{one}" for one in range(hits[place % len(hits)])),
            scores=(0.5,) * hits[place % len(hits)],
        )
        for place, question in enumerate(questions)
    ]


def noise() -> Slice:
    return replace(asked(), set="noise", way=Way(preset="CHAT", paths=(RecallPath.RERANKED,), is_shipped=True))


def test_what_nothing_answers_is_told_by_how_much_is_returned() -> None:
    (found,) = (each for each in rows_of(noise(), noise_answers(0, 3), "c0ffee") if each.half is Half.ALL)
    assert (found.returned, found.none, found.is_noise, found.preset) == (1.5, 0.5, True, "CHAT")
    assert (found.recalls(), found.share10, found.all3, found.below) == ((0.0, 0.0, 0.0), 0.0, 0.0, 0.0)
    shown = markdown(ModelRows(model="first", emb_space="0" * 32, rows=(found,)), [Half.ALL])
    assert "| noise | zh | reranked | 20 | 1.50 | 0.500 |" in shown.splitlines()


def test_paths_that_were_not_asked_have_no_row() -> None:
    rows = rows_of(noise(), noise_answers(1), "c0ffee")
    assert {each.path for each in rows} == {RecallPath.RERANKED}


def test_rows_of_an_earlier_form_are_read_and_their_counts_not_compared() -> None:
    written = summary.as_json([BEFORE])
    new = {"all10", "filled10", "returned", "none", "preset", "is_noise"}
    for one in written["models"]:
        one["slices"] = [{name: value for name, value in each.items() if name not in new} for each in one["slices"]]
        one["other_halves"] = [
            {name: value for name, value in each.items() if name not in new} for each in one["other_halves"]
        ]
    (read,) = summary.from_json(json.loads(json.dumps(written)))
    after = replace(BEFORE, rows=(replace(ROW, all10=0.4, returned=9.0),))
    assert changed_figures([read], after) == ["toy: all figures as committed"]
