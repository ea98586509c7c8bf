"""Append-only arrays that old readers and new ones share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

Scalar = TypeVar("Scalar", bound=np.generic)


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

    def extended(self, rows: NDArray[Any]) -> Growing[Scalar]:
        """This array with more rows behind it; the buffer at least doubles when it has no room."""
        size = self.size + len(rows)
        buffer = self.buffer
        # A read-only buffer lies over foreign bytes.
        if size > len(buffer) or not buffer.flags.writeable:
            buffer = np.empty((max(size, 2 * self.size), *self.buffer.shape[1:]), self.buffer.dtype)
            buffer[: self.size] = self.values
        buffer[self.size : size] = rows
        return Growing(buffer, size)

    @property
    def nbytes(self) -> int:
        """Bytes of the whole buffer."""
        return self.buffer.nbytes
