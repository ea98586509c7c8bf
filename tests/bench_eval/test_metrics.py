from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.eval.metrics import (
    DEPTH,
    Judged,
    all_within,
    bootstrap,
    filled,
    ndcg,
    recall,
    reciprocal_rank,
    share,
    wilson,
)

pytestmark = pytest.mark.long

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


def test_wilson_of_half_of_a_hundred_is_the_known_interval() -> None:
    assert wilson(50, 100) == pytest.approx((0.4038, 0.5962), abs=1e-4)


def test_wilson_at_the_ends_stays_inside_and_says_that_it_does_not_know() -> None:
    assert wilson(0, 10) == pytest.approx((0.0, 0.2775), abs=1e-4)
    assert wilson(10, 10) == pytest.approx((0.7225, 1.0), abs=1e-4)
    assert wilson(0, 0) == (0.0, 1.0)


@given(st.integers(1, 5000), st.data())
def test_wilson_holds_the_share(count: int, data: st.DataObject) -> None:
    successes = data.draw(st.integers(0, count))
    low, high = wilson(successes, count)
    assert 0.0 <= low <= successes / count <= high <= 1.0


def test_bootstrap_holds_the_mean_and_says_the_same_every_time() -> None:
    values = [0.0, 1.0, 0.5, 1.0, 0.0, 0.25, 1.0, 1.0]
    low, high = bootstrap(values)
    assert low < sum(values) / len(values) < high
    assert bootstrap(values) == (low, high)


def test_bootstrap_of_equal_values_is_that_value() -> None:
    assert bootstrap([0.5]) == (0.5, 0.5)
    assert bootstrap([1.0] * 7) == (1.0, 1.0)


def test_bootstrap_of_nothing_is_nothing() -> None:
    assert bootstrap([]) == (0.0, 0.0)


def test_what_nothing_answers_is_worth_nothing() -> None:
    none = Judged.of(("w1", "w2"), frozenset())
    assert (recall(none, 10), share(none, 10), all_within(none, 10), ndcg(none), filled(none)) == (0, 0, 0, 0, 0)


def test_filled_counts_in_those_that_could_be_among_the_first_ten() -> None:
    many = Judged.of(tuple(f"m{place}" for place in range(5)), frozenset(f"m{place}" for place in range(40)))
    few = Judged.of(("m0", "w"), frozenset({"m0", "m1"}))
    assert (filled(many), filled(few)) == (0.5, 0.5)
