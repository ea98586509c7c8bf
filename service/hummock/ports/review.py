"""What the store holds for review: reads, and what a write does with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from hummock.core.review import Quarantined, QuarantinedPage


class Review(Protocol):
    """Reads of what is held for review. Each sees every write that was acknowledged before it began."""

    def get(self, project: str, ids: Sequence[str], /) -> list[Quarantined | None]:
        """What is held under these ids, in order; None where nothing is."""

    def page(self, project: str, after: str, limit: int, /) -> QuarantinedPage:
        """At most `limit` of what is held behind an id (empty: the beginning), by the bytes of their ids."""


class ReviewWork(Protocol):
    """The changes that a write makes to what is held for review, and what it sees of it."""

    def get(self, memory_id: str, /) -> Quarantined | None:
        """What is held under an id."""

    def put(self, held: Quarantined, /) -> None:
        """Holds a memory; what was held under its id is replaced. No read of memories finds it."""

    def delete(self, memory_id: str, /) -> bool:
        """Removes what is held under an id. False where nothing is."""
