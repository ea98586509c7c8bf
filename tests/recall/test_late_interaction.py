from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from numpy.typing import NDArray

from hummock.core.candidates import FoundBy
from hummock.core.memory import MemoryKind
from hummock.core.recall import Decay, DecayMode
from hummock.recall.fuse import LATE_SHARE, Fused
from hummock.recall.rerank import late_scores
from tests.recall.candidates import Row, candidates, features, plan, ranked

FOURTEEN_DAYS = Decay(mode=DecayMode.EXPONENTIAL, half_life_days=14.0)
ASKED = (1, 2)
"""The query's tokens; a token equals one of the same number and is unlike all others."""


def reranked(
    rows: Sequence[Row], *, asked: Sequence[int] = ASKED, known: float = 1.0, decay: Decay | None = None
) -> Fused:
    query = features(asked=asked, known=known)
    return ranked(candidates(rows), plan(decay=decay), query)


def order(rows: Sequence[Row]) -> tuple[str, ...]:
    return reranked(rows).memory_ids


def test_no_candidates_stay_none() -> None:
    assert len(reranked([])) == 0


def marked(values: NDArray[np.int8], mark: int) -> NDArray[np.int8]:
    """Token vectors with a mark in their last component, which leaves the rest of their length to what they are."""
    scaled: NDArray[np.int8] = np.rint(values / 127 * np.sqrt(127**2 - mark**2)).astype(np.int8)
    scaled[:, -1] = mark
    return scaled


def test_words_of_another_model_have_no_say() -> None:
    """Two models as one space: a mark tells their token vectors apart, and is not counted."""
    found = candidates([Row(id="other", tokens=(1, 2)), Row(id="same", tokens=(2, 40)), Row(id="none")])
    assert found.tokens is not None
    values = marked(found.tokens.values, 92)
    values[:2, -1] = -92
    query = features(asked=ASKED)
    query = replace(query, tokens=marked(query.tokens, 92))
    scores = late_scores(replace(found, tokens=replace(found.tokens, values=values)), query, 92 / 127)
    assert np.isnan(scores).tolist() == [True, False, True]
    assert scores[1] == pytest.approx(0.5, abs=0.01)


def test_a_memory_whose_words_answer_each_word_of_the_query_rises() -> None:
    rows = [Row(id="near", cosine=0.8, tokens=(3, 1)), Row(id="says it", cosine=0.7, tokens=(5, 2, 1))]
    result = reranked(rows)
    assert result.memory_ids == ("says it", "near")
    assert result.late[result.row] == pytest.approx([1, 0.5])


def test_half_of_the_words_are_half_of_the_score() -> None:
    result = reranked([Row(id="a", tokens=(1, 2)), Row(id="b", tokens=(2, 2, 7))])
    assert result.late[result.row] == pytest.approx([1, 0.5])


def test_late_interaction_has_its_whole_share_where_the_model_is_at_home() -> None:
    assert reranked([Row(id="a", cosine=0.9, tokens=(1,))]).late_share == pytest.approx(LATE_SHARE)


@pytest.mark.parametrize("cosine", [-0.5, 0.0, 0.1])
def test_a_model_that_finds_nothing_alike_has_no_say_in_words_either(cosine: float) -> None:
    rows = [
        Row(id="found", cosine=cosine, keyword=9.0, matched=1, found_by=FoundBy.KEYWORD, tokens=(3,)),
        Row(id="noise", cosine=cosine, keyword=8.0, matched=1, found_by=FoundBy.KEYWORD, tokens=(1, 2)),
    ]
    assert reranked(rows).late_share == 0
    assert order(rows) == ("found", "noise")


def test_a_model_that_cannot_read_the_query_has_no_say() -> None:
    rows = [
        Row(id="word", cosine=0.8, keyword=2.0, matched=3, found_by=FoundBy.KEYWORD, tokens=(3,)),
        Row(id="noise", cosine=0.9, tokens=(1, 2)),
    ]
    result = reranked(rows, known=0.0)
    assert result.late_share == 0
    assert result.memory_ids == ("word", "noise")


def test_late_interaction_says_little_about_a_name_of_code_that_is_found() -> None:
    rows = [Row(id="a", cosine=0.9, keyword=2.0, matched=3, tokens=(1,))]
    query = features(asked=ASKED, is_name=True)
    assert ranked(candidates(rows), plan(), query).late_share == pytest.approx(LATE_SHARE / 10)


