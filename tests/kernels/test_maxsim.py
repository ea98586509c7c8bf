"""Late interaction against its twin."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from hummock_kernels import cosine as kernel
from hummock_kernels import reference
from hummock_kernels._types import Bytes, Indices, Vector

INT8 = st.integers(-127, 127).map(np.int8)
NO_TOKENS = np.empty((0, 64), np.int8)


def starts(*counts: int) -> Indices:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def unit_tokens(seed: int, count: int) -> Bytes:
    drawn = np.random.default_rng(seed).standard_normal((count, 64))
    tokens: Bytes = np.rint(drawn / np.linalg.norm(drawn, axis=1, keepdims=True) * 127).astype(np.int8)
    return tokens


def max_sims(query: Bytes, tokens: Bytes, start: Indices) -> Vector:
    """Late-interaction score of every candidate."""
    return kernel.max_sims(query, tokens, start, np.ones(len(start) - 1, np.uint8))


@given(st.data(), st.sampled_from([1, 7, 64]), st.integers(0, 4), st.lists(st.integers(0, 5), max_size=5))
def test_the_scores_equal_their_twin(data: st.DataObject, dim: int, asked: int, counts: list[int]) -> None:
    query = data.draw(hnp.arrays(np.int8, (asked, dim), elements=INT8))
    tokens = data.draw(hnp.arrays(np.int8, (sum(counts), dim), elements=INT8))
    start = starts(*counts)
    among = data.draw(hnp.arrays(np.uint8, len(counts), elements=st.integers(0, 1)))
    query.flags.writeable = tokens.flags.writeable = start.flags.writeable = False
    np.testing.assert_allclose(
        kernel.max_sims(query, tokens, start, among),
        reference.max_sims(query, tokens, start, among),
        rtol=1e-6,
        atol=1e-6,
    )


def test_the_largest_sums_do_not_overflow() -> None:
    query = np.full((2, 64), 127, np.int8)
    for value in (127, -127):
        sims = max_sims(query, np.full((3, 64), value, np.int8), starts(3))
        assert sims.tolist() == [pytest.approx(np.sign(value) * 64)]


def test_a_text_that_holds_the_query_has_a_score_of_one() -> None:
    query, others = unit_tokens(1, 6), unit_tokens(2, 30)
    tokens = np.concatenate([others[:10], query, others[10:]])
    sims = max_sims(query, tokens, starts(10, 11, 15))
    assert sims[1] == pytest.approx(1, abs=0.02)
    assert sims[[0, 2]].max() < 0.8


@pytest.mark.parametrize(
    ("query", "tokens", "start", "expected"),
    [
        (unit_tokens(1, 2), unit_tokens(1, 2), starts(0, 2, 0), [True, False, True]),
        (NO_TOKENS, unit_tokens(1, 2), starts(1, 1), [True, True]),
        (unit_tokens(1, 2), NO_TOKENS, starts(), []),
    ],
    ids=["candidates without tokens", "a query without tokens", "no candidates"],
)
def test_without_tokens_there_is_no_score(query: Bytes, tokens: Bytes, start: Indices, expected: list[bool]) -> None:
    assert np.isnan(max_sims(query, tokens, start)).tolist() == expected


def test_a_candidate_that_is_not_asked_has_no_score() -> None:
    query = unit_tokens(1, 2)
    sims = kernel.max_sims(query, np.concatenate([query, query]), starts(2, 2), np.array([0, 1], np.uint8))
    assert np.isnan(sims).tolist() == [True, False]


def test_a_token_without_direction_is_like_none() -> None:
    """A zero vector."""
    query = np.concatenate([unit_tokens(1, 1), np.zeros((1, 64), np.int8)])
    assert max_sims(query, query[:1], starts(1))[0] == pytest.approx(0.5, abs=0.01)
    assert max_sims(query, query[1:], starts(1))[0] == 0


@given(st.integers(0, 1000), st.permutations(range(5)))
def test_the_order_of_tokens_and_candidates_does_not_change_a_score(seed: int, order: list[int]) -> None:
    query, tokens = unit_tokens(seed, 3), unit_tokens(seed + 1, 15)
    sims = max_sims(query, tokens, starts(*[3] * 5))
    blocks = [tokens[3 * i : 3 * i + 3][::-1] for i in order]
    again = max_sims(query[::-1].copy(), np.concatenate(blocks), starts(*[3] * 5))
    np.testing.assert_array_equal(again, sims[order])
