"""Forward lists: the term numbers of a memory, and the count of each by field.

A list is stored as all its terms, ascending, then all its counts, little-endian u32.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hummock.core.memory import Terms
from hummock_kernels.vocabulary import UNKNOWN, numbers_of, pack_lists, remember_numbers, split_lists

_WORD = np.dtype("<u4")
_LEARNED = np.uint32(0xFF00_0000)
_FEWEST_SLOTS = 64


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ForwardLists:
    """The forward lists of some memories."""

    indptr: NDArray[np.int64]  # (n + 1,) int64 from 0: memory i has the slice indptr[i]:indptr[i + 1] of the others.
    term: NDArray[np.uint32]  # (m,) uint32 terms, ascending within a memory.
    # (m,) uint32, four saturating bytes, least significant first: title, tags, body, learned keywords. All are 0 for a
    # facet.
    counts: NDArray[np.uint32]

    @classmethod
    def none(cls) -> ForwardLists:
        """Lists of no memories."""
        return cls(indptr=np.zeros(1, np.int64), term=np.empty(0, np.uint32), counts=np.empty(0, np.uint32))

    def __len__(self) -> int:
        return len(self.indptr) - 1


def join(values: Sequence[bytes]) -> ForwardLists:
    """Decode stored lists."""
    indptr = np.zeros(len(values) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, values), np.int64, len(values)) // (2 * _WORD.itemsize), out=indptr[1:])
    term, counts = split_lists(np.frombuffer(b"".join(values), _WORD).astype(np.uint32, copy=False), indptr)
    return ForwardLists(indptr=indptr, term=term, counts=counts)


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


def unpack_terms(stored: bytes) -> NDArray[np.uint32]:
    """The terms of a stored list."""
    return _unpacked(stored)[0]


def learned_of(stored: bytes) -> bytes:
    """The learned keywords of a stored list, as a separate list; empty if there are none."""
    term, counts = _unpacked(stored)
    learned = counts & _LEARNED
    held = learned != 0
    return bytes(term[held].tobytes() + learned[held].tobytes())


def with_learned(stored: bytes, learned: bytes) -> bytes:
    """A stored list with these learned keywords instead of its own."""
    term, counts = _unpacked(stored)
    own = counts & ~_LEARNED
    # Facets have count 0 in all fields; any other term left with 0 was only a learned keyword.
    kept = (own != 0) | (counts == 0)
    learned_term, learned_counts = _unpacked(learned)
    terms = np.concatenate([term[kept], learned_term])
    words, _ = pack_lists(np.array([0, len(terms)], np.int64), terms, np.concatenate([own[kept], learned_counts]))
    return words.astype(_WORD, copy=False).tobytes()


def _unpacked(stored: bytes) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    words = np.frombuffer(stored, _WORD)
    half = len(words) // 2
    return words[:half], words[half:]


class TermDictionary:
    """Incomplete cache of term numbers by `TermBatch` key; entries never change. Used by the writer only."""

    def __init__(self) -> None:
        self._slots = np.zeros(_FEWEST_SLOTS, np.uint64)
        self._numbers = np.zeros(_FEWEST_SLOTS, np.uint32)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._slots.nbytes + self._numbers.nbytes

    def numbers_of(self, keys: NDArray[np.uint64]) -> NDArray[np.uint32]:
        """The number of each key, UNKNOWN if missing."""
        return numbers_of(self._slots, self._numbers, keys)

    def remember(self, keys: NDArray[np.uint64], numbers: NDArray[np.uint32]) -> None:
        """Store the numbers of keys."""
        while 2 * (self._size + len(keys)) > len(self._slots):
            self._grow()
        self._size += remember_numbers(self._slots, self._numbers, keys, numbers)

    def _grow(self) -> None:
        used = np.flatnonzero(self._slots)
        keys, numbers = self._slots[used], self._numbers[used]
        self._slots = np.zeros(2 * len(self._slots), np.uint64)
        self._numbers = np.zeros(len(self._slots), np.uint32)
        remember_numbers(self._slots, self._numbers, keys, numbers)


def length(terms: Terms) -> int:
    """Number of terms in all fields, with repetitions and without facets."""
    return int(terms.batch.lengths[terms.place])


def pack(
    terms: Sequence[Terms], dictionary: TermDictionary, look_up: Callable[[Sequence[str]], NDArray[np.uint32]]
) -> list[bytes]:
    """Encode the forward list of each memory; numbers missing in the project's dictionary are added.

    `look_up` returns the numbers of (n,) terms in the project, (n,) uint32, assigning new ones. A term may occur twice.
    """
    indptr, key, counts = _gathered(terms)
    numbers = dictionary.numbers_of(key)
    missing = np.flatnonzero(numbers == UNKNOWN)
    if len(missing):
        new = _firsts(key, missing)
        dictionary.remember(key[new], look_up(_spelt(terms, indptr, new)))
        numbers[missing] = dictionary.numbers_of(key[missing])
    words, ends = pack_lists(indptr, numbers, counts)
    stored = words.astype(_WORD, copy=False).tobytes()
    edges = (ends * _WORD.itemsize).tolist()
    return [stored[start:end] for start, end in itertools.pairwise(edges)]


def unknown_terms(terms: Sequence[Terms], dictionary: TermDictionary) -> list[str]:
    """The distinct terms whose numbers are missing in a dictionary."""
    if not terms:
        return []
    indptr, key, _ = _gathered(terms)
    missing = np.flatnonzero(dictionary.numbers_of(key) == UNKNOWN)
    return _spelt(terms, indptr, _firsts(key, missing))


def _firsts(key: NDArray[np.uint64], places: NDArray[np.int64]) -> list[int]:
    """The first of the places, (n,) ascending, of each key."""
    # The last value of a key stays, so the first place comes last.
    return sorted(dict(zip(key[places][::-1].tolist(), places[::-1].tolist(), strict=True)).values())


def _gathered(terms: Sequence[Terms]) -> tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.uint32]]:
    """The memories' slices of their batches, joined."""
    batch, first, count = terms[0].batch, terms[0].place, len(terms)
    if all(one.batch is batch and one.place == first + place for place, one in enumerate(terms)):
        indptr = batch.indptr[first : first + count + 1]
        start, end = int(indptr[0]), int(indptr[-1])
        return indptr - start, batch.key[start:end], batch.counts[start:end]
    slices = [_slice(one) for one in terms]
    indptr = np.zeros(count + 1, np.int64)
    np.cumsum([part.stop - part.start for part in slices], out=indptr[1:])
    key = np.concatenate([one.batch.key[part] for one, part in zip(terms, slices, strict=True)])
    counts = np.concatenate([one.batch.counts[part] for one, part in zip(terms, slices, strict=True)])
    return indptr, key, counts


def _slice(terms: Terms) -> slice:
    start, end = terms.batch.indptr[terms.place : terms.place + 2].tolist()
    return slice(start, end)


def _spelt(terms: Sequence[Terms], indptr: NDArray[np.int64], places: Sequence[int]) -> list[str]:
    """The texts of the gathered terms at these ascending places; runs within a batch are decoded together."""
    spelt: list[str] = []
    ends = indptr.tolist()
    start = 0
    for _, several in itertools.groupby(enumerate(terms), lambda one: (id(one[1].batch), one[1].place - one[0])):
        run = list(several)
        owner, first = run[0]
        end = bisect_left(places, ends[owner + len(run)], start)
        if start < end:
            shift = int(first.batch.indptr[first.place]) - ends[owner]
            spelt += first.batch.spell([place + shift for place in places[start:end]])
        start = end
    return spelt
