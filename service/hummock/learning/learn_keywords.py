"""Learns keywords of entries with one learner: chooses the entries and stores its findings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from hummock.core.errors import ProjectNotFound
from hummock.core.learning import (
    LEARNER_RULE,
    Entry,
    KeywordsLearned,
    KeywordUpdate,
    Learner,
    LearningState,
    LoggedEvent,
    Profile,
)
from hummock.core.learning_requests import EntryLearnt, EntryOutcome
from hummock.core.memory import Memory, MemoryKind
from hummock.core.recall import MAX_QUERY_CHARACTERS, IntentMode, Preset, Recalled, RecallQuery
from hummock.learning.entry_keywords import checked, select
from hummock.learning.log import record
from hummock.learning.references import ENTRIES, NO_PROFILE, Entries, ProjectReferences
from hummock.ports.models import EntryText, KeywordLearner, KeywordQuestion, LearnerFailed
from hummock.ports.store import Snapshot, Store
from hummock.ports.writes import Claim, UnitOfWork, WriteRequest

NEAR_ENTRIES = 20
"""Most entries near a turn's words from which the least learnt are chosen."""
NEAR_SIMILARITY = 0.15
"""Calibrated similarity: above unrelated texts and far below a recall's minimum, since the link to be learnt is not in
the words yet."""

_NOBODY = "there is no learner"
_EVENTS_AT_ONCE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class LearntReply:
    """New keywords by entry, for entries that were read and still exist."""

    updates: tuple[KeywordUpdate, ...]


class LearnKeywords:
    """Learns with one learner. It takes as long as the learner does."""

    def __init__(
        self,
        store: Store,
        entries: Entries,
        recall: Callable[[RecallQuery, Snapshot], Recalled],
        find_references: ProjectReferences,
        learner: KeywordLearner | None,
    ) -> None:
        """Build the learner's use case; `learner` is None if there is none."""
        self._store = store
        self._entries = entries
        self._recall = recall
        self._find_references = find_references
        self._learner = learner

    @property
    def learner(self) -> Learner | None:
        """The kind of the learner; None if there is none."""
        return None if self._learner is None else self._learner.kind

    def state(self, project: str) -> LearningState:
        """The learning state of the whole project."""
        return self._store.read_learning(project, lambda learning: learning.state())

    def all_ids(self, project: str) -> tuple[str, ...]:
        """All entries, in the order of their writes."""
        return tuple(entry.memory_id for entry in self._entries_of(project))

    def unlearned_ids(self, project: str) -> tuple[str, ...]:
        """The entries without a keyword, in the order of their writes."""
        return tuple(entry.memory_id for entry in self._entries_of(project) if not entry.keywords)

    def _entries_of(self, project: str) -> tuple[Entry, ...]:
        return self._store.read(project, partial(self._entries.of, project))

    def from_turn(self, project: str, user_text: str, claim: Claim | None = None) -> tuple[KeywordUpdate, ...]:
        """Learn about the entries that the learner chooses, or those that the user's text of a turn may be about.

        `claim` guards the write, if several services could do it. Returns an update with new words for each entry that
        was read.

        Raises: LearnerFailed: it read none, and nothing was counted. ClaimLost: nothing was counted.
        """
        state = self.state(project)
        if not state.enabled or not user_text.strip():
            return ()
        due = None if self._learner is None else self._learner.due(project)
        if due is not None:
            return self._learn(project, user_text, due, claim)
        named, near = self._near(project, user_text, state)
        profiles = self._profiles(project, (*named, *near))
        return self._learn(project, user_text, select(named, near, profiles, state.turns, state.settings), claim)

    def of_entry(self, project: str, memory_id: str, claim: Claim | None = None) -> EntryLearnt:
        """Learn about one entry from its own text; `claim` as for `from_turn`. Raises: ClaimLost."""
        try:
            updates = self._learn(project, "", (memory_id,), claim)
        except LearnerFailed as failed:
            return EntryLearnt(memory_id=memory_id, outcome=EntryOutcome.FAILED, reason=str(failed))
        return _learnt(updates[0]) if updates else EntryLearnt(memory_id=memory_id, outcome=EntryOutcome.GONE)

    def learnt_since(self, project: str, events: int) -> dict[str, EntryLearnt]:
        """Keywords learnt of entries, by their ids, since the project's log had so many events."""
        learnt: dict[str, EntryLearnt] = {}
        while logged := self._events(project, events):
            for event in (one.event for one in logged if isinstance(one.event, KeywordsLearned)):
                learnt |= {one: _learnt(KeywordUpdate(memory_id=one, keywords=())) for one in event.analyzed_ids}
                learnt |= {update.memory_id: _learnt(update) for update in event.updates}
            events = logged[-1].number
        return learnt

    def _events(self, project: str, after: int) -> list[LoggedEvent]:
        return self._store.read_learning(project, lambda learning: learning.events(after, _EVENTS_AT_ONCE))

    def _near(self, project: str, user_text: str, state: LearningState) -> tuple[list[str], list[str]]:
        """Return entries that the text names, and those similar in meaning or words."""
        entries = self._entries_of(project)
        if not entries:
            return [], []
        text = user_text[:MAX_QUERY_CHARACTERS]
        named = self._find_references(project, text, entries, state.settings.min_similarity)
        query = RecallQuery(
            project=project,
            text=text,
            preset=Preset.CODEX,
            filter=ENTRIES,
            top_k=NEAR_ENTRIES,
            min_similarity=NEAR_SIMILARITY,
            intent_mode=IntentMode.LEXICAL,
            full=False,
        )
        near = self._store.read(project, partial(self._recall, query))
        return [one.memory_id for one in named], [hit.memory.id for hit in near.hits]

    def _profiles(self, project: str, memory_ids: Sequence[str]) -> dict[str, Profile]:
        return self._store.read_learning(
            project, lambda learning: {one: learning.profile(one) or NO_PROFILE for one in memory_ids}
        )

    def _learn(
        self, project: str, user_text: str, memory_ids: Sequence[str], claim: Claim | None
    ) -> tuple[KeywordUpdate, ...]:
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
        return self._write(project, updates, entries, self._learner, claim) if updates else ()

    def _write(
        self,
        project: str,
        updates: tuple[KeywordUpdate, ...],
        read: Sequence[Memory],
        learner: KeywordLearner,
        claim: Claim | None,
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
                updates=tuple(one for one in there if one.has_words),
                analyzed_ids=tuple(one.memory_id for one in there),
                rule=LEARNER_RULE,
            )
            record(work.learning, learnt)
            return LearntReply(updates=there)

        request = WriteRequest(
            request_id="", fingerprint=b"", reply_type=LearntReply, apply=apply, creates=False, claim=claim
        )
        try:
            return self._store.write(project, request).result().reply.updates
        except ProjectNotFound:  # it was deleted while the learner was reading
            return ()


def _learnt(update: KeywordUpdate) -> EntryLearnt:
    outcome = EntryOutcome.LEARNT if update.has_words else EntryOutcome.NOTHING_NEW
    return EntryLearnt(memory_id=update.memory_id, outcome=outcome, keywords=update.keywords, hints=update.hints)


def _says(memory: Memory | None, content_hash: bytes) -> bool:
    """Whether it is an entry whose text has not changed since it was read."""
    return memory is not None and memory.kind is MemoryKind.ENTRY and memory.content_hash == content_hash


def _entry_text(memory: Memory, profile: Profile) -> EntryText:
    text, title = "" if memory.payload is None else memory.payload.content, memory.index.title
    return EntryText(memory_id=memory.id, title=title, text=text, keywords=profile.keywords, hints=profile.hints)
