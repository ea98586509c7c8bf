"""The token estimate against its twin."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hummock_kernels import reference, tokens

KINDS = np.array([*range(10), tokens.WORD | tokens.LETTER, tokens.LETTERS | tokens.LETTER], np.uint8)
WEIGHTS = np.array([7, 100, 30, 50, 11, 90, 13, 17, 60, 19], np.int64)


@given(st.lists(st.lists(st.integers(0, len(KINDS)), max_size=20), max_size=4))
def test_estimates_equal_their_twin(texts: list[list[int]]) -> None:
    codes = np.array([code for text in texts for code in text], np.uint32)
    ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
    for array in (codes, ends, KINDS, WEIGHTS):
        array.flags.writeable = False
    found = tokens.token_estimates(codes, ends, KINDS, WEIGHTS)
    np.testing.assert_array_equal(found, reference.token_estimates(codes, ends, KINDS, WEIGHTS))
