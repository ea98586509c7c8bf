"""Explain: why a recall brought back a memory, or did not, and what would. A pure read."""

from __future__ import annotations

from dataclasses import replace

from hummock.core.embedding import Calibration
from hummock.core.explain import Explained, ExplainQuery, Remedy, Verdict
from hummock.core.memory import Memory
from hummock.core.recall import IntentMode, RecallQuery
from hummock.ports import Clock, Store
from hummock.recall.changes import changes, fewest
from hummock.recall.explain import group_place, judge, lost_unasked
from hummock.recall.explain_words import sentence
from hummock.recall.gather import group_queries
from hummock.recall.remedy import remedied, with_room
from hummock.recall.tuning import tuned
from hummock.text.script import is_han
from hummock.usecases.recall import Recall

MOST_TRIES = 12
"""Recalls that are tried one after the other, each with one change more."""


class Explain:
    """Runs the recall in question and looks where it loses the memory. Safe to call from several threads."""

    def __init__(self, recall: Recall, store: Store, calibration: Calibration, clock: Clock) -> None:
        """Args are the recall without a cache, the store that it reads, its embedder's calibration, and the clock."""
        self._recall = recall
        self._store = store
        self._calibration = calibration
        self._clock = clock

    def __call__(self, query: ExplainQuery) -> Explained:
        """What became of the memory; where it was lost, what brings it back has been tried out.

        A memory of another project is not found, as one that does not exist.

        Raises: EmbSpaceMismatch, InvalidRequest, SeqNotReached.
        """
        # A deadline decides by the machine's load, and a language model never twice the same: neither can be explained
        # afterwards. Who wants to know of a model's intent sends the one that the recall answered with.
        asked = replace(query.recall, until_s=None, intent_mode=IntentMode.LEXICAL)
        asked, from_project = tuned(asked, self._store.generation(asked.project).settings)
        explained = self._explained(asked, query)
        return replace(explained, project_settings=from_project)

    def _explained(self, asked: RecallQuery, query: ExplainQuery) -> Explained:
        in_chinese = is_han(asked.text)
        (memory,) = self._store.get(asked.project, [query.memory_id], asked.min_seq, full=True)
        verdict = None if memory is None else self._verdict(asked, memory)
        if memory is None or verdict is None or verdict.stage is None:
            return Explained(verdict=verdict, sentence=sentence(verdict, None, in_chinese=in_chinese))
        remedy = self._remedy(asked, verdict, memory, query.recall.until_s)
        return Explained(verdict=verdict, sentence=sentence(verdict, remedy, in_chinese=in_chinese), remedy=remedy)

    def _verdict(self, query: RecallQuery, memory: Memory) -> Verdict | None:
        """What the recall did with the memory; None when it was removed meanwhile."""
        ranking = self._recall.ranking(query)
        lost = lost_unasked(query, ranking.plan, memory.kind)
        place = group_place(ranking.plan, memory.kind)
        if lost is not None or place is None:
            return lost
        group_query = group_queries(ranking.plan, ranking.probe)[place]
        standing = self._store.standing(query.project, group_query, memory.id)
        return None if standing is None else judge(ranking, place, memory, standing, self._calibration)

    def _remedy(self, asked: RecallQuery, verdict: Verdict, memory: Memory, until_s: float | None) -> Remedy | None:
        """The fewest changes that bring the memory back, as far as one change after the other finds them."""
        changed, now = asked, verdict
        for _ in range(MOST_TRIES):
            if until_s is not None and self._clock.monotonic() >= until_s:
                return None  # nobody waits any more
            following = remedied(changed, now, memory)
            then = None if following is None else self._verdict(following, memory)
            if following is None or then is None:
                return None
            changed, now = following, then
            if now.stage is None:
                return self._least(asked, changed, memory)
        return None

    def _least(self, asked: RecallQuery, changed: RecallQuery, memory: Memory) -> Remedy | None:
        """The changes that are needed; None when a write took the memory away meanwhile."""
        recall = fewest(asked, changed, lambda query: self._rank(query, memory) > 0)
        verdict = self._verdict(recall, memory)
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
        """Its rank among the hits of its group, from 1; 0 when it is none."""
        verdict = self._verdict(query, memory)
        return int(verdict.value) if verdict is not None and verdict.stage is None else 0
