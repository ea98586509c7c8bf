"""Evidence of shared words for a candidate with a low similarity to the query."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummock.core.candidates import FoundBy
from hummock.recall.evidence import best_cosine, evidence
from tests.recall.candidates import PLAIN, Row, candidates, features, plan, ranked

BOTH = FoundBy.VECTOR | FoundBy.KEYWORD
FAR = 0.05
BOUNDED = plan(min_similarity=0.2, min_of_best=0.1)


def left(rows: list[Row], rarity: tuple[float, ...] = (0.5, 0.5), **how: object) -> list[str]:
    return list(ranked(candidates(rows, rarity), BOUNDED, features(**how)).memory_ids)  # type: ignore[arg-type] # its own fields


def test_a_shared_stop_word_exempts_nobody() -> None:
    """S4-26, 1.1-10."""
    rows = [Row(id="the", cosine=FAR, keyword=1.0, matched=0b01, found_by=BOTH)]
    assert left(rows, term_weights=(0.0, 1.0)) == []
    assert left(rows, term_weights=(1.0, 0.0)) == ["the"]


def test_where_all_words_of_a_query_tell_nothing_none_is_evidence() -> None:
    """S4-26."""
    rows = [Row(id="all of it", cosine=FAR, keyword=9.0, matched=0b11, found_by=BOTH)]
    assert left(rows, term_weights=(0.0, 0.0)) == []


def test_half_of_what_the_query_tells_is_enough() -> None:
    """1.1-10."""
    rows = [
        Row(id="rare", cosine=FAR, matched=0b01, found_by=BOTH),
        Row(id="usual", cosine=FAR, matched=0b10, found_by=BOTH),
    ]
    assert left(rows, (0.9, 0.2)) == ["rare"]


def test_in_a_long_query_words_are_enough_that_are_rare_together() -> None:
    """1.1-10: half of a query in two languages is in the other one."""
    terms = tuple("abcdefgh")
    rows = [
        Row(id="two", cosine=FAR, matched=0b11, found_by=BOTH),
        Row(id="one", cosine=FAR, matched=0b100, found_by=BOTH),
    ]
    assert left(rows, (0.5,) * 8, terms=terms, term_weights=(1.0,) * 8) == ["two"]


def test_the_most_similar_needs_less_than_the_others() -> None:
    """S4-26: a paraphrase may be little like what it asks for, and is still the nearest to it."""
    assert left([Row(id="best", cosine=0.15), Row(id="next", cosine=0.05)]) == ["best"]
    assert left([Row(id="noise", cosine=0.09)]) == []


def test_what_does_not_stand_out_needs_as_much_as_the_others() -> None:
    """S4-26: of what has nothing to do with the query, one is always the nearest."""
    assert left([Row(id="best", cosine=0.15), Row(id="next", cosine=0.14)]) == []
    copies = [Row(id=name, cosine=0.15, text_hash=5) for name in ("a copy", "another")]
    assert left([*copies, Row(id="next", cosine=0.05)]) == ["a copy"]


def test_an_echo_is_not_the_most_similar() -> None:
    """1.1-2."""
    rows = [Row(id="echo", cosine=1.0, text_hash=77), Row(id="best", cosine=0.15)]
    assert best_cosine([candidates(rows)], BOUNDED, features(hashes=frozenset({77})), PLAIN) == np.float32(0.15)


def test_what_has_no_vector_yet_is_found_by_any_word_of_content() -> None:
    rows = [Row(id="pending", cosine=float("nan"), matched=0b01, found_by=FoundBy.KEYWORD)]
    assert left(rows, (0.1, 0.9)) == ["pending"]
    assert left(rows, (0.1, 0.9), term_weights=(0.0, 1.0)) == []


@pytest.mark.parametrize("known", [1.0, 0.1])
def test_the_less_the_model_knows_the_script_the_less_is_asked_of_words(known: float) -> None:
    rows = [Row(id="word", cosine=FAR, matched=0b01, found_by=BOTH)]
    assert left(rows, (0.2, 0.9), known=known) == ([] if known == 1.0 else ["word"])


@given(st.lists(st.integers(0, 3), min_size=1, max_size=6), st.tuples(st.floats(0, 1), st.floats(0, 1)))
def test_who_holds_more_has_no_less_evidence(matched: list[int], weights: tuple[float, float]) -> None:
    rows = [Row(id=str(place), matched=bits, found_by=BOTH) for place, bits in enumerate(matched)]
    said = evidence(candidates(rows, (0.4, 0.7)), BOUNDED, features(term_weights=weights))
    assert (said >= 0).all()
    for one, other in zip(range(len(rows)), range(1, len(rows)), strict=False):
        if matched[one] & matched[other] == matched[one]:
            assert said[other] >= said[one]


def test_nothing_is_counted_where_everything_is_kept() -> None:
    assert len(evidence(candidates([Row(id="a")]), plan(), features())) == 0
