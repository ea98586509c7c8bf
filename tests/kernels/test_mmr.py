"""Maximal marginal relevance against its twin."""

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from hummock_kernels import mmr as kernel
from hummock_kernels import reference
from hummock_kernels._types import Matrix, Vector
from hummock_kernels.pool import ROW
from tests.kernels.test_cosine import as_halves

# Multiples of 1/4 make every product and sum exact in float32, so that gains tie in both implementations alike.
QUARTERS = st.integers(-4, 4).map(lambda number: np.float32(number / 4))


def rows_of(names: Sequence[int] | NDArray[np.uint64]) -> NDArray[np.void]:
    """Candidates of these names."""
    rows = np.zeros(len(names), ROW)
    rows["name_hash"] = names
    return rows


@given(
    st.data(), st.integers(0, 8), st.integers(1, 4), st.sampled_from([0.0, 0.25, 0.5, 1.0]),
    st.sampled_from([0.25, 0.5, 2.0]), st.sampled_from([0.5, 1.0, 2.0]), st.integers(-1, 10),
)  # fmt: skip
def test_the_choice_equals_its_twin(
    data: st.DataObject, n: int, dim: int, weight: float, alike: float, twin_bar: float, keep: int
) -> None:
    """S2-05."""
    named = rows_of(data.draw(hnp.arrays(np.uint64, n, elements=st.integers(0, 2))))
    vectors = data.draw(hnp.arrays(np.float32, (n, dim), elements=QUARTERS))
    relevance = data.draw(hnp.arrays(np.float32, n, elements=QUARTERS | st.just(np.float32(np.nan))))
    if n and data.draw(st.booleans()):
        vectors[data.draw(st.integers(0, n - 1))] = np.nan
    halves = as_halves(vectors)
    own = data.draw(hnp.arrays(np.int64, n, elements=st.integers(-1, n - 1)))
    own.flags.writeable = named.flags.writeable = relevance.flags.writeable = False
    rows = np.array(data.draw(st.permutations(range(n))), np.int64)
    writers = data.draw(hnp.arrays(np.uint32, st.sampled_from([0, n]), elements=st.integers(0, 2)))
    cap = kernel.Cap(
        writers=writers,
        most=data.draw(st.integers(1, 3)),
        first=data.draw(st.integers(0, 8)),
        near=data.draw(st.sampled_from([0.0, 0.5, 1.0])),
    )
    arguments = (halves, own, named, rows, relevance, weight, alike, twin_bar, keep, cap)
    for found, expected in zip(kernel.mmr(*arguments), reference.mmr(*arguments), strict=True):
        np.testing.assert_array_equal(found, expected)


@given(st.data(), st.integers(0, 8))
def test_every_candidate_is_chosen_exactly_once(data: st.DataObject, n: int) -> None:
    vectors = data.draw(hnp.arrays(np.float32, (n, 3), elements=QUARTERS))
    relevance = data.draw(hnp.arrays(np.float32, n, elements=QUARTERS))
    assert sorted(chosen(vectors, relevance, 0.7, 0.9)) == list(range(n))


def picked(
    vectors: Matrix,
    relevance: Vector | list[float],
    weight: float = 1.0,
    twin_bar: float = 2.0,
    *,
    names: Sequence[int] | None = None,
    alike: float = 1.0,
    cap: kernel.Cap = kernel.NO_CAP,
    rows: Sequence[int] | None = None,
) -> tuple[list[int], list[int]]:
    """Places in the order of the choice, and their marks; unless names are given all have one."""
    n = len(vectors)
    named, order = rows_of(names or [1] * n), np.array(rows or range(n), np.int64)
    wanted = np.asarray(relevance, np.float32)
    places, marks = kernel.mmr(as_halves(vectors), np.arange(n), named, order, wanted, weight, alike, twin_bar, n, cap)
    return places.tolist(), marks.tolist()


def chosen(vectors: Matrix, relevance: Vector | list[float], weight: float, twin_bar: float) -> list[int]:
    return picked(vectors, relevance, weight, twin_bar)[0]


def unit(*values: float) -> Vector:
    vector = np.array(values, np.float32)
    return vector / np.linalg.norm(vector)


DATE_V2, DATE_V1, DISCLAIMER = unit(1, 0, 0), unit(0.907, 0.421, 0), unit(0.03, 0, 1)


def test_the_old_version_of_the_best_hit_is_never_second() -> None:
    """S2-07, 1.1-7: lambda alone would keep the twin second, as its relevance is so much higher."""
    vectors, relevance = np.stack([DATE_V2, DATE_V1, DISCLAIMER]), [0.80, 0.75, 0.03]
    assert chosen(vectors, relevance, 0.7, 0.9) == [0, 2, 1]
    assert chosen(vectors, relevance, 0.7, 1.01) == [0, 1, 2]


def test_twins_follow_by_the_same_rule_unless_they_have_other_names() -> None:
    """1.1-7, S2-07. Rows of a table are all wanted, however much they are alike."""
    vectors = np.stack([DATE_V2, DATE_V2, DATE_V2, DISCLAIMER])
    assert chosen(vectors, [0.9, 0.5, 0.7, 0.1], 0.7, 0.9) == [0, 3, 2, 1]
    for names in ([0, 0, 0, 0], [1, 2, 3, 4]):
        assert picked(vectors, [0.9, 0.8, 0.7, 0.1], 1.0, 0.9, names=names) == ([0, 1, 2, 3], [0] * 4)


