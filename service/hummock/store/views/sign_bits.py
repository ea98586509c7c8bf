"""The sign bits of a project's vector rows, for views that are large enough to need them.

A row's bits are of that row alone, so a view answers the same after any number of appends and rebuilds. After a restart
it does too, but where removed rows alone had made it large enough: then every row is scored.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hummock_kernels.signbit import BLOCK_ROWS, LANES, nearest_signs, put_signs, sign_bits

_STEP = 0.67
"""Of the query's root mean square: the values for which one sign more or less counts 1, 2 and 3 lie so far apart."""

_HEAVIEST = 3


@dataclass(frozen=True, slots=True, eq=False)
class SignBits:
    """The bits of the first `size` rows of blocks that may have room for more.

    What one holder sees never changes: rows behind it may share a word with its last ones, and are written without
    touching their bits. As with `Growing`, only the newest of a lineage may be extended, by one thread at a time.
    """

    blocks: NDArray[np.uint64]
    size: int

    @classmethod
    def of(cls, vectors: NDArray[np.uint16]) -> SignBits:
        """Those of (rows, dim) float16 in uint16."""
        return cls(np.empty((0, vectors.shape[1] + 1, LANES), np.uint64), 0).extended(vectors)

    def extended(self, vectors: NDArray[np.uint16]) -> SignBits:
        """These and those of more rows behind them; the blocks at least double when they have no room."""
        size = self.size + len(vectors)
        blocks = self.blocks
        if size > len(blocks) * BLOCK_ROWS:
            used = -(-self.size // BLOCK_ROWS)
            blocks = np.empty((max(-(-size // BLOCK_ROWS), 2 * used), *blocks.shape[1:]), np.uint64)
            blocks[:used] = self.blocks[:used]
        put_signs(vectors, self.size, blocks)
        return SignBits(blocks, size)

    def nearest(
        self, row_doc: NDArray[np.int32], allowed: NDArray[np.uint8], query: NDArray[np.float32], keep: int
    ) -> NDArray[np.int64]:
        """At most `keep` rows of allowed memories, ascending, that are near the query as far as their signs tell.

        Args:
            row_doc: (rows,) the memory of each.
            allowed: (memories,) nonzero for those that may be found.
            query: (dim,) finite.
            keep: Upper bound on the result.
        """
        return nearest_signs(self.blocks, row_doc, allowed, packed_query(query), keep)

    @property
    def nbytes(self) -> int:
        """Bytes of the rows; the room behind them takes address space."""
        return self.blocks[: -(-self.size // BLOCK_ROWS)].nbytes


def packed_query(query: NDArray[np.float32]) -> NDArray[np.uint64]:
    """(3, words) uint64: the query's signs and the two bits of the weight of each dim, 0 to 3."""
    spread = np.sqrt(np.mean(query * query)) * _STEP
    weight = np.minimum(np.rint(np.abs(query) / max(spread, np.finfo(np.float32).tiny)), _HEAVIEST).astype(np.uint16)
    # A bit of a weight is moved to where `sign_bits` looks for a sign.
    planes = np.stack([query.astype(np.float16).view(np.uint16), weight << 15, weight >> 1 << 15])
    return sign_bits(planes)
