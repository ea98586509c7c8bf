from __future__ import annotations

import json
from dataclasses import replace

import pytest

from bench.eval import summary
from bench.eval.asking import Answer, Path
from bench.eval.halves import Half, half_of
from bench.eval.sets import Question, Slice
from bench.eval.summary import ModelRows, Row, rows_of
from bench.eval.table import markdown

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
        for path in Path
    ]


def row(rows: list[Row], path: Path, half: Half = Half.ALL) -> Row:
    return next(each for each in rows if each.path is path and each.half is half)


def test_a_slice_has_a_row_for_each_path_and_half() -> None:
    rows = rows_of(asked(), answers(vector=1, keyword=2, fused=1, reranked=1), "c0ffee")
    assert len(rows) == len(Path) * len(Half)
    halves = [row(rows, Path.VECTOR, half).queries for half in (Half.TUNE, Half.REPORT)]
    assert halves == [sum(half_of(each) is half for each in IDS) for half in (Half.TUNE, Half.REPORT)]
    assert sum(halves) == row(rows, Path.VECTOR).queries == 20


def test_figures_of_a_path_are_those_of_its_answers() -> None:
    second = row(rows_of(asked(), answers(vector=1, keyword=2, fused=1, reranked=1), "c0ffee"), Path.KEYWORD)
    assert second.recalls() == (0.0, 1.0, 1.0)
    assert (second.mrr, second.all3, second.share10) == (0.5, 1.0, 1.0)
    assert second.ndcg10 == pytest.approx(0.6309)
    assert second.intervals["r1"] == pytest.approx((0.0, 0.1611), abs=1e-4)


def test_a_joined_order_below_the_better_path_at_any_cut_is_a_miss() -> None:
    rows = rows_of(asked(), answers(vector=1, keyword=7, fused=1, reranked=2), "c0ffee")
    assert row(rows, Path.FUSED).fits
    assert row(rows, Path.RERANKED).below == 1.0
    assert not row(rows, Path.RERANKED).fits


def test_single_paths_are_below_nothing() -> None:
    rows = rows_of(asked(), answers(vector=0, keyword=1, fused=1, reranked=1), "c0ffee")
    assert row(rows, Path.VECTOR).below == 0.0


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
