"""The best candidates again: by their words in context, then by a model that reads each together with the query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hummock.core.candidates import Candidates, FoundBy
from hummock.core.memory import Memory
from hummock.core.recall import CrossEncoding, Degradation, RecallQuery
from hummock.ports.models import Clock, Reranker
from hummock.ports.store import Outdated, Snapshot
from hummock.recall.fuse import Fused
from hummock.recall.plan import DOMAINS, joins_paths
from hummock.recall.query_features import QueryFeatures
from hummock.recall.stage_budget import DEADLINE
from hummock.text import template
from hummock_kernels.cosine import max_sims

LEAST_PAIRS = 2
"""Fewest pairs to score: one alone has nothing to be compared with."""

AUTO_PAIRS = 20
"""Candidates of a group that are read by default; lower ones seldom come to the top."""

MOST_PAIRS = 200
"""Most pairs of a request that asks for more: as many as can be returned."""

LONGEST_S = 10.0
"""Time that there is where the caller sets no deadline."""


def late_scores(
    found: Candidates, features: QueryFeatures, token_mark: float = 0.0, among: NDArray[np.bool_] | None = None
) -> NDArray[np.float32]:
    """Compute the max-sim of each candidate's best chunk, (n,) float32 in [-1, 1].

    NaN for candidates without token vectors or outside `among`, for all if the query has no token vectors, and if the
    token vectors of query and candidate come from different models of one space.

    Args:
        found: The candidates.
        features: The query.
        token_mark: The mark of the space. Its square is added to products of one model's token vectors and subtracted
            from those of different models; words have the rest of a token vector's length.
        among: (n,) candidates to score; None means all.
    """
    if found.tokens is None or not len(features.tokens):
        return np.full_like(found.cosine, np.nan)
    asked = np.ones(len(found.rows), np.uint8) if among is None else among.view(np.uint8)
    scores = max_sims(features.tokens, found.tokens.values, found.tokens.start, asked)
    if not token_mark:
        return scores
    marked = np.float32(token_mark**2)
    of_other_model = scores < 0
    scores = (scores - marked) / (1 - marked)
    scores[of_other_model] = np.nan
    return scores


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reranked:
    """The groups after the stage, the number of candidates read, and the degradations."""

    fused: tuple[Fused, ...]
    pairs: int = 0
    degraded: tuple[Degradation, ...] = ()


class CrossEncode:
    """Ranks groups again. Without a reranker it leaves them as they are. Safe to call from several threads."""

    def __init__(self, reranker: Reranker | None, mode: CrossEncoding, clock: Clock) -> None:
        """`mode` is the default for requests; the order of a single path is kept (1.1-10)."""
        self._reranker = reranker
        self._mode = mode
        self._clock = clock

    def __call__(
        self, query: RecallQuery, project: Snapshot, fused: Sequence[Fused], until_s: float | None
    ) -> Reranked:
        """Order the best candidates of each group by the reranker; domains, looked up by name, keep their places.

        A failing model or a near deadline costs this stage, not the recall. Groups share the remaining time, in order.

        Args:
            query: The query.
            project: Holds the candidates.
            fused: The groups, each best first.
            until_s: Deadline on the clock's monotonic scale; None means after LONGEST_S.
        """
        before = tuple(fused)
        mode = self._mode_of(query)
        if mode is CrossEncoding.OFF:
            return Reranked(fused=before)
        if self._reranker is None:
            return Reranked(fused=before, degraded=(_ABSENT,) if mode is CrossEncoding.ON else ())
        most = MOST_PAIRS if mode is CrossEncoding.ON else AUTO_PAIRS
        latest_s = self._clock.monotonic() + LONGEST_S if until_s is None else until_s
        try:
            return self._read(self._reranker, query, project, before, most, latest_s)
        except Outdated:
            raise
        except Exception as error:  # whatever the runtime raises: the order before still answers
            return Reranked(fused=before, degraded=(_degradation("CROSS_ENCODER_FAILED", type(error).__name__),))

    def is_wanted(self, query: RecallQuery) -> bool:
        """Whether this stage runs for the query."""
        return self._reranker is not None and self._mode_of(query) is not CrossEncoding.OFF

    def _mode_of(self, query: RecallQuery) -> CrossEncoding:
        return query.cross_encoding or (self._mode if joins_paths(query) else CrossEncoding.OFF)

    def _read(
        self,
        reranker: Reranker,
        query: RecallQuery,
        project: Snapshot,
        fused: tuple[Fused, ...],
        most_pairs: int,
        until_s: float,
    ) -> Reranked:
        ranked = list(fused)
        to_read = [place for place, group in enumerate(fused) if group.candidates.name != DOMAINS and len(group) > 1]
        pairs = wanted = 0
        for done, place in enumerate(to_read):
            group = fused[place]
            most = min(most_pairs, len(group))
            scores = self._scores(reranker, query, project, group, most, until_s, groups_left=len(to_read) - done)
            ranked[place] = cross_encoded(group, scores) if scores else group
            pairs, wanted = pairs + len(scores), wanted + most
        if pairs == wanted:
            return Reranked(fused=tuple(ranked), pairs=pairs)
        reranker.left_out()
        late = _degradation(DEADLINE, f"{pairs} of {wanted} candidates were read")
        return Reranked(fused=tuple(ranked), pairs=pairs, degraded=(late,))

    def _scores(
        self,
        reranker: Reranker,
        query: RecallQuery,
        project: Snapshot,
        group: Fused,
        most: int,
        until_s: float,
        *,
        groups_left: int,
    ) -> list[float]:
        """Scores of the first candidates of a group: as many as fit this group's part of the time left."""
        left_s = self._left_s(until_s, groups_left)
        # Before anything is loaded: as many of the shortest pairs as would fit.
        most = pool_size([reranker.least_s] * most, left_s)
        if not most:
            return []
        docs = group.candidates.rows["doc"][group.row[:most]].tolist()
        texts = [_passage(memory) for memory in project.load(docs, full=True)]
        pairs = reranker.pairs(query.text, texts)
        left_s = self._left_s(until_s, groups_left)
        size = pool_size([pair.expected_s for pair in pairs], left_s)
        return reranker.scores(pairs[:size], self._clock.monotonic() + left_s)

    def _left_s(self, until_s: float, groups_left: int) -> float:
        return (until_s - self._clock.monotonic()) / groups_left


