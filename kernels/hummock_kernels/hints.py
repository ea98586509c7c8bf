"""Search of a text for many words at once.

Words are numbered in the order of their buckets: a word of two letters and more is in that of its first two, a word of
one in that of the letter and NO_LETTER.
"""

import numpy as np

from hummock_kernels._jit import helper, kernel
from hummock_kernels._types import I64_1D, OUT_I64_1D, U32_1D, Indices, Words

BUCKETS = 2048
NO_LETTER = 0
_FIRST, _SECOND = 31, 1543


def bucket_of(first: int, second: int) -> int:
    """The bucket of words that begin with these two letters, given as code points."""
    return (int(first) * _FIRST + int(second) * _SECOND) & (BUCKETS - 1)


_bucket = helper()(bucket_of)


@helper()
def _begins(text: Words, at: int, letters: Words, start: int, end: int) -> bool:
    """Whether the letters from `start` to `end` are in the text at this place."""
    same, length = 0, min(end - start, text.shape[0] - at)
    while same < length and text[at + same] == letters[start + same]:
        same += 1
    return same == end - start


@kernel(OUT_I64_1D(U32_1D, U32_1D, I64_1D, I64_1D), is_brief=True)
def words_in(text: Words, letters: Words, ends: Indices, buckets: Indices) -> Indices:
    """The numbers of the words that are in a text, ascending.

    Args:
        text: Its code points.
        letters: The code points of all words, in the order of their numbers.
        ends: (n + 1,) from 0, slices of `letters`, one per word, none empty.
        buckets: (BUCKETS + 1,) from 0 to n, slices of the numbers.
    """
    found = np.zeros(ends.shape[0] - 1, np.uint8)
    for at in range(text.shape[0]):
        second = int(text[at + 1]) if at + 1 < text.shape[0] else NO_LETTER
        for bucket in (_bucket(text[at], NO_LETTER), _bucket(text[at], second)):
            for word in range(buckets[bucket], buckets[bucket + 1]):
                if found[word] == 0 and _begins(text, at, letters, ends[word], ends[word + 1]):
                    found[word] = 1
    return np.flatnonzero(found)
