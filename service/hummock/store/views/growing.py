"""Append-only arrays that old readers and new ones share."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Generic, Self, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

Scalar = TypeVar("Scalar", bound=np.generic)

_LARGE_BYTES = 1024 * 1024
"""Of so large an array, pages that nothing was written to take no memory."""


@dataclass(frozen=True, slots=True, eq=False)
class Growing(Generic[Scalar]):
    """The first `size` rows of a buffer that may have room for more.

    What one holder sees never changes. Rows behind it belong to whoever appends, so only the newest of a line of
    arrays may be extended, by one thread at a time.
    """

    buffer: NDArray[Scalar]
    size: int

    @classmethod
    def of(cls, values: NDArray[Scalar]) -> Self:
        """An array of these rows."""
        return cls(values, len(values))

    @property
    def values(self) -> NDArray[Scalar]:
        """The rows; not to be written to."""
        return self.buffer[: self.size]

    @classmethod
    def with_room(cls, count: int, shape: tuple[int, ...], dtype: DTypeLike) -> Self:
        """No rows, and a buffer that takes at least so many."""
        return cls(np.empty((_capacity(count, 0, shape, dtype), *shape), dtype), 0)

    def taken(self, places: NDArray[np.int64]) -> Growing[Scalar]:
        """The rows of these places, which must be there, with room behind them: the next append copies none."""
        buffer = Growing[Scalar].with_room(len(places), self.buffer.shape[1:], self.buffer.dtype).buffer
        # To check each place, NumPy would make a copy of the result first.
        np.take(self.values, places, axis=0, out=buffer[: len(places)], mode="clip")
        return Growing(buffer, len(places))

    def extended(self, rows: NDArray[Any]) -> Growing[Scalar]:
        """This array with more rows behind it; the buffer at least doubles when it has no room."""
        size = self.size + len(rows)
        buffer = self.buffer
        # A read-only buffer lies over foreign bytes.
        if size > len(buffer) or not buffer.flags.writeable:
            shape = buffer.shape[1:]
            buffer = np.empty((_capacity(size, self.size, shape, buffer.dtype), *shape), buffer.dtype)
            buffer[: self.size] = self.values
        buffer[self.size : size] = rows
        return Growing(buffer, size)

    @property
    def nbytes(self) -> int:
        """Bytes of the rows; the room behind them takes address space."""
        return self.values.nbytes


def _capacity(count: int, before: int, shape: tuple[int, ...], dtype: DTypeLike) -> int:
    """Rows of a buffer for `count` of them, of which there were `before`."""
    if count * math.prod(shape) * np.dtype(dtype).itemsize >= _LARGE_BYTES:
        return 2 * count
    return max(count, 2 * before)
