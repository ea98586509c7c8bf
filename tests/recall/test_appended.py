"""Hits that only substrings found, in addition to those of vectors."""

from __future__ import annotations

import pytest

from hummock.core.candidates import FoundBy
from hummock.core.memory import QueryVector
from hummock.core.recall import KeywordMode, Recalled, RecallPath
from tests.desk import Desk, note

SIMILAR = ("first", "second", "third")
HELD = ("older", "newer")


def taught(desk: Desk) -> QueryVector:
    """Three memories near a vector, ten far from it, and two farther that hold "ment"; gives the vector."""
    near = [note(f"quay {name}", name) for name in SIMILAR]
    far = [note(f"lamp {number}", f"far{number}") for number in range(10)]
    held = [note(f"repayments {name}", name, at=float(at)) for at, name in enumerate(HELD)]
    vectors = [*(desk.pointing(4 - at, 1) for at in range(3)), *[desk.pointing(0, 1)] * 10, *[desk.pointing(-1)] * 2]
    desk.teach(*near, *far, *held, vectors=vectors)
    return desk.pointing(1)


def asked(desk: Desk, vector: QueryVector, mode: KeywordMode) -> Recalled:
    return desk.recall(
        "ment", vector=vector, keyword_mode=mode, candidates=10, min_similarity=0.5, relevance_weight=1.0
    )


def test_substrings_stand_behind_what_is_similar_and_keep_their_order_where_nothing_is(desk: Desk) -> None:
    """S0-13, S0-11. Vector hits first, keyword hits appended, with a score of 0.5. Newest first."""
    hits = asked(desk, taught(desk), KeywordMode.SUBSTRING).hits
    assert [hit.memory.id for hit in hits] == [*SIMILAR, "newer", "older"]
    assert [hit.found_by for hit in hits[3:]] == [FoundBy.KEYWORD] * 2
    assert [hit.score for hit in hits[3:]] == pytest.approx([0.5, 0.5])
    assert [hit.memory.id for hit in asked(desk, taught(desk), KeywordMode.TERMS).hits] == list(SIMILAR)
    taught(desk)
    hits = desk.recall("ment", keyword_mode=KeywordMode.SUBSTRING, paths=frozenset({RecallPath.KEYWORD})).hits
    assert [hit.memory.id for hit in hits] == ["newer", "older"]
    assert hits[0].score > hits[1].score
