"""Data that older and newer views share: arrays that grow at the end, sign bits, counts of terms, lazy values.

A holder sees only its own data, whatever is appended later.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Generic, ParamSpec, Self, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from hummock_kernels.postings import paged_counts
from hummock_kernels.signbit import BLOCK_ROWS, LANES, put_signs, sign_bits, take_lightest, weigh_signs

Scalar = TypeVar("Scalar", bound=np.generic)
Given = ParamSpec("Given")
Value = TypeVar("Value")

_PAGE_TERMS = 64

# Step between query components that get the weights 1, 2 and 3, in units of the query's spread: two thirds of the root
# mean square of components that are normally distributed.
_STEP = 0.535

_HEAVIEST = 3

_LARGE_BYTES = 1024 * 1024  # Size from which the pages of an array take no memory until they are written to.


@dataclass(frozen=True, slots=True, eq=False)
class Growing(Generic[Scalar]):
    """The first `size` rows of a buffer that may have room for more.

    A holder's rows never change. The rows after them belong to the next append, so only the newest of a lineage of
    arrays may be extended, by one thread at a time.
    """

    buffer: NDArray[Scalar]  # All rows.
    size: int  # Number of rows of this holder.
    # These rows; read-only by convention. Precomputed, as a search reads them some forty times.
    values: NDArray[Scalar] = field(repr=False)

    @classmethod
    def of(cls, values: NDArray[Scalar]) -> Self:
        """An array of these rows."""
        return cls(values, len(values), values)

    @classmethod
    def with_room(cls, count: int, shape: tuple[int, ...], dtype: DTypeLike) -> Self:
        """An empty array with room for at least `count` rows."""
        buffer = np.empty((capacity(count, 0, shape, dtype), *shape), dtype)
        return cls(buffer, 0, buffer[:0])

    def taken(self, places: NDArray[np.int64]) -> Growing[Scalar]:
        """The rows at these places, which must exist, with spare room, so that the next append copies nothing."""
        buffer = Growing[Scalar].with_room(len(places), self.buffer.shape[1:], self.buffer.dtype).buffer
        # mode="clip": with bounds checks NumPy would buffer the result and copy it.
        taken = np.take(self.values, places, axis=0, out=buffer[: len(places)], mode="clip")
        return Growing(buffer, len(places), taken)

    def extended(self, rows: NDArray[Any]) -> Growing[Scalar]:
        """This array with more rows at its end; a full buffer at least doubles."""
        size = self.size + len(rows)
        buffer = self.buffer
        # A read-only buffer is a view of foreign bytes.
        if size > len(buffer) or not buffer.flags.writeable:
            shape = buffer.shape[1:]
            buffer = np.empty((capacity(size, self.size, shape, buffer.dtype), *shape), buffer.dtype)
            buffer[: self.size] = self.values
        buffer[self.size : size] = rows
        return Growing(buffer, size, buffer[:size])

    @property
    def nbytes(self) -> int:
        """Bytes of the rows; spare room only takes address space."""
        return self.values.nbytes


def capacity(count: int, before: int, shape: tuple[int, ...], dtype: DTypeLike) -> int:
    """Rows to allocate for `count` rows, given that there were `before`."""
    if count * math.prod(shape) * np.dtype(dtype).itemsize >= _LARGE_BYTES:
        return 2 * count
    return max(count, 2 * before)


@dataclass(frozen=True, slots=True, eq=False)
class SignBits:
    """The sign bits of the first `size` vector rows, for views that are large enough to need them.

    Later rows may share a word with the last ones, and are written without touching their bits. As with `Growing`,
    only the newest of a lineage may be extended, by one thread at a time.

    A row's bits depend on that row alone, so results are the same after any number of appends and rebuilds. A restart
    changes them only if the view was large just because of removed rows: then every row is scored.
    """

    blocks: NDArray[np.uint64]
    size: int

    @classmethod
    def of(cls, vectors: NDArray[np.uint16]) -> SignBits:
        """Sign bits of vectors, (rows, dim) float16 in uint16."""
        return cls(np.empty((0, vectors.shape[1] + 1, LANES), np.uint64), 0).extended(vectors)

    def extended(self, vectors: NDArray[np.uint16]) -> SignBits:
        """These bits and those of more rows after them; full blocks at least double."""
        size = self.size + len(vectors)
        blocks = self.blocks
        if size > len(blocks) * BLOCK_ROWS:
            used = -(-self.size // BLOCK_ROWS)
            blocks = np.empty((max(-(-size // BLOCK_ROWS), 2 * used), *blocks.shape[1:]), np.uint64)
            blocks[:used] = self.blocks[:used]
        put_signs(vectors, self.size, blocks)
        return SignBits(blocks, size)

    def weighed(
        self, row_doc: NDArray[np.int32], allowed: NDArray[np.uint8], query: NDArray[np.float32]
    ) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """The weights by which rows differ from the query and the rows of allowed memories, for `take_lightest`.

        (rows,) memory of each row; (memories,) nonzero for those that may be found; (dim,) finite query.
        """
        return weigh_signs(self.blocks, row_doc, allowed, packed_query(query))

    def nearest_behind(
        self, first: int, row_doc: NDArray[np.int32], allowed: NDArray[np.uint8], query: NDArray[np.float32], keep: int
    ) -> NDArray[np.int64]:
        """The rows that differ least from the query, at most `keep`, ascending, of those from row `first` on.

        There are fewer if rows of its block before it are near.
        """
        block = first // BLOCK_ROWS
        start = block * BLOCK_ROWS
        weights, left = weigh_signs(self.blocks[block:], row_doc[start:], allowed, packed_query(query))
        found = take_lightest(weights, left, keep) + start
        return found[np.searchsorted(found, first) :]

    @property
    def used_blocks(self) -> NDArray[np.uint64]:
        """The blocks that hold a row."""
        return self.blocks[: -(-self.size // BLOCK_ROWS)]

    @property
    def nbytes(self) -> int:
        """Bytes of the rows; spare room only takes address space."""
        return self.used_blocks.nbytes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TermCounts:
    """Immutable count per term; `changed` makes a new object that shares the unchanged pages."""

    # (pages, 64) int32; pages after this holder's belong to the next change of the newest counts.
    pages: Growing[np.int32]
    place: NDArray[np.int32]  # (terms / 64,) int32, the page of each run of 64 terms. Page 0 is all zeros.

    @classmethod
    def of(cls, counts: NDArray[np.int32]) -> TermCounts:
        """Counts of the first terms; all others are 0."""
        runs = -(-len(counts) // _PAGE_TERMS)
        pages = np.zeros((1 + runs, _PAGE_TERMS), np.int32)
        pages[1:].reshape(-1)[: len(counts)] = counts
        return cls(pages=Growing.of(pages), place=np.arange(1, 1 + runs, dtype=np.int32))

    def at(self, terms: NDArray[np.uint32]) -> NDArray[np.int32]:
        """The counts of these terms."""
        return paged_counts(self.pages.buffer, self.place, terms)

    def changed(self, terms: NDArray[np.uint32], by: int) -> TermCounts:
        """The counts with `by` added for every occurrence of a term. Amortised time is linear in the terms given.

        Only the newest of a lineage of counts may be changed, by one thread at a time.
        """
        if not len(terms):
            return self
        run, column = np.divmod(terms, np.uint32(_PAGE_TERMS))
        place = np.zeros(max(len(self.place), int(run.max()) + 1), np.int32)
        place[: len(self.place)] = self.place
        is_touched = np.zeros(len(place), np.bool_)
        is_touched[run] = True
        runs = np.flatnonzero(is_touched)
        newer = self.pages.buffer[place[runs]]
        place[runs] = np.arange(len(runs), dtype=np.int32)
        np.add.at(newer, (place[run], column), np.int32(by))
        place[runs] += np.int32(self.pages.size)
        pages = self.pages.extended(newer)
        if pages.size > 2 * len(place) + _PAGE_TERMS:
            # More than half of the pages belong to older counts only: copy the others.
            return TermCounts(pages=pages, place=place).copied()
        return TermCounts(pages=pages, place=place)

    def copied(self) -> TermCounts:
        """A copy of the counts that shares no pages with these."""
        return TermCounts.of(self.pages.buffer[self.place].reshape(-1))

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.pages.nbytes + self.place.nbytes


def packed_query(query: NDArray[np.float32]) -> NDArray[np.uint64]:
    """(3, words) uint64: the query's signs, and the two bits of each component's weight, 0 to 3.

    The spread is the mean magnitude weighted by magnitude. So a model that is not asked changes no weight of another,
    and one that is hardly asked gets hardly a weight: bits of weight 0 are not read.
    """
    magnitude = np.abs(query)
    tiny = np.finfo(np.float32).tiny
    spread = np.dot(query, query) / max(magnitude.sum(), tiny)
    weight = np.minimum(np.rint(magnitude / max(spread * _STEP, tiny)), _HEAVIEST).astype(np.uint16)
    # Moves each bit of a weight to the sign bit, which `sign_bits` reads.
    planes = np.stack([query.astype(np.float16).view(np.uint16), weight << 15, weight >> 1 << 15])
    return sign_bits(planes)


class Lazy(Generic[Given, Value]):
    """A value that is read on first use, and shared by the views that have the same. Thread-safe."""

    __slots__ = ("_lock", "_made", "_read")

    def __init__(self, read: Callable[Given, Value]) -> None:
        self._read = read
        self._lock = Lock()
        self._made: tuple[Value, ...] = ()

    @property
    def known(self) -> Value | None:
        """The value, or None if it is not read yet."""
        return self._made[0] if self._made else None

    def get(self, *given: Given.args, **named: Given.kwargs) -> Value:
        """The value. A transaction given must be later than the view, so that it sees all the view's memories."""
        if not self._made:
            with self._lock:
                if not self._made:
                    self._made = (self._read(*given, **named),)
        return self._made[0]
