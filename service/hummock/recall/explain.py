"""Explains why a recall returned a memory or not, and the fewest changes that would return it. Reads only.

The recall is repeated and its ranking searched for the stage where the memory drops out (`judge`); changes that take it
past that stage are tried one after the other (`remedy.py`); the result is put into words (`sentences.py`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from hummock.core.candidates import Candidates, Standing
from hummock.core.embedding import Calibration
from hummock.core.explain import Explained, ExplainQuery, LossStage, Numbers, Remedy, Verdict
from hummock.core.memory import Memory
from hummock.core.recall import GroupPlan, IntentMode, Plan, RecallQuery, ages_days
from hummock.ports.models import Clock
from hummock.ports.store import Reads, Snapshot
from hummock.recall.diversify import pick
from hummock.recall.fuse import Fused, fuse
from hummock.recall.hits import make_hits, matched_terms
from hummock.recall.pipeline import Ranking, Recall
from hummock.recall.plan import KEEPS_ALL, apply_settings, says_too_little
from hummock.recall.query_features import QueryFeatures, group_queries
from hummock.recall.remedy import changes, fewest, remedied, with_room
from hummock.recall.sentences import sentence
from hummock.text.normalise import is_han
from hummock_kernels.mmr import OVER, TWIN

MOST_TRIES = 12
"""Recalls that are tried one after the other, each with one change more."""


class Explain:
    """Repeats a recall and finds the stage that loses the memory. Safe to call from several threads."""

    def __init__(self, recall: Recall, store: Reads, calibration: Calibration, clock: Clock) -> None:
        """Explain the answers of a recall without a cache.

        Args:
            recall: The recall.
            store: The store that it reads.
            calibration: Calibration of its embedder's space.
            clock: The clock.
        """
        self._recall = recall
        self._store = store
        self._calibration = calibration
        self._clock = clock

    def __call__(self, query: ExplainQuery) -> Explained:
        """The verdict on the memory; if it was lost, with changes that were tried and do return it.

        A memory of another project is not found, like one that does not exist.

        Raises: EmbSpaceMismatch, InvalidRequest, SeqNotReached.
        """
        recall = query.recall
        return self._store.read(recall.project, partial(self._explained, query), min_seq=recall.min_seq)

    def _explained(self, query: ExplainQuery, project: Snapshot) -> Explained:
        # A deadline depends on the machine's load and a language model is not deterministic: neither can be repeated.
        # To explain a model's intent, the caller sends the intent of the recall's answer.
        asked = replace(query.recall, until_s=None, intent_mode=IntentMode.LEXICAL)
        asked, from_project = apply_settings(asked, project.settings)
        (memory,) = project.get([query.memory_id])
        look = _Look(self._recall, project, self._calibration, self._clock)
        verdict = None if memory is None else look.verdict(asked, memory)
        remedy = None
        if memory is not None and verdict is not None and verdict.stage is not None:
            remedy = look.remedy(asked, verdict, memory, query.recall.until_s)
        return Explained(
            verdict=verdict,
            sentence=sentence(verdict, remedy, in_chinese=is_han(asked.text)),
            remedy=remedy,
            project_settings=from_project,
        )


@dataclass(frozen=True, slots=True)
class _Look:
    """Recalls that are tried on one snapshot."""

    recall: Recall
    project: Snapshot
    calibration: Calibration
    clock: Clock

    def verdict(self, query: RecallQuery, memory: Memory) -> Verdict | None:
        """The stage at which the recall kept or lost the memory; None if it was removed meanwhile."""
        ranking = self.recall.ranking(query, self.project)
        groups, kind = ranking.plan.groups, memory.kind
        if says_too_little(query):
            return Verdict(stage=LossStage.QUERY)
        if query.filter.kinds and kind not in query.filter.kinds:
            return Verdict(stage=LossStage.FILTER, failed=("kinds",))
        place = next((place for place, group in enumerate(groups) if kind in group.kinds), None)
        if place is None:
            return Verdict(stage=LossStage.GROUP)
        group_query = group_queries(ranking.plan, ranking.features)[place]
        standing = self.project.standing(group_query, memory.id)
        return None if standing is None else judge(ranking, place, memory, standing, self.calibration)

    def remedy(self, asked: RecallQuery, verdict: Verdict, memory: Memory, until_s: float | None) -> Remedy | None:
        """The fewest changes that bring the memory back, as far as one change after the other finds them."""
        changed, now = asked, verdict
        for _ in range(MOST_TRIES):
            if until_s is not None and self.clock.monotonic() >= until_s:
                return None  # the caller is gone
            following = remedied(changed, now, memory)
            then = None if following is None else self.verdict(following, memory)
            if following is None or then is None:
                return None
            changed, now = following, then
            if now.stage is None:
                return self._least(asked, changed, memory)
        return None

    def _least(self, asked: RecallQuery, changed: RecallQuery, memory: Memory) -> Remedy | None:
        """The changes that are needed; None when a write took the memory away meanwhile."""
        recall = fewest(asked, changed, lambda query: self._rank(query, memory) > 0)
        verdict = self.verdict(recall, memory)
        if verdict is None or verdict.stage is not None:
            return None
        rank = int(verdict.value)
        # Where there has to be more room, no more than it needs: less makes a smaller pool, and perhaps a higher rank.
        while (room := with_room(recall, verdict.group, rank)) != recall:
            rank_there = self._rank(room, memory)
            if not rank_there or len(changes(asked, room)) != len(changes(asked, recall)):
                break
            recall, rank = room, rank_there
        return Remedy(changes=changes(asked, recall), recall=recall, rank=rank)

    def _rank(self, query: RecallQuery, memory: Memory) -> int:
        """The memory's rank among the hits of its group, from 1; 0 if it is not a hit."""
        verdict = self.verdict(query, memory)
        return int(verdict.value) if verdict is not None and verdict.stage is None else 0


