"""The kernels of the dictionary against their twins."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hummock_kernels import reference, vocabulary

# Those that differ by a multiple of 16 want one slot.
KEYS = st.integers(1, 8) | st.integers(1, 8).map(lambda key: key + 16) | st.integers(1, 2**64 - 1)
ENTRIES = st.lists(st.tuples(KEYS, st.integers(0, 99)), max_size=12)
PAIRS = st.lists(st.lists(st.tuples(st.integers(0, 20) | st.just(2**32 - 2), st.integers(0, 2**32 - 1))), max_size=5)


@given(ENTRIES, st.lists(KEYS, max_size=8))
def test_numbers_are_remembered_as_by_their_twin(entries: list[tuple[int, int]], asked: list[int]) -> None:
    keys = np.array([key for key, _ in entries], np.uint64)
    values = np.array([value for _, value in entries], np.uint32)
    table = np.zeros(16, np.uint64), np.zeros(16, np.uint32)
    twin = np.zeros(16, np.uint64), np.zeros(16, np.uint32)
    assert vocabulary.remember_numbers(*table, keys, values) == reference.remember_numbers(*twin, keys, values)
    np.testing.assert_array_equal(table, twin)
    wanted = np.array(asked, np.uint64)
    np.testing.assert_array_equal(vocabulary.numbers_of(*table, wanted), reference.numbers_of(*twin, wanted))


@given(PAIRS)
def test_lists_are_packed_as_by_their_twin(memories: list[list[tuple[int, int]]]) -> None:
    indptr = np.cumsum([0, *map(len, memories)], dtype=np.int64)
    term = np.array([number for pairs in memories for number, _ in pairs], np.uint32)
    counts = np.array([count for pairs in memories for _, count in pairs], np.uint32)
    for array in (indptr, term, counts):
        array.flags.writeable = False
    for found, expected in zip(
        vocabulary.pack_lists(indptr, term, counts), reference.pack_lists(indptr, term, counts), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


def test_a_long_list_is_sorted() -> None:
    term = np.random.default_rng(7).permutation(5000).astype(np.uint32)
    words, ends = vocabulary.pack_lists(np.array([0, 5000]), term, term)
    assert words.tolist() == [*range(5000)] * 2
    assert ends.tolist() == [0, 10000]


@given(PAIRS)
def test_stored_lists_are_split_as_by_their_twin_and_into_what_was_packed(
    memories: list[list[tuple[int, int]]],
) -> None:
    indptr = np.cumsum([0, *(len(dict(pairs)) for pairs in memories)], dtype=np.int64)
    term = np.array([number for pairs in memories for number in sorted(dict(pairs))], np.uint32)
    counts = np.array([count for pairs in memories for _, count in sorted(dict(pairs).items())], np.uint32)
    words, _ = vocabulary.pack_lists(indptr, term, counts)
    words.flags.writeable = False
    for found, twin, packed in zip(
        vocabulary.split_lists(words, indptr), reference.split_lists(words, indptr), (term, counts), strict=True
    ):
        np.testing.assert_array_equal(found, twin, strict=True)
        np.testing.assert_array_equal(found, packed)