def test_without_token_vectors_of_the_query_late_interaction_has_no_share() -> None:
    found = candidates([Row(id="a", tokens=(1,)), Row(id="b", tokens=(2,))])
    result = ranked(found, plan(), features())
    assert np.isnan(result.late).all()
    assert result.late_share == 0


def test_candidates_that_brought_no_token_vectors_stay_as_they_are() -> None:
    found = replace(candidates([Row(id="a", tokens=(1,)), Row(id="b")]), tokens=None)
    with_tokens, without = ranked(found, plan(), features(asked=ASKED)), ranked(found, plan(), features())
    assert with_tokens.memory_ids == without.memory_ids
    assert with_tokens.relevance.tolist() == without.relevance.tolist()


def test_a_memory_without_token_vectors_keeps_its_relevance() -> None:
    found = candidates([Row(id="with", cosine=0.9, tokens=(3, 4)), Row(id="without", cosine=0.6)])
    plain, result = ranked(found, plan(), features()), ranked(found, plan(), features(asked=ASKED))
    at = result.memory_ids.index("without")
    assert np.isnan(result.late[result.row[at]])
    assert result.relevance[at] == plain.relevance[plain.memory_ids.index("without")]


def test_decay_lowers_the_blended_relevance() -> None:
    """S4-22, S4-29."""
    rows = [Row(id="old", age_days=14, tokens=(1, 2)), Row(id="new", tokens=(1, 2))]
    result = reranked(rows, decay=FOURTEEN_DAYS)
    assert result.memory_ids == ("new", "old")
    assert result.score[1] / result.score[0] == pytest.approx(math.exp(-1), rel=1e-5)


def test_ages_so_great_that_scores_underflow_keep_their_order() -> None:
    """1.1-3."""
    rows = [Row(id=f"{days:05}", age_days=days, tokens=(1,)) for days in (30_000, 12_000, 20_000, 15_000)]
    assert reranked(rows, decay=FOURTEEN_DAYS).memory_ids == ("12000", "15000", "20000", "30000")


def test_a_domain_that_the_query_names_stays_first_with_full_score() -> None:
    """S0-10."""
    rows = [
        Row(id="says it", cosine=0.9, kind=MemoryKind.DOMAIN_KNOWLEDGE, tokens=(1, 2)),
        Row(id="named", cosine=0.1, kind=MemoryKind.DOMAIN_KNOWLEDGE, found_by=FoundBy.DOMAIN, tokens=(3,)),
    ]
    result = reranked(rows)
    assert result.memory_ids == ("named", "says it")
    assert result.score[0] == 1


def test_a_fragment_of_a_named_domains_key_file_is_raised_after_the_blend() -> None:
    rows = [
        Row(id="key", cosine=0.5, kind=MemoryKind.CODE_FRAGMENT, found_by=FoundBy.KEY_FILE, tokens=(1,)),
        Row(id="near", cosine=0.6, kind=MemoryKind.CODE_FRAGMENT, tokens=(1,)),
        Row(id="best", cosine=0.9, kind=MemoryKind.CODE_FRAGMENT, tokens=(1, 2)),
    ]
    assert order(rows) == ("best", "key", "near")


def test_equal_memories_are_ordered_by_id() -> None:
    """S4-24."""
    assert order([Row(id=name, tokens=(1,)) for name in "cab"]) == ("a", "b", "c")


ROWS = st.builds(
    Row,
    id=st.uuids().map(str),
    cosine=st.floats(-1, 1, width=32),
    keyword=st.floats(0, 30, width=32),
    age_days=st.floats(0, 100),
    kind=st.sampled_from([MemoryKind.NOTE, MemoryKind.CODE_FRAGMENT]),
    tokens=st.lists(st.integers(0, 5), max_size=4).map(tuple),
)


@given(st.lists(ROWS, max_size=8, unique_by=lambda row: row.id), st.sampled_from([None, FOURTEEN_DAYS]))
def test_nothing_is_lost_or_added_and_the_best_relevance_comes_first(rows: list[Row], decay: Decay | None) -> None:
    result = reranked(rows, decay=decay)
    assert sorted(result.memory_ids) == sorted(row.id for row in rows)
    assert (np.diff(result.relevance) <= 1e-6).all()
    assert ((result.relevance >= 0) & (result.relevance <= 1 + 1e-6)).all()
    assert ((result.score >= 0) & (result.score <= result.relevance + 1e-6)).all()