def judge(ranking: Ranking, place: int, memory: Memory, standing: Standing, calibration: Calibration) -> Verdict:
    """Find out what the group at this place did with a memory.

    Args:
        ranking: The recall up to the choice of hits.
        place: Index of the group that takes memories of its kind.
        memory: The memory, with its payload or without.
        standing: Its rank by that group's query.
        calibration: From cosine to similarity.
    """
    case = _Case(
        plan=ranking.plan,
        group=ranking.plan.groups[place],
        features=ranking.features,
        found=ranking.gathered.groups[place],
        fused=ranking.fused[place],
        memory=memory,
        standing=standing,
        calibration=calibration,
    )
    verdict, by_graph = case.verdict(), case.found.graph_recall
    return replace(verdict, group=case.group.name, degraded=ranking.degraded, graph_recall=by_graph)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Case:
    """One memory and the group that takes its kind."""

    plan: Plan
    group: GroupPlan
    features: QueryFeatures
    found: Candidates
    fused: Fused
    memory: Memory
    standing: Standing
    calibration: Calibration

    def verdict(self) -> Verdict:
        ids = self.found.memory_id
        if self.memory.id not in ids:
            return self._never_found()
        row = ids.index(self.memory.id)
        ranks = np.flatnonzero(self.fused.row == row)
        return self._ranked(int(ranks[0])) if len(ranks) else self._left_out(row)

    def _never_found(self) -> Verdict:
        standing = self.standing
        numbers = self._standing_numbers()
        if standing.failed:
            return Verdict(stage=LossStage.FILTER, failed=standing.failed, numbers=numbers)
        if standing.superseded_by:
            return Verdict(stage=LossStage.SUPERSEDED, others=standing.superseded_by, numbers=numbers)
        if standing.turns_ago:
            turns = self.plan.window.turns if self.plan.window else 0
            return Verdict(
                stage=LossStage.WINDOW, value=float(standing.turns_ago), threshold=float(turns), numbers=numbers
            )
        ranks = [rank for rank in (standing.vector_rank, standing.keyword_rank) if rank]
        return Verdict(
            stage=LossStage.CANDIDATES,
            value=float(min(ranks, default=0)),
            threshold=float(self.group.pool),
            numbers=numbers,
        )

    def _left_out(self, row: int) -> Verdict:
        late = self.fused.late[row : row + 1]
        best = self.fused.best_cosine
        alone = fuse(_only(self.found, row), late, self.plan, self.features, self.calibration, best)
        # With nothing left out, it is somewhere in the order.
        whole = self._fuse_all()
        numbers = self._numbers(whole, int(np.flatnonzero(whole.row == row)[0]))
        numbers = replace(numbers, relevance_rank=0)
        if alone.tally.echoes:
            return Verdict(stage=LossStage.ECHO, numbers=numbers)
        barred = self.fused.minimum is not None and numbers.similarity < self.fused.minimum[row]
        if alone.below_min_similarity or barred:
            return Verdict(
                stage=LossStage.MIN_SIMILARITY, value=numbers.similarity, threshold=self._minimum(row), numbers=numbers
            )
        return Verdict(stage=LossStage.DUPLICATE, others=self._newer_copies(row), numbers=numbers)

    def _minimum(self, row: int) -> float:
        """The similarity that a candidate would have needed."""
        if self.fused.minimum is not None:
            return float(self.fused.minimum[row])
        stands_out = self.found.cosine[row] >= self.fused.best_cosine
        return self.plan.min_of_best if stands_out else self.plan.min_similarity

    def _newer_copies(self, row: int) -> tuple[str, ...]:
        created, ids = self.found.rows["create_time"], self.found.memory_id
        copies = self.found.rows["copy_hash"]
        is_copy = (copies == copies[row]) & (created >= created[row])
        rows = sorted(np.flatnonzero(is_copy).tolist(), key=lambda copy: (-created[copy], ids[copy]))
        return tuple(ids[copy] for copy in rows[: rows.index(row)])

    def _ranked(self, rank: int) -> Verdict:
        """The verdict on a candidate that passed all filters, from its place in an order without a limit on hits."""
        order, marks = pick(
            self.plan, replace(self.group, top_k=len(self.fused)), self.fused, self.features, self.calibration.alike
        )
        place = int(np.flatnonzero(order == rank)[0])
        top_k = self.group.top_k
        numbers = replace(self._numbers(self.fused, rank), place=place + 1)
        if place < top_k:
            return Verdict(stage=None, value=place + 1.0, threshold=float(top_k), numbers=numbers)
        if rank >= top_k:
            return Verdict(stage=LossStage.RANK, value=place + 1.0, threshold=float(top_k), numbers=numbers)
        if marks[place] & OVER:
            cap = float(self.plan.writer_cap)
            return Verdict(stage=LossStage.WRITER_CAP, value=place + 1.0, threshold=cap, numbers=numbers)
        is_twin = bool(marks[place] & TWIN)
        stage = LossStage.NEAR_TWIN if is_twin else LossStage.DIVERSITY
        nearest, cosine = self._nearest(rank, self._versions(rank, order[:top_k]) if is_twin else order[:top_k])
        bar = self.plan.near_twin_bar if is_twin else 0.0
        return Verdict(stage=stage, others=(nearest,), value=cosine, threshold=bar, numbers=numbers)

    def _versions(self, rank: int, others: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return those of the other ranks that have its name; all of them if none has."""
        names = self.found.rows["name_hash"][self.fused.row]
        versions = others[names[others] == names[rank]]
        return versions if len(versions) else others

    def _nearest(self, rank: int, others: NDArray[np.int64]) -> tuple[str, float]:
        """The id of the one most like it among others, given by their ranks, and their cosine."""
        rows = self.fused.row
        cosines = self.found.vector(rows[others]) @ self.found.vector(rows[[rank]])[0]
        best = int(np.argmax(cosines))
        return self.found.memory_id[int(rows[others[best]])], float(cosines[best])

    def _numbers(self, fused: Fused, rank: int) -> Numbers:
        """Scores of the candidate with this rank, from 0; a hit shows most of them."""
        place, row = np.array([rank]), int(fused.row[rank])
        (hit,) = make_hits(fused, place, np.zeros(1, np.uint8), [self.memory], self.features, self.plan.as_of)
        return replace(
            self._standing_numbers(),
            cosine=hit.cosine,
            similarity=hit.similarity,
            keyword_score=hit.keyword_score,
            matched_terms=hit.matched_terms,
            corrections=hit.corrections,
            late_interaction_score=hit.late_interaction_score,
            cross_encoder_score=hit.cross_encoder_score,
            time_match=hit.time_match,
            decay=hit.decay,
            joined=float(fused.joined[rank]),
            relevance=float(fused.relevance[rank]),
            evidence=float(fused.evidence[row]) if len(fused.evidence) else 0.0,
            score=hit.score,
            verdict=hit.verdict,
            helpful_count=hit.helpful_count,
            wrong_count=hit.wrong_count,
            relevance_rank=rank + 1,
        )

    def _standing_numbers(self) -> Numbers:
        """Scores that are known of a memory that is not a candidate."""
        standing = self.standing
        cosine = np.array([standing.cosine], np.float32)
        similarity = float(self.calibration.similarity(cosine, han=self.features.is_han)[0])
        has_vector = not math.isnan(standing.cosine)
        return Numbers(
            cosine=standing.cosine if has_vector else 0.0,
            similarity=similarity if has_vector else 0.0,
            keyword_score=standing.keyword,
            matched_terms=matched_terms(standing.matched, self.features.words),
            age_days=ages_days([self.memory.create_time], self.plan.as_of)[0],
            vector_rank=standing.vector_rank,
            keyword_rank=standing.keyword_rank,
            searched=standing.searched,
            pool=self.group.pool,
            top_k=self.group.top_k,
        )

    def _fuse_all(self) -> Fused:
        """The order if nothing were left out: every text another one, no minimum, no echo."""
        rows = self.found.rows.copy()
        rows["copy_hash"] = np.arange(len(rows))
        found = replace(self.found, rows=rows)
        plan = replace(self.plan, min_similarity=KEEPS_ALL, code_bar=None, min_of_best=KEEPS_ALL)
        features = replace(self.features, echoes=frozenset)
        every = fuse(found, self.fused.late, plan, features, self.calibration, self.fused.best_cosine)
        return replace(every, evidence=self.fused.evidence)


def _only(found: Candidates, row: int) -> Candidates:
    """A set of candidates that holds only this one."""
    # Rarity is of the query's terms, the vectors are the project's.
    columns = {name: getattr(found, name) for name in Candidates.__struct_fields__ if name not in ("rarity", "vectors")}
    single: dict[str, Any] = {
        name: column[row : row + 1] for name, column in columns.items() if isinstance(column, np.ndarray)
    }
    return replace(found, ids=lambda: (found.memory_id[row],), tokens=None, **single)
