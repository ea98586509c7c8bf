"""Fragments of code that are left out, and evidence that keeps one."""

from __future__ import annotations

from msgspec.structs import replace

from hummock.core.candidates import FoundBy
from hummock.core.memory import MemoryKind
from hummock.recall.fuse import Fused
from hummock.recall.prefer import above_bar
from tests.recall.candidates import PLAIN, Row, candidates, features, plan, ranked

BOTH = FoundBy.VECTOR | FoundBy.KEYWORD
BOUNDED = plan(min_similarity=0.2, min_of_best=0.1)
BARRED = replace(BOUNDED, code_bar=0.96)


def fragment(memory_id: str, cosine: float, *tokens: int, **what: object) -> Row:
    return Row(id=memory_id, cosine=cosine, kind=MemoryKind.CODE_FRAGMENT, tokens=tokens, **what)  # type: ignore[arg-type] # its own fields


def fused(rows: list[Row], searched: int) -> Fused:
    found = replace(candidates(rows), name="code", searched=searched)
    query = features(asked=(1, 2))
    return above_bar(ranked(found, BARRED, query), BARRED, query, PLAIN)


def left(rows: list[Row], searched: int = 4096) -> list[str]:
    return sorted(fused(rows, searched).memory_ids)


def test_a_fragment_needs_more_than_one_thing_that_speaks_for_it() -> None:
    """1.1-10: among thousands of fragments some sound like anything that is asked."""
    rows = [
        fragment("sounds like it", 0.45, 1, 9),
        fragment("is like it in every word", 0.45, 1, 2),
        fragment("has its words", 0.40, 1, 9, matched=0b11, found_by=BOTH),
        fragment("has its words and nothing else", 0.05, 8, 9, matched=0b11, found_by=BOTH),
    ]
    assert left(rows) == ["has its words", "is like it in every word"]
    assert fused(rows, 4096).below_min_similarity == 2


def test_the_fewer_fragments_there_are_the_less_is_asked_of_them() -> None:
    """1.1-10."""
    rows = [fragment("a", 0.35, 1, 9)]
    assert left(rows) == left(rows, 10**6) == []
    assert left(rows, 400) == ["a"]


def test_without_late_interaction_a_fragment_has_what_its_similarity_suggests() -> None:
    assert left([fragment("like", 0.40), fragment("unlike", 0.30)]) == ["like"]


def test_a_fragment_without_a_vector_is_found_by_its_words_and_a_name_by_itself() -> None:
    rows = [
        fragment("pending", float("nan"), matched=0b11, found_by=FoundBy.KEYWORD),
        fragment("pending, of another thing", float("nan"), found_by=FoundBy.KEYWORD),
        fragment("held", 0.0, found_by=BOTH | FoundBy.HOLDER),
    ]
    assert left(rows) == ["held", "pending"]


def worded(memory_id: str, keyword: float, matched: int) -> Row:
    return fragment(memory_id, 0.05, 8, 9, keyword=keyword, matched=matched, found_by=BOTH)


def test_what_words_rank_first_with_evidence_enough_needs_no_similarity() -> None:
    """1.1-10."""
    rows = [
        worded("fourth", 3.0, 0b1111),
        worded("third", 4.0, 0b1111),
        worded("second, with a rare word alone", 5.0, 0b1000),
        worded("first, with words that tell little", 6.0, 0b0111),
    ]
    found = replace(candidates(rows, (0.05, 0.05, 0.05, 1.0)), name="code", searched=4096)
    query = features(asked=(1, 2), terms=("a", "b", "c", "d"), term_weights=(1.0, 1.0, 1.0, 1.0))
    assert above_bar(ranked(found, BARRED, query), BARRED, query, PLAIN).memory_ids == ("third",)


def test_where_several_pass_less_is_asked_of_the_others() -> None:
    """1.1-10."""
    others = [fragment("below", 0.40, 1, 9), fragment("far below", 0.30, 1, 9)]
    passing = [fragment(name, 0.45, 1, 2, file=place) for place, name in enumerate("abc", 1)]
    assert left([*passing[:2], *others]) == ["a", "b"]
    assert left([*passing, *others]) == ["a", "b", "below", "c"]


def test_how_similar_a_fragment_should_have_been_is_known() -> None:
    found = fused([fragment("a", 0.35, 1, 9)], 4096)
    assert found.minimum is not None
    assert abs(found.minimum[0] - 0.46) < 1e-2


def test_a_minimum_that_is_asked_for_takes_the_place_of_the_bar() -> None:
    """S4-21."""
    found = replace(candidates([fragment("a", 0.25), fragment("b", 0.15)]), name="code", searched=4096)
    kept = above_bar(ranked(found, BOUNDED, features()), BOUNDED, features(), PLAIN)
    assert kept.memory_ids == ("a",)


def test_a_substring_that_a_fragment_holds_is_enough() -> None:
    """S0-13."""
    found = replace(candidates([fragment("a", 0.05, matched=0b01, found_by=BOTH)], ()), name="code", searched=4096)
    literal, query = replace(BARRED, substrings=("a",)), features(term_weights=())
    assert above_bar(ranked(found, literal, query), literal, query, PLAIN).memory_ids == ("a",)


def test_other_groups_have_no_bar() -> None:
    rows = candidates([fragment("a", 0.25)])
    assert above_bar(ranked(rows, BARRED, features()), BARRED, features(), PLAIN).memory_ids == ("a",)
