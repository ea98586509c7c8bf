"""Learn keywords of entries: choose them, have a learner read them, keep what it found in one write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hummock.core.keyword_scan import EntryLearnt, EntryOutcome
from hummock.core.learning import LearningState, Profile
from hummock.core.learning_events import KeywordsLearned, KeywordUpdate, Learner
from hummock.core.memory import Filter, Memory, MemoryKind
from hummock.core.recall import MAX_QUERY_CHARACTERS, IntentMode, Preset, Recalled, RecallQuery
from hummock.learn.keywords import checked
from hummock.learn.record import record
from hummock.learn.select import select
from hummock.ports import (
    EntryText,
    FindReferences,
    KeywordLearner,
    KeywordQuestion,
    LearnerFailed,
    Store,
    UnitOfWork,
    WriteRequest,
)
from hummock.usecases.entries import Entries

NEAR_ENTRIES = 20
"""That a turn's words are held against before the least learnt of them are chosen."""
NEAR_SIMILARITY = 0.15
"""Calibrated: above what unrelated texts have, and far below what a recall asks for. What is to be learnt is a link
that words do not show yet."""

_NOBODY = "there is no learner"
_NO_PROFILE = Profile()


@dataclass(frozen=True, slots=True, kw_only=True)
class LearntReply:
    """What was kept: keywords that are new, by entry, of those that were read and are still there."""

    updates: tuple[KeywordUpdate, ...]


class LearnKeywords:
    """Learns with one learner. It takes as long as the learner does."""

    def __init__(
        self,
        store: Store,
        entries: Entries,
        recall: Callable[[RecallQuery], Recalled],
        find_references: FindReferences,
        learner: KeywordLearner | None,
    ) -> None:
        """Args are what it reads with, and who learns; None when there is nobody."""
        self._store = store
        self._entries = entries
        self._recall = recall
        self._find_references = find_references
        self._learner = learner

    @property
    def learner(self) -> Learner | None:
        """Who learns; None when there is nobody."""
        return None if self._learner is None else self._learner.kind

    def state(self, project: str) -> LearningState:
        """What concerns the whole project."""
        return self._store.read_learning(project, lambda learning: learning.state())

    def all_ids(self, project: str) -> tuple[str, ...]:
        """All entries, in the order of their writes."""
        return tuple(entry.memory_id for entry in self._entries.of(project))

    def unlearned_ids(self, project: str) -> tuple[str, ...]:
        """The entries without a keyword, in the order of their writes."""
        return tuple(entry.memory_id for entry in self._entries.of(project) if not entry.keywords)

    def from_turn(self, project: str, user_text: str) -> tuple[KeywordUpdate, ...]:
        """Learn of the entries that the learner names, or of those that the words of a turn may be about.

        Returns:
            An update for each that was read, with what is new.

        Raises: LearnerFailed: it read none, and nothing was counted.
        """
        state = self.state(project)
        if not state.enabled or not user_text.strip():
            return ()
        due = None if self._learner is None else self._learner.due(project)
        if due is not None:
            return self._learn(project, user_text, due)
        near = self._near(project, user_text, state)
        profiles = self._profiles(project, near)
        return self._learn(project, user_text, select(near, profiles, state.turns, state.settings))

    def of_entry(self, project: str, memory_id: str) -> EntryLearnt:
        """Learn of one entry by what it says itself."""
        try:
            updates = self._learn(project, "", (memory_id,))
        except LearnerFailed as failed:
            return EntryLearnt(memory_id=memory_id, outcome=EntryOutcome.FAILED, reason=str(failed))
        if not updates:
            return EntryLearnt(memory_id=memory_id, outcome=EntryOutcome.GONE)
        keywords = updates[0].keywords
        outcome = EntryOutcome.LEARNT if keywords else EntryOutcome.NOTHING_NEW
        return EntryLearnt(memory_id=memory_id, outcome=outcome, keywords=keywords)

    def _near(self, project: str, user_text: str, state: LearningState) -> list[str]:
        """Entries that are named, then those that are similar in meaning or words."""
        entries = self._entries.of(project)
        if not entries:
            return []
        text = user_text[:MAX_QUERY_CHARACTERS]
        named = self._find_references(project, text, entries, state.settings.min_similarity)
        query = RecallQuery(
            project=project,
            text=text,
            preset=Preset.CODEX,
            filter=Filter(kinds=frozenset({MemoryKind.ENTRY})),
            top_k=NEAR_ENTRIES,
            min_similarity=NEAR_SIMILARITY,
            intent_mode=IntentMode.LEXICAL,
            full=False,
        )
        similar = (hit.memory.id for hit in self._recall(query).hits)
        return list(dict.fromkeys((*(one.memory_id for one in named), *similar)))

    def _profiles(self, project: str, memory_ids: Sequence[str]) -> dict[str, Profile]:
        return self._store.read_learning(
            project, lambda learning: {one: learning.profile(one) or _NO_PROFILE for one in memory_ids}
        )

    def _learn(self, project: str, user_text: str, memory_ids: Sequence[str]) -> tuple[KeywordUpdate, ...]:
        if self._learner is None:
            raise LearnerFailed(_NOBODY)
        profiles = self._profiles(project, memory_ids)
        found = self._store.get(project, memory_ids, 0, full=True)
        entries = [one for one in found if one is not None and one.kind is MemoryKind.ENTRY]
        texts = tuple(_entry_text(one, profiles[one.id]) for one in entries)
        if not texts:
            return ()
        question = KeywordQuestion(project=project, user_text=user_text, entries=texts)
        updates = checked(self._learner.keywords(question), texts)
        return self._keep(project, updates, entries, self._learner) if updates else ()

    def _keep(
        self, project: str, updates: tuple[KeywordUpdate, ...], read: Sequence[Memory], learner: KeywordLearner
    ) -> tuple[KeywordUpdate, ...]:
        hash_of = {memory.id: memory.content_hash for memory in read}

        def apply(work: UnitOfWork) -> LearntReply:
            state = work.learning.state()
            there = tuple(one for one in updates if _says(work.get(one.memory_id), hash_of[one.memory_id]))
            # Switched off, or its entries removed or rewritten, while the learner was reading: nothing has happened.
            if not state.enabled or not there:
                return LearntReply(updates=())
            learnt = KeywordsLearned(
                learner=learner.kind,
                turn=state.turns,
                updates=tuple(one for one in there if one.keywords),
                analyzed_ids=tuple(one.memory_id for one in there),
            )
            record(work.learning, learnt)
            return LearntReply(updates=there)

        request = WriteRequest(request_id="", fingerprint=b"", reply_type=LearntReply, apply=apply)
        return self._store.write(project, request).result().reply.updates


def _says(memory: Memory | None, content_hash: bytes) -> bool:
    """Whether it is an entry that still says what was read."""
    return memory is not None and memory.kind is MemoryKind.ENTRY and memory.content_hash == content_hash


def _entry_text(memory: Memory, profile: Profile) -> EntryText:
    content = "" if memory.payload is None else memory.payload.content
    return EntryText(memory_id=memory.id, title=memory.index.title, text=content, keywords=profile.keywords)
