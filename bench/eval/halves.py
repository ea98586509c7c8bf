"""Two halves of every set: weights are chosen on one and reported on the other."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from hashlib import blake2b


class Half(StrEnum):
    """Which questions a figure is of."""

    TUNE = "tune"
    REPORT = "report"
    ALL = "all"


def draw(text: str) -> int:
    """A number in [0, 2**64) that depends on the text alone."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


def half_of(question_id: str) -> Half:
    """TUNE where the lowest bit of the id's BLAKE2b (8 bytes, little-endian) is 0. Parallel questions go together."""
    return Half.REPORT if draw(question_id) & 1 else Half.TUNE


def drawn(ids: Iterable[str], most: int | None) -> frozenset[str]:
    """At most so many of the ids, always the same ones: those with the smallest hashes. None takes all."""
    return frozenset(sorted(ids, key=lambda each: (draw(f"drawn:{each}"), each))[:most])