def cross_encoded(fused: Fused, scores: Sequence[float]) -> Fused:
    """Reorder the first len(scores) candidates by their scores and age; the rest follow in their old order.

    Candidates of a named domain stay in front, then come holders of the name that the query is, whose age does not
    count. Equal scores keep their order. The relevance of a hit is its score times decay and verdict, at most 1, and
    after the named ones never more than that of the hit before it.

    Args:
        fused: Best first.
        scores: How well the first candidates answer, in [0, 1]; at most one for each candidate.
    """
    count = len(scores)
    found_by = fused.candidates.found_by[fused.row[:count]]
    is_named, is_holder = (found_by & bit != 0 for bit in (FoundBy.DOMAIN, FoundBy.HOLDER))
    log_decay = fused.log_decay.copy()
    log_decay[:count][is_holder] = 0.0
    relevance = (np.asarray(scores, np.float64) * np.exp(log_decay[:count])).astype(np.float32)
    if len(fused.verdict):
        relevance = np.minimum(relevance * fused.verdict[fused.row[:count]], np.float32(1))
    order = np.lexsort((-relevance, ~is_holder, ~is_named))
    relevance, named = relevance[order], np.count_nonzero(is_named)
    relevance[named:] = np.minimum.accumulate(relevance[named:])
    places = np.concatenate([order, np.arange(count, len(fused))])
    least = relevance.min(initial=np.float32(1))
    return fused.take(
        places,
        relevance=np.concatenate([relevance, np.minimum(fused.relevance[count:], least)]),
        score=np.concatenate([relevance, np.minimum(fused.score[count:], least)]),
        log_decay=log_decay[places],
        cross=np.concatenate([np.asarray(scores, np.float32)[order], np.full(len(fused) - count, np.nan, np.float32)]),
    )


def pool_size(expected_s: Sequence[float], time_left_s: float) -> int:
    """Number of pairs, from the front, that can be scored in the time left; 0 if that is less than LEAST_PAIRS.

    Args:
        expected_s: Expected seconds for each pair.
        time_left_s: Seconds for all of them.
    """
    fitting = int(np.searchsorted(np.cumsum(expected_s), time_left_s, side="right"))
    return fitting if fitting >= LEAST_PAIRS else 0


def _passage(memory: Memory | None) -> str:
    """The words of a memory that are embedded, once; of one that was removed meanwhile none."""
    if memory is None or memory.payload is None:
        return ""
    header, body = template.embedded(memory.index, memory.payload)
    # A title that was taken from the text says nothing twice.
    repeats = " ".join(body[: 2 * len(header)].split()).startswith(header.removesuffix("…"))
    return body if repeats else f"{header}\n{body}"


def _degradation(reason: str, message: str) -> Degradation:
    return Degradation(path="cross_encoder", reason=reason, message=message)


_ABSENT = _degradation("CROSS_ENCODER_ABSENT", "the service runs without one; see the setting cross_encoder")
