"""Candidates of a group, gathered by kernels, against their twins (S0-08, S4-25, 1.1-2)."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from hummock_kernels import bm25, cosine, gather, reference, turns
from hummock_kernels.pool import ROW
from tests.kernels.test_bm25 import DOCUMENTS, TERMS, arguments_of
from tests.kernels.test_cosine import as_halves, layout

BITS = st.sampled_from([1, 2, 4, 8, 18, 32, 64])
DAY = 86_400.0


def frozen(array: Any) -> Any:
    array.flags.writeable = False
    return array


def vectors_of(draw: st.DrawFn, n: int, dim: int) -> tuple[cosine.Chunks, Any]:
    """Chunks of n documents, and a query's vector or none; small integers, so that every sum is exact."""
    counts = draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    whole = st.integers(-3, 3).map(float)
    rows = draw(hnp.arrays(np.float32, (sum(counts), dim), elements=whole))
    start, count = layout(counts)
    vector = draw(hnp.arrays(np.float32, draw(st.sampled_from([0, dim])), elements=whole))
    return cosine.Chunks(as_halves(rows), frozen(start), frozen(count)), frozen(vector)


def memories_of(draw: st.DrawFn, n: int) -> gather.Memories:
    def column(dtype: Any, elements: st.SearchStrategy[Any]) -> Any:
        return frozen(draw(hnp.arrays(dtype, n, elements=elements)))

    small, times = st.integers(0, 3), st.sampled_from([-DAY / 2, 0.0, 1.5 * DAY, 2.9 * DAY, float("nan")])
    return gather.Memories(
        alive=column(np.uint8, st.integers(0, 1)),
        doc=frozen(np.arange(7, 7 + n, dtype=np.int64)),
        create_time=column(np.float64, st.integers(0, 9)),
        event_time=column(np.float64, times),
        text_hash=column(np.uint64, st.integers(0, 2**64 - 1)),
        apart=column(np.uint32, st.integers(0, 2**32 - 1)),
        session=column(np.uint64, st.integers(0, 2)),
        session_position=frozen(np.arange(-1, n - 1, dtype=np.int32)),
        kind=column(np.uint8, small),
        origin=column(np.uint8, small),
        traits=column(np.uint8, st.integers(0, 7)),
        name_hash=column(np.uint64, small),
        speaker=column(np.uint32, st.integers(0, 2**32 - 1)),
        file=column(np.uint32, small),
        is_turn=frozen(np.isin(np.arange(256), (1, 2)).astype(np.uint8)),
    )


@st.composite
def groups(draw: st.DrawFn) -> tuple[Any, ...]:
    """The arguments of `gather`."""
    documents = draw(DOCUMENTS)
    n = len(documents)
    found = st.lists(st.integers(0, n - 1), max_size=6) if n else st.just([])
    by_vector, by_keyword = (draw(found.map(lambda some: list(dict.fromkeys(some)))) for _ in range(2))
    more = draw(found)
    finds = gather.Finds(
        frozen(np.array(by_vector, np.int64)),
        frozen(np.array(by_keyword, np.int64)),
        frozen(np.array(more, np.int64)),
        frozen(np.array(draw(st.lists(BITS, min_size=len(more), max_size=len(more))), np.uint8)),
    )
    memories = memories_of(draw, n)
    slots = np.full(64, turns.FREE, np.int32)
    turns.add_turns(slots, memories.session, memories.session_position, 0)
    allowed = frozen(draw(hnp.arrays(np.uint8, n, elements=st.integers(0, 1))))
    chunks, vector = vectors_of(draw, n, draw(st.integers(1, 5)))
    words = arguments_of(documents, draw(st.integers(0, 8)), draw(st.lists(TERMS, max_size=5)))
    return finds, memories, frozen(slots), draw(st.integers(0, 3)), allowed, chunks, vector, *words


@given(groups())
def test_candidates_equal_their_twin_to_the_bit(group: tuple[Any, ...]) -> None:
    found, expected = gather.gather(*group), reference.gather(*group)
    for name in set(gather.Taken._fields) - {"rows"}:
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name, strict=True)
    for name in ROW.fields or ():
        np.testing.assert_array_equal(found.rows[name], expected.rows[name], err_msg=name, strict=True)


@given(groups(), st.data())
def test_scores_of_a_translation_equal_their_twin(group: tuple[Any, ...], data: st.DataObject) -> None:
    chunks, vector, *words = group[5:]
    at = np.flatnonzero(group[4])
    stands_for = data.draw(hnp.arrays(np.uint32, len(words[3].term), elements=st.integers(0, 2**32 - 1)))
    given_both = (chunks, at, vector, *words, stands_for)
    for found, expected in zip(
        gather.score_translated(*given_both), reference.score_translated(*given_both), strict=True
    ):
        np.testing.assert_array_equal(found, expected, strict=True)


@given(st.data(), st.integers(0, 12))
def test_flags_of_signs_equal_their_twin(data: st.DataObject, n: int) -> None:
    flags = frozen(data.draw(hnp.arrays(np.uint8, (3, 5), elements=st.integers(0, 2))))
    kind = frozen(data.draw(hnp.arrays(np.uint8, n, elements=st.integers(0, 2))))
    sign = frozen(data.draw(hnp.arrays(np.uint8, n, elements=st.integers(0, 3))))
    chunk_count = frozen(data.draw(hnp.arrays(np.int32, n, elements=st.integers(0, 2))))
    at = frozen(np.flatnonzero(data.draw(hnp.arrays(np.bool_, n))))
    found, above = gather.flags_of_signs(kind, sign, chunk_count, flags, at)
    expected, expected_above = reference.flags_of_signs(kind, sign, chunk_count, flags, at)
    np.testing.assert_array_equal(found, expected, strict=True)
    assert above == expected_above


@given(st.data(), st.lists(st.integers(0, 200) | st.just(0xFFFF_FFFF), max_size=6), st.integers(0, 300))
def test_weights_of_terms_equal_their_twin(data: st.DataObject, numbers: list[int], live: int) -> None:
    pages = data.draw(hnp.arrays(np.int32, (3, 64), elements=st.integers(0, live)))
    place = data.draw(hnp.arrays(np.int32, 2, elements=st.integers(0, 2)))
    frequent = np.array(sorted(data.draw(st.sets(st.integers(0, 200), max_size=5))), np.int64)
    greatest = data.draw(hnp.arrays(np.float32, st.sampled_from([0, 90]), elements=st.floats(0, 1, width=32)))
    growth = data.draw(st.sampled_from([1.0, 1.7]))
    terms = np.array(numbers, np.uint32)
    weights = data.draw(hnp.arrays(np.float32, st.sampled_from([0, len(terms)]), elements=st.floats(0, 1, width=32)))
    asked: Any = (pages, place, frequent, greatest, growth, terms, weights, live)
    found: tuple[Any, ...] = bm25.weigh_terms(*asked)
    expected: tuple[Any, ...] = reference.weigh_terms(*asked)
    for one, twin in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, twin, rtol=1e-6)
