"""Selection against its twin."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from hummock_kernels import reference, topk

SCORES = st.sampled_from([-1.5, -0.0, 0.0, 0.25, 0.5, 1e30, np.nan, np.inf, -np.inf])


@given(st.data(), st.integers(0, 40), st.integers(-1, 45))
def test_top_k_equals_its_twin(data: st.DataObject, n: int, k: int) -> None:
    scores = data.draw(hnp.arrays(np.float32, n, elements=SCORES.map(np.float32)))
    allowed = data.draw(hnp.arrays(np.uint8, n, elements=st.integers(0, 1)))
    scores.flags.writeable = allowed.flags.writeable = False
    np.testing.assert_array_equal(topk.top_k(scores, allowed, k), reference.top_k(scores, allowed, k))


def test_equal_scores_go_to_the_smaller_index() -> None:
    assert topk.top_k(np.ones(9, np.float32), np.ones(9, np.uint8), 3).tolist() == [0, 1, 2]


def test_negative_scores_are_scores_and_nan_is_not() -> None:
    scores = np.array([np.nan, -1, 0, -np.inf], np.float32)
    assert topk.top_k(scores, np.ones(4, np.uint8), 4).tolist() == [2, 1]
