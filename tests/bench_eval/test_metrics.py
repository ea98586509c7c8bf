from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.eval.metrics import DEPTH, Judged, all_within, ndcg, recall, reciprocal_rank, share

HITS = ("a", "b", "c", "d", "e", "f", "g", "h", "i", "j")


def judged(*relevant: str, hits: tuple[str, ...] = HITS) -> Judged:
    return Judged.of(hits, frozenset(relevant))


def test_recall_asks_whether_one_relevant_memory_is_among_the_first() -> None:
    third = judged("c", "z")
    assert (recall(third, 1), recall(third, 3), recall(third, 10)) == (0.0, 1.0, 1.0)


def test_all_within_asks_for_every_relevant_memory() -> None:
    assert all_within(judged("a", "c"), 3) == 1.0
    assert all_within(judged("a", "d"), 3) == 0.0
    assert all_within(judged("a", "z"), 3) == 0.0


def test_share_counts_the_relevant_memories_that_are_among_the_first() -> None:
    assert share(judged("a", "e", "z"), 4) == pytest.approx(1 / 3)
    assert share(judged("a", "e", "z"), 5) == pytest.approx(2 / 3)


def test_reciprocal_rank_is_that_of_the_first_relevant_memory() -> None:
    assert reciprocal_rank(judged("d", "b")) == 0.5
    assert reciprocal_rank(judged("z")) == 0.0


def test_ndcg_of_one_relevant_memory_is_the_discount_of_its_place() -> None:
    assert ndcg(judged("a")) == 1.0
    assert ndcg(judged("c")) == pytest.approx(1 / 2)
    assert ndcg(judged("z")) == 0.0


def test_ndcg_of_two_relevant_memories_is_measured_against_the_best_list() -> None:
    best = 1 + 1 / math.log2(3)
    assert ndcg(judged("a", "b")) == pytest.approx(1.0)
    assert ndcg(judged("b", "d")) == pytest.approx((1 / math.log2(3) + 1 / math.log2(5)) / best)


def test_ndcg_is_one_when_more_memories_are_relevant_than_are_looked_at() -> None:
    assert ndcg(judged(*HITS, "k", "l")) == pytest.approx(1.0)


def test_no_hits_are_worth_nothing() -> None:
    nothing = judged("a", hits=())
    assert (recall(nothing, 10), reciprocal_rank(nothing), ndcg(nothing), share(nothing, 10)) == (0.0, 0.0, 0.0, 0.0)


def test_hits_beyond_the_depth_do_not_count() -> None:
    assert Judged.of((*HITS, "late"), frozenset({"late"})).ranks == ()


@given(st.permutations(HITS), st.sets(st.sampled_from((*HITS, "y", "z")), min_size=1))
def test_every_measure_lies_between_none_and_all(hits: list[str], relevant: set[str]) -> None:
    one = Judged.of(tuple(hits), frozenset(relevant))
    for value in (ndcg(one), reciprocal_rank(one), *(recall(one, k) for k in range(1, DEPTH + 1))):
        assert 0.0 <= value <= 1.0 + 1e-12
    assert all_within(one, DEPTH) <= share(one, DEPTH) <= recall(one, DEPTH)
