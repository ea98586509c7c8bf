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

    @classmethod
    def none(cls) -> ForwardLists:
        """Of no memories."""
        return cls(indptr=np.zeros(1, np.int64), term=np.empty(0, np.uint32), counts=np.empty(0, np.uint32))

    def __len__(self) -> int:
        return len(self.indptr) - 1


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


def concatenated(parts: Sequence[ForwardLists]) -> ForwardLists:
    """The lists of all parts, one after the other."""
    if len(parts) == 1:
        return parts[0]
    indptr = np.zeros(1 + sum(map(len, parts)), np.int64)
    start, size = 1, 0
    for part in parts:
        indptr[start : start + len(part)] = part.indptr[1:] + size
        start, size = start + len(part), size + len(part.term)
    none = np.empty(0, np.uint32)
    return ForwardLists(
        indptr=indptr,
        term=np.concatenate([none, *(part.term for part in parts)]),
        counts=np.concatenate([none, *(part.counts for part in parts)]),
    )


def _packed_counts(terms: Terms) -> dict[str, int]:
    packed = dict.fromkeys(terms.facets, 0)
    for shift, field in ((_TITLE, terms.title), (_TAGS, terms.tags), (_BODY, terms.body)):
        for term, count in Counter(field).items():
            packed[term] = packed.get(term, 0) | min(count, _MOST) << shift
    return packed
