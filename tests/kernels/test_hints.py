"""The search for many words against its twin."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from hummock.text.hint_words import HintWords, codes
from hummock_kernels import hints, reference

LETTERS = st.sampled_from("aab忘🐴 \0")
WORDS = st.lists(st.text(LETTERS, min_size=1, max_size=4), max_size=9)


@given(WORDS, st.text(LETTERS | st.characters(), max_size=24))
@example([], "a")
@example(["a", "aa", "忘", "a\0"], "a")
def test_words_equal_their_twin(words: list[str], text: str) -> None:
    table = HintWords(words)
    arguments = codes(text), codes("".join(table.words)), table.ends, table.buckets
    np.testing.assert_array_equal(hints.words_in(*arguments), reference.words_in(*arguments))
    assert table.within(text) == {word for word in words if word in text}
