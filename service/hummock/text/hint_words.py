"""Looks for many words in a text at once: patterns are tried only on a text that has one of their words."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from hummock_kernels.hints import BUCKETS, NO_LETTER, bucket_of, words_in


class HintWords:
    """A set of words that a text is searched for in one compiled pass, which takes as long as a look for a few.

    Attributes:
        words: The words, each once, in the order of their numbers.
        ends: Slices of their joined letters, as `hints.words_in` takes them.
        buckets: Slices of their numbers, as it takes them.
    """

    def __init__(self, words: Iterable[str]) -> None:
        by_bucket = sorted((_bucket(word), word) for word in set(words))
        self.words = tuple(word for _, word in by_bucket)
        self._letters = codes("".join(self.words))
        self.ends = np.cumsum([0, *map(len, self.words)], dtype=np.int64)
        counts = np.bincount([bucket for bucket, _ in by_bucket], minlength=BUCKETS)
        self.buckets = np.concatenate([[0], counts.cumsum()]).astype(np.int64)

    def within(self, text: str) -> set[str]:
        """The words that are in the text."""
        found = words_in(codes(text), self._letters, self.ends, self.buckets)
        return {self.words[number] for number in found.tolist()}


def _bucket(word: str) -> int:
    return bucket_of(ord(word[0]), ord(word[1]) if len(word) > 1 else NO_LETTER)


def codes(text: str) -> NDArray[np.uint32]:
    """The code points of a text, (n,) uint32."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")
