"""Maximal marginal relevance against its twin."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from hummock_kernels import mmr as kernel
from hummock_kernels import reference
from hummock_kernels._types import Longs, Matrix, Vector

# Multiples of 1/4 make every product and sum exact in float32, so that gains tie in both implementations alike.
QUARTERS = st.integers(-4, 4).map(lambda number: np.float32(number / 4))


@given(
    st.data(),
    st.integers(0, 8),
    st.integers(1, 4),
    st.sampled_from([0.0, 0.25, 0.5, 1.0]),
    st.sampled_from([0.25, 0.5, 2.0]),
    st.sampled_from([0.5, 1.0, 2.0]),
    st.integers(-1, 10),
)
def test_the_choice_equals_its_twin(
    data: st.DataObject, n: int, dim: int, weight: float, alike: float, twin_bar: float, keep: int
) -> None:
    """S2-05."""
    names = data.draw(hnp.arrays(np.uint64, n, elements=st.integers(0, 2)))
    vectors = data.draw(hnp.arrays(np.float32, (n, dim), elements=QUARTERS))
    relevance = data.draw(hnp.arrays(np.float32, n, elements=QUARTERS | st.just(np.float32(np.nan))))
    if n and data.draw(st.booleans()):
        vectors[data.draw(st.integers(0, n - 1))] = np.nan
    vectors.flags.writeable = names.flags.writeable = relevance.flags.writeable = False
    rows = np.array(data.draw(st.permutations(range(n))), np.int64)
    arguments = (vectors, names, rows, relevance, weight, alike, twin_bar, keep)
    for found, expected in zip(kernel.mmr(*arguments), reference.mmr(*arguments), strict=True):
        np.testing.assert_array_equal(found, expected)


@given(st.data(), st.integers(0, 8))
def test_every_candidate_is_chosen_exactly_once(data: st.DataObject, n: int) -> None:
    vectors = data.draw(hnp.arrays(np.float32, (n, 3), elements=QUARTERS))
    relevance = data.draw(hnp.arrays(np.float32, n, elements=QUARTERS))
    assert sorted(chosen(vectors, relevance, 0.7, 0.9, n)) == list(range(n))


def chosen(vectors: Matrix, relevance: Vector, weight: float, twin_bar: float, keep: int) -> list[int]:
    arguments = (vectors, one_name(len(vectors)), np.arange(len(vectors)), relevance, weight, 1.0, twin_bar, keep)
    places: list[int] = kernel.mmr(*arguments)[0].tolist()
    return places


def one_name(n: int) -> Longs:
    return np.ones(n, np.uint64)


def unit(*values: float) -> Vector:
    vector = np.array(values, np.float32)
    return vector / np.linalg.norm(vector)


DATE_V2, DATE_V1, DISCLAIMER = unit(1, 0, 0), unit(0.907, 0.421, 0), unit(0.03, 0, 1)


def test_the_old_version_of_the_best_hit_is_never_second() -> None:
    """S2-07, 1.1-7: lambda alone would keep the twin second, as its relevance is so much higher."""
    vectors = np.stack([DATE_V2, DATE_V1, DISCLAIMER])
    relevance = np.array([0.80, 0.75, 0.03], np.float32)
    assert chosen(vectors, relevance, 0.7, 0.9, 3) == [0, 2, 1]
    assert chosen(vectors, relevance, 0.7, 1.01, 3) == [0, 1, 2]


def test_twins_follow_by_the_same_rule_once_nothing_else_is_left() -> None:
    """1.1-7."""
    vectors = np.stack([DATE_V2, DATE_V2, DATE_V2, DISCLAIMER])
    relevance = np.array([0.9, 0.5, 0.7, 0.1], np.float32)
    assert chosen(vectors, relevance, 0.7, 0.9, 4) == [0, 3, 2, 1]


def test_a_weight_of_one_is_the_order_of_relevance() -> None:
    """S2-06."""
    vectors = np.ones((3, 1), np.float32)
    assert chosen(vectors, np.array([0.1, 0.3, 0.2], np.float32), 1.0, 2.0, 3) == [1, 2, 0]


def test_equal_gains_go_to_the_smaller_index() -> None:
    assert chosen(np.zeros((4, 2), np.float32), np.ones(4, np.float32), 0.7, 0.9, 2) == [0, 1]


def test_a_twin_is_marked_where_it_follows_its_better() -> None:
    """S2-07."""
    vectors, rows = np.stack([DATE_V1, DISCLAIMER, DATE_V2]), np.array([2, 0, 1])
    relevance = np.array([0.9, 0.8, 0.1], np.float32)
    places, is_twin = kernel.mmr(vectors, one_name(3), rows, relevance, 0.7, 1.0, 0.9, 3)
    assert (places.tolist(), is_twin.tolist()) == ([0, 2, 1], [0, 0, 1])


def test_memories_without_vectors_are_nobodys_twins() -> None:
    arguments = (np.zeros((3, 4), np.float32), one_name(3), np.arange(3), np.ones(3, np.float32), 0.7, 1.0, 0.9, 3)
    assert not kernel.mmr(*arguments)[1].any()


def test_what_is_alike_under_another_name_or_none_is_no_twin() -> None:
    """S2-07: rows of a table are all wanted, however much they are alike."""
    vectors = np.stack([DATE_V2, DATE_V2, DATE_V2, DISCLAIMER])
    relevance = np.array([0.9, 0.8, 0.7, 0.1], np.float32)
    for names in ([0, 0, 0, 0], [1, 2, 3, 4]):
        named = np.array(names, np.uint64)
        places, is_twin = kernel.mmr(vectors, named, np.arange(4), relevance, 1.0, 1.0, 0.9, 4)
        assert places.tolist() == [0, 1, 2, 3]
        assert not is_twin.any()


def test_likeness_counts_no_further_than_its_bound() -> None:
    """S2-05: beyond it the more alike is not the less wanted."""
    vectors = np.stack([unit(1, 0, 0), unit(1, 0.1, 0), unit(1, 1, 0), unit(0, 0, 1)])
    relevance = np.array([1.0, 0.9, 0.8, 0.1], np.float32)
    places, _ = kernel.mmr(vectors, np.zeros(4, np.uint64), np.arange(4), relevance, 0.7, 0.6, 2.0, 4)
    assert places.tolist() == [0, 1, 2, 3]
    places, _ = kernel.mmr(vectors, np.zeros(4, np.uint64), np.arange(4), relevance, 0.7, 1.0, 2.0, 4)
    assert places.tolist() == [0, 2, 1, 3]
