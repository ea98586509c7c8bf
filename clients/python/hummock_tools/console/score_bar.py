"""Parts of a hit's score, as far as the contract gives them: a stacked bar, and a waterfall of the stages.

A service joins the paths' scores, each divided by its pool's best, by shares that the receipt has on average. Of one
hit the parts are therefore estimates; whatever they leave of the score came from its neighbours, its time, its name or
the cross-encoder. The numbers alongside the bar are those of the hit itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hummock_client.v1 import recall_pb2
from hummock_tools.console.view import milliseconds

WIDTH: Final = 200.0
"""Largest width of a bar, in units of its drawing."""

PARTS: Final = ("vector", "words", "late", "beside", "lost")
"""Parts in the order of the bar. The last is what age and verdicts took away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A stretch of a bar: the part's name, its worth in the score, and where it is drawn."""

    part: str
    worth: float
    x: float
    width: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A stage of a recall: what it took, and where it is drawn."""

    stage: int
    took_ms: float
    x: float
    width: float


def score_bars(hits: Sequence[recall_pb2.Hit], receipt: recall_pb2.Receipt) -> list[list[Segment]]:
    """The bar of each hit of a group; equal lengths are equal scores."""
    best_similarity = max((hit.similarity for hit in hits), default=0.0)
    best_keyword = max((hit.keyword_score for hit in hits), default=0.0)
    best_late = max((hit.late_interaction_score for hit in hits), default=0.0)
    vector, late = receipt.vector_weight, receipt.late_interaction_weight
    bars = []
    for hit in hits:
        own_late = late if hit.late_interaction_score > 0 else 0.0
        own_vector = vector if hit.similarity > 0 else 0.0
        parts = [
            (1 - own_late) * own_vector * _of_best(hit.similarity, best_similarity),
            (1 - own_late) * (1 - own_vector) * _of_best(hit.keyword_score, best_keyword),
            own_late * _of_best(hit.late_interaction_score, best_late),
        ]
        bars.append(_bar(hit, parts))
    return bars


def waterfall(stages: Sequence[recall_pb2.StageTime]) -> list[Step]:
    """The stages one after the other, over the whole width."""
    total_ms = sum(milliseconds(stage.elapsed) for stage in stages)
    steps, at = [], 0.0
    for stage in stages:
        took_ms = milliseconds(stage.elapsed)
        width = WIDTH * took_ms / total_ms if total_ms > 0 else 0.0
        steps.append(Step(stage=stage.stage, took_ms=took_ms, x=round(at, 2), width=round(max(width, 0.5), 2)))
        at += width
    return steps


def _bar(hit: recall_pb2.Hit, parts: list[float]) -> list[Segment]:
    factor = hit.decay * (hit.verdict or 1.0)
    before = hit.score / factor if factor > 0 else hit.score
    estimated = sum(parts)
    if estimated > before > 0:
        parts = [part * before / estimated for part in parts]
    beside = max(0.0, before - sum(parts))
    # The bar ends where the score does; after it stands what it would have had.
    kept = hit.score / before if before > 0 else 0.0
    worths = [part * kept for part in (*parts, beside)]
    worths.append(max(0.0, min(before, 1.0) - hit.score))
    segments, at = [], 0.0
    for name, worth in zip(PARTS, worths, strict=True):
        width = WIDTH * worth
        if width >= 0.1:
            segments.append(Segment(part=name, worth=worth, x=round(at, 2), width=round(width, 2)))
        at += width
    return segments


def _of_best(value: float, best: float) -> float:
    return max(value, 0.0) / best if best > 0 else 0.0
