"""Which memories a page of a list holds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hummock.store.searching.substrings import SubstringScan

Docs = NDArray[np.int64]


def page_of(
    docs: Docs, after: int, limit: int, *, newest_first: bool, scan: SubstringScan | None
) -> tuple[list[int], int | None]:
    """The documents of a page, and behind which document the next one begins; None when there is no next one.

    Args:
        docs: Those that pass the filter, ascending.
        after: Where the page before ended; 0 for the first.
        limit: At least 1.
        newest_first: Whether the page goes down.
        scan: Tells which texts hold what is looked for; when it has read enough, the page ends early.
    """
    if newest_first:
        ordered = docs[: np.searchsorted(docs, after) if after else None][::-1]
    else:
        ordered = docs[np.searchsorted(docs, after, side="right") :]
    if scan is None:
        found = ordered[: limit + 1].tolist()
        return found[:limit], found[limit - 1] if len(found) > limit else None
    return _holding(ordered, after, limit, scan)


def _holding(ordered: Docs, after: int, limit: int, scan: SubstringScan) -> tuple[list[int], int | None]:
    found: list[int] = []
    read = after
    for doc in map(int, ordered):
        is_held = bool(scan.held(doc))
        if scan.is_cut or (is_held and len(found) == limit):
            return found, read
        if is_held:
            found.append(doc)
        read = doc
    return found, None
