"""Places what tells a change before the older memory that it most likely replaces.

An old fact is often worded as one asks for it, and the sentence that replaced it tells the change alone: "we moved to
Bristol last weekend". So the old one comes first wherever words and meaning decide.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from hummock.core.memory import MemoryKind, Origin
from hummock.core.recall import Plan, Wanted
from hummock.recall.fuse import Fused
from hummock.text.changes import Tense, tense_of
from hummock.text.question import question_of
from hummock.text.questions import Trait

ALIKE: Final = 0.55
"""Least cosine of two memories about one thing."""

ABOUT_AS_MUCH: Final = 0.05
"""Difference of two cosines that says little about which of two older ones is meant."""

LATER_S: Final = 3600.0
"""Least time between both: what is said in one go belongs together."""

FITTING: Final = 0.4
"""Least relevance of the newer one, as a share of that of the older one."""

_TRAITS: Final = int(Trait.TELLS_CHANGE | Trait.ASKS)


def newest_first(fused: Fused, plan: Plan, text: str) -> Fused:
    """Move each note that tells a change before the older note that it most likely replaces, if it stands behind it.

    A question how things were before a change has the older one first. Unchanged are groups without such notes, and
    those of other questions about the past, or about a time.

    Args:
        fused: Best first.
        plan: The plan of the recall.
        text: The question.
    """
    if not plan.neighbours:
        return fused
    tells = fused.candidates.rows["traits"][fused.row] & _TRAITS == Trait.TELLS_CHANGE
    if not tells.any() or plan.times or Wanted.FROM_ASSISTANT in plan.wanted:
        return fused
    tense = tense_of(question_of(text))
    if tense is Tense.PAST:
        return fused
    found = fused.candidates
    newer, older = _replaced(found.rows[fused.row], found.vector(fused.row), np.flatnonzero(tells))
    if not len(newer):
        return fused
    first, second = (newer, older) if tense is Tense.NOW else (older, newer)
    places = np.arange(len(fused), dtype=np.float64)
    relevance, score = fused.relevance.copy(), fused.score.copy()
    for raised, passed in zip(first.tolist(), second.tolist(), strict=True):
        if places[passed] < places[raised] and relevance[raised] >= FITTING * relevance[passed]:
            places[raised] = np.nextafter(places[passed], -1)
            relevance[raised], score[raised] = relevance[passed], score[passed]
    order = np.argsort(places, kind="stable")
    replaced_by = dict(zip(fused.row[older].tolist(), fused.row[newer].tolist(), strict=True))
    return fused.take(order, relevance=relevance[order], score=score[order], replaced_by=replaced_by)


def _replaced(
    rows: NDArray[np.void], vectors: NDArray[np.float32], tells: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Places of notes that tell a change, the newest last, and the place of what each most likely replaces.

    That is the best of the older notes by the same person that are about as much like it as any.
    """
    told = np.where(np.isnan(rows["event_time"]), rows["create_time"], rows["event_time"])
    tells = tells[np.argsort(told[tells], kind="stable")]
    speakers = rows["speaker"][tells][:, None]
    may_be = (rows["kind"] == MemoryKind.NOTE) & (told <= told[tells][:, None] - LATER_S)
    may_be &= (rows["origin"] == Origin.AI_OUTPUT) == (rows["origin"][tells][:, None] == Origin.AI_OUTPUT)
    may_be &= (rows["speaker"] == speakers) | (rows["speaker"] == 0) | (speakers == 0)
    likeness = np.where(may_be, vectors[tells] @ vectors.T, -1.0)
    is_close = likeness >= np.maximum(likeness.max(axis=1, keepdims=True) - ABOUT_AS_MUCH, ALIKE)
    has_any = is_close.any(axis=1)
    return tells[has_any], is_close.argmax(axis=1)[has_any]
