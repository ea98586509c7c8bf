from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.exact import nearest_exactly, scarce
from bench.peers.work import HITS, different, joined
from hummock_kernels import reference
from hummock_kernels.mmr import NO_CAP
from hummock_kernels.pool import ROW

pytestmark = pytest.mark.long

SCORES = st.lists(st.sampled_from([-1.0, 0.0, 0.25, 0.5, 1.0]), max_size=40)


@given(SCORES, st.integers(0, 12))
def test_the_exact_answer_holds_the_largest_scores_and_ties_go_to_the_first(scores: list[float], k: int) -> None:
    found = nearest_exactly(np.array(scores, np.float32), k).tolist()
    assert found == sorted(range(len(scores)), key=lambda place: (-scores[place], place))[:k]


def test_filters_that_few_pass_come_with_the_number_that_pass() -> None:
    narrow = np.array([1, 1, 1, 0, 0], np.bool_)
    tagged = {"narrow": narrow, "a": narrow, "b": ~narrow, "c": np.array([0, 1, 1, 1, 1], np.bool_)}
    found = dict(scarce(tagged, most=1))
    assert found == {("narrow", "a", "b"): 0, ("narrow", "b", "c"): 0}


@given(st.integers(0, 2**32 - 1), st.integers(0, 60))
def test_the_peers_choice_is_maximal_marginal_relevance(seed: int, count: int) -> None:
    random = np.random.default_rng(seed)
    vectors = random.standard_normal((count + 1, 8)).astype(np.float32)
    # Values that float16 holds exactly.
    halves = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float16)
    query, candidates = halves[0].astype(np.float32), halves[1:].astype(np.float32)
    rows, every = np.zeros(count, ROW), np.arange(count)
    chosen, _ = reference.mmr(
        halves[1:].view(np.uint16), every, rows, every, candidates @ query, 0.7, 1.0, 2.0, HITS, NO_CAP
    )
    assert different(query, candidates) == chosen.tolist()


def test_two_lists_are_joined_by_the_ranks_in_both() -> None:
    assert joined([1, 2, 3], [3, 4]) == [3, 1, 2, 4]
    assert joined([], []) == []