def test_a_weight_of_one_is_the_order_of_relevance() -> None:
    """S2-06."""
    assert chosen(np.ones((3, 1), np.float32), [0.1, 0.3, 0.2], 1.0, 2.0) == [1, 2, 0]


def test_equal_gains_go_to_the_smaller_index() -> None:
    places = kernel.mmr(
        np.zeros((4, 2), np.uint16), np.arange(4), rows_of([1] * 4), np.arange(4), np.ones(4, np.float32),
        0.7, 1.0, 0.9, 2, kernel.NO_CAP,
    )[0]  # fmt: skip
    assert places.tolist() == [0, 1]


def test_a_twin_is_marked_where_it_follows_its_better() -> None:
    """S2-07."""
    vectors = np.stack([DATE_V1, DISCLAIMER, DATE_V2])
    assert picked(vectors, [0.9, 0.8, 0.1], 0.7, 0.9, rows=[2, 0, 1]) == ([0, 2, 1], [0, 0, 1])


def test_memories_without_vectors_are_nobodys_twins() -> None:
    assert not any(picked(np.zeros((3, 4), np.float32), [1, 1, 1], 0.7, 0.9)[1])


def test_likeness_counts_no_further_than_its_bound() -> None:
    """S2-05: beyond it the more alike is not the less wanted."""
    vectors = np.stack([unit(1, 0, 0), unit(1, 0.1, 0), unit(1, 1, 0), unit(0, 0, 1)])
    for alike, order in ((0.6, [0, 1, 2, 3]), (1.0, [0, 2, 1, 3])):
        assert picked(vectors, [1.0, 0.9, 0.8, 0.1], 0.7, names=[0] * 4, alike=alike)[0] == order


def capped(most: int, writers: list[int], relevance: list[float], near: float = 0.5, first: int = 10) -> list[int]:
    """The order of candidates that resemble nothing."""
    cap = kernel.Cap(writers=np.array(writers, np.uint32), most=most, first=first, near=near)
    return picked(np.zeros((len(writers), 2), np.float32), relevance, names=[0] * len(writers), cap=cap)[0]


WRITERS = st.lists(st.integers(0, 3), max_size=24)
RELEVANCE = st.integers(0, 16).map(lambda number: number / 16)


@given(WRITERS, st.data(), st.integers(1, 10))
def test_no_writer_is_above_the_cap_while_others_are_near(writers: list[int], data: st.DataObject, most: int) -> None:
    relevance = data.draw(st.lists(RELEVANCE, min_size=len(writers), max_size=len(writers)))
    order = capped(most, writers, relevance)
    assert sorted(order) == list(range(len(writers)))
    for place, pick in enumerate(order[:10]):
        before = [writers[one] for one in order[:place]]
        if writers[pick] and before.count(writers[pick]) >= most:
            behind = order[place + 1 :]
            near = [one for one in behind if relevance[one] >= max(relevance) / 2]
            assert all(writers[one] and before.count(writers[one]) >= most for one in near)


@given(st.integers(0, 24), st.data(), st.integers(1, 10), st.integers(0, 1))
def test_a_writer_alone_is_in_the_order_of_before(n: int, data: st.DataObject, most: int, writer: int) -> None:
    relevance = data.draw(st.lists(RELEVANCE, min_size=n, max_size=n))
    assert capped(most, [writer] * n, relevance) == capped(10, [writer] * n, relevance)


def test_what_is_not_near_takes_nobodys_place() -> None:
    assert capped(2, [1, 1, 1, 0, 0], [1.0, 0.9, 0.8, 0.6, 0.4]) == [0, 1, 3, 2, 4]
    assert capped(2, [1, 1, 1, 0, 0], [1.0, 0.9, 0.8, 0.6, 0.4], near=0.0) == [0, 1, 3, 4, 2]
    assert capped(2, [1, 1, 1, 0, 0], [1.0, 0.9, 0.8, 0.6, np.nan], near=0.0) == [0, 1, 3, 2, 4]


def test_behind_the_first_the_order_is_as_it_was() -> None:
    assert capped(1, [1, 1, 1, 0, 0, 0], [1.0, 0.9, 0.8, 0.7, 0.6, 0.5], first=3) == [0, 3, 4, 1, 2, 5]


def test_who_fell_behind_a_less_relevant_one_is_marked() -> None:
    cap = kernel.Cap(writers=np.array([1, 1, 1, 0], np.uint32), most=1, first=10, near=0.5)
    found = picked(np.zeros((4, 2), np.float32), [1.0, 0.9, 0.5, 0.6], names=[0] * 4, cap=cap)
    assert found == ([0, 3, 1, 2], [0, 0, kernel.OVER, 0])


def test_another_version_of_a_writer_who_has_enough_comes_behind_another_version_of_others() -> None:
    """A near-twin of an honest memory is not lost behind a flood."""
    vectors = np.stack([DATE_V2, DISCLAIMER, unit(0, 1, 0), DATE_V2])
    cap = kernel.Cap(writers=np.array([0, 1, 1, 0], np.uint32), most=1, first=10, near=0.5)
    found = picked(vectors, [1.0, 0.9, 0.8, 0.7], 1.0, 0.9, names=[1, 2, 3, 1], cap=cap)
    assert found == ([0, 1, 3, 2], [0, 0, kernel.TWIN, kernel.OVER])
