"""Sign bits against their twin."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from hummock_kernels import reference, signbit
from hummock_kernels._types import Docs, Flags, Longs

VALUES = st.sampled_from([-65504.0, -1.0, -0.25, -6e-8, -0.0, 0.0, 6e-8, 0.25, 1.0, 65504.0])


@given(st.data(), st.integers(0, 5), st.sampled_from([1, 2, 63, 64, 65, 130]))
def test_bits_equal_their_twins(data: st.DataObject, n: int, dim: int) -> None:
    rows = data.draw(hnp.arrays(np.float16, (n, dim), elements=VALUES.map(np.float16))).view(np.uint16)
    rows.flags.writeable = False
    np.testing.assert_array_equal(signbit.sign_bits(rows), reference.sign_bits(rows), strict=True)


@pytest.mark.parametrize(("dim", "words"), [(1, 1), (64, 1), (65, 2), (384, 6), (512, 8)])
def test_a_row_takes_as_many_words_as_its_dims_need_and_the_rest_is_zero(dim: int, words: int) -> None:
    bits = signbit.sign_bits(np.full((1, dim), -1.0, np.float16).view(np.uint16))
    assert bits.shape == (1, words)
    assert sum(int(word).bit_count() for word in bits[0]) == dim


def test_dims_are_bits_from_the_lowest() -> None:
    row = np.array([[0.5, -0.5, 0.0, -2.0]], np.float16).view(np.uint16)
    assert signbit.sign_bits(row).tolist() == [[0b1010]]


def blocks_of(bits: Longs, dim: int) -> Longs:
    """The bits of rows, (n, words), as blocks; what lies after the last row is not zero."""
    apart = (bits[..., None] >> np.arange(64, dtype=np.uint64) & np.uint64(1)).reshape(len(bits), 64 * bits.shape[1])
    blocks = np.full((-(-len(bits) // 256), dim + 1, 4), 2**64 - 1, np.uint64)
    signbit.put_signs(np.ascontiguousarray(apart[:, :dim] << np.uint64(15)).astype(np.uint16), 0, blocks)
    blocks.flags.writeable = False
    return blocks


@given(st.data(), st.lists(st.integers(0, 200), max_size=4), st.sampled_from([1, 3, 64, 65]))
def test_signs_that_are_put_behind_others_equal_their_twins(data: st.DataObject, counts: list[int], dim: int) -> None:
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    ours = random.integers(0, 2**63, (4, dim + 1, 4), dtype=np.uint64)
    twin = ours.copy()
    first = 0
    for count in counts:
        rows = random.integers(0, 2**16, (count, dim), dtype=np.uint16)
        signbit.put_signs(rows, first, ours)
        reference.put_signs(rows, first, twin)
        first += count
    np.testing.assert_array_equal(ours, twin)


def assert_equal_twins(blocks: Longs, row_doc: Docs, allowed: Flags, query: Longs, keep: int) -> None:
    """The lightest rows, and those that are lightest once they are taken."""
    weights, left = signbit.weigh_signs(blocks, row_doc, allowed, query)
    expected_weights, expected_left = reference.weigh_signs(blocks, row_doc, allowed, query)
    np.testing.assert_array_equal(left, expected_left, strict=True)
    for count in (keep, 2 * keep):
        taken = signbit.take_lightest(weights, left, count)
        np.testing.assert_array_equal(
            taken, reference.take_lightest(expected_weights, expected_left, count), strict=True
        )
        np.testing.assert_array_equal(left, expected_left, strict=True)


@given(st.data(), st.integers(1, 3), st.lists(st.integers(1, 3), max_size=12), st.integers(-1, 20))
def test_nearest_rows_equal_their_twins(data: st.DataObject, words: int, chunks: list[int], keep: int) -> None:
    """Few different words, so that many rows tie."""
    word = st.sampled_from([0, 1, 3, 2**64 - 1]).map(np.uint64)
    bits = data.draw(hnp.arrays(np.uint64, (sum(chunks), words), elements=word))
    query = data.draw(hnp.arrays(np.uint64, (3, words), elements=word))
    allowed = data.draw(hnp.arrays(np.uint8, len(chunks), elements=st.integers(0, 2)))
    row_doc = np.repeat(np.arange(len(chunks), dtype=np.int32), chunks)
    for array in (query, allowed, row_doc):
        array.flags.writeable = False
    arguments = (blocks_of(bits, 64 * words - data.draw(st.sampled_from([0, 1, 63]))), row_doc, allowed, query, keep)
    assert_equal_twins(*arguments)


@pytest.mark.parametrize("dim", [70, 384, 1100])
@pytest.mark.parametrize("passing", [1.0, 0.25, 0.002])
def test_the_lightest_of_many_rows_equal_their_twins(dim: int, passing: float) -> None:
    """Several blocks, the last one not full; a filter that leaves whole blocks out; weights of all sizes."""
    random = np.random.default_rng(dim)
    bits = random.integers(0, 2**63, (1500, -(-dim // 64)), dtype=np.uint64)
    query = random.integers(0, 2**63, (3, bits.shape[1]), dtype=np.uint64)
    allowed = (random.random(1500) < passing).astype(np.uint8)
    for row_doc in (np.arange(1500, dtype=np.int32), np.arange(1500, dtype=np.int32) // 2):
        for keep in (1, 100, 1500):
            arguments = (blocks_of(bits, dim), row_doc, allowed, query, keep)
            assert_equal_twins(*arguments)


def test_a_word_of_rows_with_a_repeat_and_a_gap_is_no_run_of_documents() -> None:
    """First and last are as far apart as in a run: one memory has two rows, and the next one none."""
    row_doc = np.arange(128, dtype=np.int32)
    row_doc[10] = 9
    bits = np.zeros((128, 1), np.uint64)
    for left_out in (9, 10, 11):
        allowed = np.ones(128, np.uint8)
        allowed[left_out] = 0
        arguments = (blocks_of(bits, 64), row_doc, allowed, np.zeros((3, 1), np.uint64), 128)
        assert_equal_twins(*arguments)


def nearest(bits: list[int], allowed: list[int], keep: int) -> list[int]:
    """Rows of one word each, a document each, nearest to zero; every dim weighs 1 and the fifth 3."""
    weights, left = signbit.weigh_signs(
        blocks_of(np.array(bits, np.uint64).reshape(-1, 1), 64), np.arange(len(bits), dtype=np.int32),
        np.array(allowed, np.uint8), np.array([[0], [2**64 - 1], [0b10000]], np.uint64),
    )  # fmt: skip
    return [int(row) for row in signbit.take_lightest(weights, left, keep)]


@pytest.mark.parametrize(
    ("bits", "allowed", "keep", "expected"),
    [
        ([0b11, 0b01, 0b10, 0b111, 0b100], [1, 1, 1, 1, 1], 2, [1, 2]),
        ([0b11, 0b01, 0b101, 0b111, 0b110], [1, 1, 1, 1, 1], 3, [0, 1, 2]),
        ([0, 1, 3], [0, 0, 0], 2, []),
        ([0, 1, 3, 7], [0, 1, 0, 1], 1, [1]),
        ([7, 1, 0], [1, 1, 1], 3, [0, 1, 2]),
        ([], [], 5, []),
        ([2**64 - 1, 2**64 - 1], [1, 1], 1, [0]),
        ([0b10000, 0b11, 0b111, 0b1111], [1, 1, 1, 1], 1, [1]),
        ([0b10000, 0b1111, 0b111, 0b11], [1, 1, 1, 1], 2, [0, 3]),
    ],
    ids=["ties", "more ties", "none allowed", "some allowed", "all", "no rows", "far ones", "heavy", "heavy again"],
)
def test_the_lightest_rows_are_found(bits: list[int], allowed: list[int], keep: int, expected: list[int]) -> None:
    """Ties keep the smaller row; a heavy dim counts as much as its weight."""
    assert nearest(bits, allowed, keep) == expected
