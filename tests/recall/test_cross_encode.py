"""The order that a cross-encoder's scores make, and how many pairs fit a deadline."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummock.core.candidates import FoundBy
from hummock.core.recall import Decay, DecayMode
from hummock.recall.fuse import Fused
from hummock.recall.rerank import LEAST_PAIRS, cross_encoded, pool_size
from tests.recall.candidates import Row, candidates, features, plan, ranked

COSTS = st.lists(st.floats(0, 10), max_size=60)
SCORES = st.lists(st.floats(0, 1, width=32), max_size=8)


def five() -> Fused:
    """a, b, c, d, e in this order."""
    rows = [Row(id=name, cosine=0.9 - place / 10) for place, name in enumerate("abcde")]
    return ranked(candidates(rows), plan(), features())


def test_the_pool_is_in_the_order_of_its_scores_and_the_rest_follow() -> None:
    assert cross_encoded(five(), [0.1, 0.9, 0.5]).memory_ids == ("b", "c", "a", "d", "e")


def test_what_was_said_of_a_candidate_counts_for_its_score_as_well() -> None:
    """S1-17."""
    rows = [Row(id="a", cosine=0.9, wrong=6), Row(id="b", cosine=0.8, helpful=30), Row(id="c", cosine=0.1)]
    read = cross_encoded(ranked(candidates(rows), plan(), features()), [0.9, 0.8, 0.7])
    assert read.memory_ids == ("b", "c", "a")
    assert read.score.tolist() == pytest.approx([0.9 * (1 + 3 / 34), 0.7, 0.8 * 0.7])


def test_no_scores_leave_the_order() -> None:
    assert cross_encoded(five(), []).memory_ids == five().memory_ids


def test_equal_scores_keep_their_order() -> None:
    assert cross_encoded(five(), [0.5] * 5).memory_ids == five().memory_ids


def test_no_candidates_stay_none() -> None:
    assert len(cross_encoded(ranked(candidates([]), plan(), features()), [])) == 0


def test_one_candidate_shows_its_score() -> None:
    only = cross_encoded(ranked(candidates([Row(id="a")]), plan(), features()), [0.25])
    assert (only.memory_ids, only.score.tolist()) == (("a",), [0.25])


@given(SCORES)
def test_nothing_is_lost_and_what_is_shown_falls(scores: list[float]) -> None:
    before = five()
    after = cross_encoded(before, scores[: len(before)])
    assert sorted(after.memory_ids) == sorted(before.memory_ids)
    assert (np.diff(after.score) <= 1e-6).all()
    assert (np.diff(after.relevance) <= 1e-6).all()
    assert after.cross is not None
    assert np.isnan(after.cross).sum() == len(before) - len(scores[: len(before)])


def test_columns_move_with_their_candidates() -> None:
    before, after = five(), cross_encoded(five(), [0.1, 0.9, 0.5])
    similarity = dict(zip(before.memory_ids, before.similarity.tolist(), strict=True))
    assert after.similarity.tolist() == [similarity[name] for name in after.memory_ids]


def test_age_lowers_what_the_cross_encoder_says() -> None:
    """S4-24."""
    rows = [Row(id="old", cosine=0.9, age_days=140.0), Row(id="new", cosine=0.1)]
    decay = Decay(mode=DecayMode.EXPONENTIAL, half_life_days=14.0)
    before = ranked(candidates(rows), plan(decay=decay), features())
    after = cross_encoded(before, [0.9 if name == "old" else 0.2 for name in before.memory_ids])
    assert after.memory_ids == ("new", "old")


def test_a_domain_that_the_query_names_stays_in_front() -> None:
    rows = [Row(id="named", found_by=FoundBy.DOMAIN, cosine=0.1), Row(id="near", cosine=0.9)]
    before = ranked(candidates(rows), plan(), features())
    assert before.memory_ids == ("named", "near")
    assert cross_encoded(before, [0.1, 0.9]).memory_ids == ("named", "near")


def test_holders_of_the_name_that_is_asked_for_stay_in_front_whatever_their_age() -> None:
    """A memory about a name is found at any age, and at any score of the cross-encoder."""
    holder = FoundBy.KEYWORD | FoundBy.HOLDER
    rows = [
        Row(id="old", found_by=holder, keyword=3.0, cosine=0.2, age_days=1400.0),
        Row(id="older", found_by=holder, keyword=3.0, cosine=0.1, age_days=2800.0),
        Row(id="new", cosine=0.9),
        Row(id="named", found_by=FoundBy.DOMAIN, cosine=0.1),
    ]
    decay = Decay(mode=DecayMode.EXPONENTIAL, half_life_days=14.0)
    before = ranked(candidates(rows), plan(decay=decay), features())
    assert before.memory_ids == ("named", "old", "older", "new")
    said = {"named": 0.1, "old": 0.2, "older": 0.3, "new": 0.9}
    after = cross_encoded(before, [said[name] for name in before.memory_ids])
    assert after.memory_ids == ("named", "older", "old", "new")
    assert after.score.tolist() == pytest.approx([0.1, 0.3, 0.2, 0.2])
    assert after.log_decay.tolist() == [0.0] * 4


@given(COSTS, st.floats(0, 100))
def test_a_pool_never_takes_longer_than_there_is(costs: list[float], left_s: float) -> None:
    size = pool_size(costs, left_s)
    assert size == 0 or (size >= LEAST_PAIRS and sum(costs[:size]) <= left_s + 1e-9)


@given(COSTS, st.floats(0, 50), st.floats(0, 50))
def test_more_time_never_reads_less(costs: list[float], left_s: float, more_s: float) -> None:
    assert pool_size(costs, left_s) <= pool_size(costs, left_s + more_s) <= len(costs)


@pytest.mark.parametrize(("left_s", "size"), [(9.0, 4), (4.0, 4), (3.9, 3), (2.0, 2), (1.9, 0), (0.0, 0), (-1.0, 0)])
def test_pairs_are_counted_from_the_front_and_one_alone_is_none(left_s: float, size: int) -> None:
    assert pool_size([1.0] * 4, left_s) == size
