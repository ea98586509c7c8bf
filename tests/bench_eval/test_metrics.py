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
LOG3 = 1 / math.log2(3)


def judged(*relevant: str, hits: tuple[str, ...] = HITS) -> Judged:
    return Judged.of(hits, frozenset(relevant))


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        # Recall asks whether one relevant memory is among the first.
        ([recall(judged("c", "z"), k) for k in (1, 3, 10)], [0.0, 1.0, 1.0]),
        # `all_within` asks for every relevant memory, `share` counts those among the first.
        ([all_within(judged("a", other), 3) for other in "cdz"], [1.0, 0.0, 0.0]),
        ([share(judged("a", "e", "z"), k) for k in (4, 5)], [1 / 3, 2 / 3]),
        # The reciprocal rank is that of the first relevant memory.
        ([reciprocal_rank(judged("d", "b")), reciprocal_rank(judged("z"))], [0.5, 0.0]),
        # NDCG of one relevant memory is the discount of its place, of two it is measured against the best list.
        ([ndcg(judged(one)) for one in "acz"], [1.0, 1 / 2, 0.0]),
        ([ndcg(judged("a", "b")), ndcg(judged("b", "d"))], [1.0, (LOG3 + 1 / math.log2(5)) / (1 + LOG3)]),
        # More memories are relevant than are looked at.
        ([ndcg(judged(*HITS, "k", "l"))], [1.0]),
        # No hits are worth nothing.
        ([measure(judged("a", hits=())) for measure in (reciprocal_rank, ndcg)], [0.0, 0.0]),
        ([measure(judged("a", hits=()), 10) for measure in (recall, share)], [0.0, 0.0]),
    ],
    ids=[
        "recall", "all within", "share", "rank", "ndcg of one", "ndcg of two", "ndcg of many", "no hits",
        "no hits at 10",
    ],
)  # fmt: skip
def test_a_measure_is_what_its_name_says(found: list[float], expected: list[float]) -> None:
    assert found == pytest.approx(expected)


def test_hits_beyond_the_depth_do_not_count() -> None:
    assert Judged.of((*HITS, "late"), frozenset({"late"})).ranks == ()


@given(st.permutations(HITS), st.sets(st.sampled_from((*HITS, "y", "z")), min_size=1))
def test_every_measure_lies_between_none_and_all(hits: list[str], relevant: set[str]) -> None:
    one = Judged.of(tuple(hits), frozenset(relevant))
    for value in (ndcg(one), reciprocal_rank(one), *(recall(one, k) for k in range(1, DEPTH + 1))):
        assert 0.0 <= value <= 1.0 + 1e-12
    assert all_within(one, DEPTH) <= share(one, DEPTH) <= recall(one, DEPTH)


def test_wilson_is_the_known_interval_and_stays_inside_at_the_ends() -> None:
    known = [wilson(*each) for each in ((50, 100), (0, 10), (10, 10))]
    assert known == [pytest.approx(each, abs=1e-4) for each in ((0.4038, 0.5962), (0.0, 0.2775), (0.7225, 1.0))]
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


def test_bootstrap_of_equal_values_is_that_value_and_of_nothing_nothing() -> None:
    assert [bootstrap(values) for values in ([0.5], [1.0] * 7, [])] == [(0.5, 0.5), (1.0, 1.0), (0.0, 0.0)]


def test_what_nothing_answers_is_worth_nothing() -> None:
    none = Judged.of(("w1", "w2"), frozenset())
    assert (recall(none, 10), share(none, 10), all_within(none, 10), ndcg(none), filled(none)) == (0, 0, 0, 0, 0)


def test_filled_counts_in_those_that_could_be_among_the_first_ten() -> None:
    many = Judged.of(tuple(f"m{place}" for place in range(5)), frozenset(f"m{place}" for place in range(40)))
    few = Judged.of(("m0", "w"), frozenset({"m0", "m1"}))
    assert (filled(many), filled(few)) == (0.5, 0.5)
