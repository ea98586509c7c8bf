"""Forward lists: which terms a memory holds, and how often in each field."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hummock.ports import Terms

# Bits of a packed count; learned keywords have the fourth byte.
_TITLE, _TAGS, _BODY = 0, 8, 16
_MOST = 255
_WORD = np.dtype("<u4")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ForwardLists:
    """The forward lists of some memories.

    Attributes:
        indptr: (n + 1,) int64 from 0: memory i has the slice indptr[i]:indptr[i + 1] of the others.
        term: (m,) uint32 terms, ascending within a memory.
        counts: (m,) uint32, four saturating bytes, least significant first: title, tags, body, learned keywords. A
            facet counts 0 everywhere.
    """

    indptr: NDArray[np.int64]
    term: NDArray[np.uint32]
    counts: NDArray[np.uint32]


def length(terms: Terms) -> int:
    """Terms of all fields, with repetitions; facets do not count."""
    return len(terms.title) + len(terms.tags) + len(terms.body)


def pack(terms: Terms, number_of: Callable[[str], int]) -> bytes:
    """A memory's forward list as it is stored: all terms, then all counts, little-endian u32.

    Args:
        terms: The memory's.
        number_of: A term's number in the project.
    """
    counts = {number_of(term): packed for term, packed in _packed_counts(terms).items()}
    ordered = sorted(counts)
    table = np.array([ordered, [counts[number] for number in ordered]], _WORD)
    return table.tobytes()


def unpack_terms(value: bytes) -> NDArray[np.uint32]:
    """The terms of a stored list."""
    return np.frombuffer(value, _WORD, len(value) // (2 * _WORD.itemsize))


def join(values: Sequence[bytes]) -> ForwardLists:
    """Stored lists as one."""
    lengths = np.fromiter((len(value) // (2 * _WORD.itemsize) for value in values), np.int64, len(values))
    indptr = np.zeros(len(values) + 1, np.int64)
    np.cumsum(lengths, out=indptr[1:])
    halves = [len(value) // 2 for value in values]
    term = b"".join([value[:half] for value, half in zip(values, halves, strict=True)])
    counts = b"".join([value[half:] for value, half in zip(values, halves, strict=True)])
    return ForwardLists(indptr=indptr, term=np.frombuffer(term, _WORD), counts=np.frombuffer(counts, _WORD))


def _packed_counts(terms: Terms) -> dict[str, int]:
    packed = dict.fromkeys(terms.facets, 0)
    for shift, field in ((_TITLE, terms.title), (_TAGS, terms.tags), (_BODY, terms.body)):
        for term, count in Counter(field).items():
            packed[term] = packed.get(term, 0) | min(count, _MOST) << shift
    return packed
