"""Gains and losses of code fragments by their file."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummock.core.candidates import FoundBy
from hummock.core.memory import MemoryKind
from hummock.recall.fuse import Fused
from hummock.recall.prefer import HEAD_FACTOR, SECOND_LOSS, SUPPORT, by_files
from tests.recall.candidates import Row, candidates, features, plan, ranked


def code(memory_id: str, cosine: float, file: int, *, name: int = 1, **what: object) -> Row:
    return Row(id=memory_id, cosine=cosine, kind=MemoryKind.CODE_FRAGMENT, file=file, name=name, **what)  # type: ignore[arg-type] # its own fields


def after(*rows: Row, neighbours: bool = True) -> Fused:
    how = plan(neighbours=neighbours)
    return by_files(ranked(candidates(rows), how, features()), how)


def test_where_several_of_a_file_are_like_the_question_it_is_rather_there() -> None:
    alone, others = code("alone", 0.601, 1), [code(name, cosine, 2) for name, cosine in (("b", 0.6), ("c", 0.59))]
    assert after(alone, *others).memory_ids == ("b", "alone", "c")
    assert after(alone, others[0]).memory_ids == ("alone", "b")


def test_the_best_of_another_file_comes_before_the_second_of_one_that_is_little_better() -> None:
    rows = [code("a", 0.6, 1), code("a2", 0.585, 1), code("a3", 0.4, 1), code("b", 0.59, 2), code("b2", 0.4, 2)]
    assert after(*rows).memory_ids[:3] == ("a", "b", "a2")


def test_the_head_of_a_file_stands_behind_a_function_of_it_that_is_nearly_as_relevant() -> None:
    rows = [code("head", 0.6, 1, name=0), code("function", 0.55, 1)]
    assert after(*rows).memory_ids == ("function", "head")


def test_a_file_without_symbols_has_no_head() -> None:
    rows = [code("first", 0.6, 1, name=0), code("second", 0.55, 1, name=0), code("other", 0.58, 2)]
    assert after(*rows).memory_ids == ("first", "other", "second")


def test_notes_keep_their_relevance_beside_code() -> None:
    note = Row(id="note", cosine=0.5)
    before = ranked(candidates([note, code("a", 0.4, 1), code("b", 0.39, 1)]), plan(), features())
    kept = by_files(before, plan())
    assert kept.memory_ids[0] == "note"
    assert kept.relevance[0] == before.relevance[0]
    assert kept.relevance[1] == pytest.approx(before.relevance[1])


def test_what_is_looked_up_by_name_and_the_order_of_one_path_stay() -> None:
    """1.1-10."""
    rows = [code("a", 0.6, 1), code("a2", 0.59, 1), code("b", 0.585, 2)]
    assert after(*rows, neighbours=False).memory_ids == ("a", "a2", "b")
    held = code("held", 0.1, 3, found_by=FoundBy.KEYWORD | FoundBy.HOLDER)
    assert after(*rows, held).memory_ids == ("held", "a", "a2", "b")


def by_hand(fused: Fused) -> dict[int, float]:
    """Relevances of fragments by row, from the definition."""
    file, name = (fused.candidates.rows[column] for column in ("file", "name_hash"))
    own = {int(row): float(value) for row, value in zip(fused.row, fused.relevance, strict=True) if file[row]}
    gained = {}
    for row, value in own.items():
        others = sorted((own[each] for each in own if file[each] == file[row] and each != row), reverse=True)
        has_named = any(name[each] for each in own if file[each] == file[row])
        is_head = has_named and not name[row]
        gained[row] = (value + SUPPORT * sum(others[:3])) * (HEAD_FACTOR if is_head else 1)
    best = {int(file[row]): 0.0 for row in own}
    for row, value in gained.items():
        best[int(file[row])] = max(best[int(file[row])], value)
    left = {
        row: max(0.0, value - (SECOND_LOSS if value < best[int(file[row])] - 1e-7 else 0))
        for row, value in gained.items()
    }
    scale = max(own.values(), default=0) / (max(left.values(), default=0) or 1)
    return {row: value * scale for row, value in left.items()}


@given(
    rows=st.lists(
        st.tuples(st.integers(-12, 64), st.integers(0, 3), st.integers(0, 1)),
        min_size=2,
        max_size=12,
        unique_by=lambda row: row[0],
    )
)
def test_relevances_are_those_of_the_definition_and_nothing_is_lost(rows: list[tuple[int, int, int]]) -> None:
    given_rows = [
        code(str(place), sixtyfourths / 64, file, name=name) for place, (sixtyfourths, file, name) in enumerate(rows)
    ]
    before = ranked(candidates(given_rows), plan(), features())
    found = by_files(before, plan())
    assert sorted(found.row.tolist()) == sorted(before.row.tolist())
    assert (np.diff(found.relevance) <= 1e-6).all()
    assert ((found.score >= 0) & (found.score <= 1 + 1e-6)).all()
    relevance = dict(zip(found.row.tolist(), found.relevance.tolist(), strict=True))
    wanted = by_hand(before)
    if len(wanted) > 1 and before.relevance.max() > 0 and max(wanted.values()) > 0:
        assert {row: relevance[row] for row in wanted} == pytest.approx(wanted, abs=1e-5)
