"""Cosine kernels against their twins.

Vectors of small integers make every dot product exact in float32, so that selections and ties can be compared without a
tolerance; the order in which a sum is taken does not matter then.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from hummock_kernels import _jit, _processor, cosine, reference
from hummock_kernels._types import Docs, Flags, Halves, Indices, Vector, Words

Collection: TypeAlias = tuple[cosine.Chunks, Flags, Vector]

INTEGERS = st.integers(-3, 3)


def as_halves(values: npt.ArrayLike) -> Halves:
    halves = np.ascontiguousarray(values, np.float16).view(np.uint16)
    halves.flags.writeable = False
    return halves


@st.composite
def collections(draw: st.DrawFn) -> Collection:
    """Rows, their documents, the filter and a query; some rows are zero, equal or NaN."""
    dim = draw(st.integers(1, 9))
    chunks = draw(st.lists(st.integers(0, 3), max_size=12))
    rows = draw(hnp.arrays(np.float32, (sum(chunks), dim), elements=INTEGERS.map(float)))
    for row in draw(st.lists(st.integers(0, max(sum(chunks) - 1, 0)), max_size=2)):
        rows[row : row + 1] = np.nan
    start, count = layout(chunks)
    allowed = np.array(draw(st.lists(st.integers(0, 1), min_size=len(chunks), max_size=len(chunks))), np.uint8)
    query = draw(hnp.arrays(np.float32, dim, elements=INTEGERS.map(float)))
    for array in (start, count, allowed, query):
        array.flags.writeable = False
    return cosine.Chunks(as_halves(rows), start, count), allowed, query


def layout(chunks: Sequence[int]) -> tuple[Indices, Docs]:
    """First row and number of rows of each document."""
    count = np.array(chunks, np.int32)
    return np.cumsum(count, dtype=np.int64) - count, count


@given(collections(), st.sampled_from([-np.inf, -2.0, 0.0, 3.0]), st.integers(-1, 15))
def test_scan_finds_the_same_documents_and_scores_as_its_twin(collection: Collection, minimum: float, k: int) -> None:
    """S4-26, S4-30."""
    for found, expected in zip(
        cosine.scan(*collection, minimum, k), reference.scan(*collection, minimum, k), strict=True
    ):
        np.testing.assert_array_equal(found, expected, strict=True)


@given(collections(), st.data())
def test_gathered_scores_equal_their_twin(collection: Collection, data: st.DataObject) -> None:
    """S4-25."""
    (rows, *_), _, query = collection
    drawn = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=8)) if len(rows) else []
    picks = np.array(drawn, np.int64)
    np.testing.assert_array_equal(cosine.score_rows(rows, query, picks), reference.score_rows(rows, query, picks))


def test_gathered_scores_of_unit_vectors_are_exact_to_float32_rounding() -> None:
    """S4-25, S4-52."""
    random = np.random.default_rng(7)
    rows = random.standard_normal((50, 384)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    halves = as_halves(rows)
    exact = halves.view(np.float16).astype(np.float64) @ rows[3].astype(np.float64)
    # 384 float32 additions of terms below 1: a few hundred half-ulps at the very worst.
    np.testing.assert_allclose(cosine.score_rows(halves, rows[3], np.arange(50)), exact, atol=2e-5)


def scanned(rows: Any, chunks: Sequence[int], query: npt.ArrayLike, minimum: float, k: int) -> tuple[Any, Any]:
    every = np.ones(len(chunks), np.uint8)
    collection = cosine.Chunks(as_halves(rows), *layout(chunks))
    docs, scores = cosine.scan(collection, every, np.asarray(query, np.float32), minimum, k)
    return docs.tolist(), scores.tolist()


@pytest.mark.parametrize(
    ("rows", "chunks", "query", "minimum", "k", "expected"),
    [
        (np.empty((0, 4)), [], np.ones(4), 0, 5, ([], [])),
        # Each memory counts with its best chunk.
        ([[0, 1], [1, 0], [0, 1], [0.5, 0.5]], [3, 1], [1, 0], -1.0, 2, ([0, 1], [1.0, 0.5])),
        # Ties go to the smaller document.
        (np.ones((6, 1)), [2, 2, 2], [1], 0.0, 2, ([0, 1], [1.0, 1.0])),
        # Only what is below the minimum is dropped.
        ([[0.5]], [1], [1], 0.5, 1, ([0], [0.5])),
    ],
    ids=["nothing", "best chunk", "ties", "minimum"],
)
def test_scan_of_a_few_rows(rows: Any, chunks: list[int], query: Any, minimum: float, k: int, expected: Any) -> None:
    """S4-26."""
    assert scanned(rows, chunks, query, minimum, k) == expected


@pytest.mark.skipif(not _jit.IS_COMPILED, reason="plain Python checks no types")
def test_rows_of_another_type_are_refused_rather_than_compiled_anew() -> None:
    float_rows: Any = np.ones((2, 2), np.float32)
    with pytest.raises(TypeError):
        cosine.score_rows(float_rows, np.ones(2, np.float32), np.zeros(1, np.int64))


ALL_PATTERNS = np.arange(1 << 16, dtype=np.uint16)


def test_every_float16_pattern_is_decoded_as_numpy_does() -> None:
    decoded = cosine.score_rows(ALL_PATTERNS.reshape(-1, 1), np.ones(1, np.float32), np.arange(1 << 16))
    np.testing.assert_array_equal(decoded[~np.isnan(decoded)], expected_bits().view(np.float32))
    np.testing.assert_array_equal(np.isnan(decoded), np.isnan(ALL_PATTERNS.view(np.float16)))


@pytest.mark.long
def test_decoding_without_the_instruction_agrees_on_every_pattern() -> None:
    """DESIGN 8: the instruction is missing on older x86, and using it there aborts the process."""
    decoded = np.array([_processor.half_by_hand(bits) for bits in ALL_PATTERNS], np.float32)
    np.testing.assert_array_equal(decoded.view(np.uint32)[~np.isnan(decoded)], expected_bits())
    np.testing.assert_array_equal(np.isnan(decoded), np.isnan(ALL_PATTERNS.view(np.float16)))


def expected_bits() -> Words:
    with np.errstate(invalid="ignore"):  # signalling NaNs
        values = ALL_PATTERNS.view(np.float16).astype(np.float32)
    return values.view(np.uint32)[~np.isnan(values)]


def test_the_instruction_is_used_only_where_the_target_has_it() -> None:
    uses_instruction = _processor.half is _processor.half_by_cpu
    assert uses_instruction == (_jit.HAS_F16C and _jit.IS_COMPILED)
