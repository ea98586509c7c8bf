"""Learning beside the calls: nobody waits for it, and whatever the learner does, nobody notices."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Condition, Thread

from hummock.core.errors import ProjectNotFound, places_of
from hummock.core.learning import LEARNER_RULE, KeywordsLearned, KeywordUpdate, Learner, LearningState, Profile
from hummock.core.learning_requests import EntryLearnt, EntryOutcome, ScanEnd, ScanProgress, ScanScope
from hummock.core.memory import Filter, Memory, MemoryKind
from hummock.core.recall import MAX_QUERY_CHARACTERS, IntentMode, Preset, Recalled, RecallQuery
from hummock.learning.keywords import checked, select
from hummock.learning.log import record
from hummock.learning.references import NO_PROFILE, Entries
from hummock.ports.models import Clock, EntryText, KeywordLearner, KeywordQuestion, LearnerFailed
from hummock.ports.store import FindReferences, Store, UnitOfWork, WriteRequest

NEAR_ENTRIES = 20
"""That a turn's words are held against before the least learnt of them are chosen."""
NEAR_SIMILARITY = 0.15
"""Calibrated: above what unrelated texts have, and far below what a recall asks for. What is to be learnt is a link
that words do not show yet."""

MAX_WAITING_PROJECTS = 256
"""With a turn that waits to be learnt from; of more than these, the turn that has waited longest is dropped."""
FAILURES = 3
"""In a row, after which a scan ends."""

_NOBODY = "there is no learner"
_END_S = 5.0
_REASONS = {
    ScanEnd.DONE: "",
    ScanEnd.NO_LEARNER: "no learner is configured, so that nothing was read; set llm, and ask for all entries then",
    ScanEnd.OFF: "learning is off in this project",
    ScanEnd.FAILING: f"the learner failed {FAILURES} times in a row; ask again to go on with the entries that are left",
}
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class LearntReply:
    """What was learnt: keywords that are new, by entry, of those that were read and are still there."""

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
        """The learner is None when there is nobody."""
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
        (update,) = updates
        outcome = EntryOutcome.LEARNT if update.has_words else EntryOutcome.NOTHING_NEW
        return EntryLearnt(memory_id=memory_id, outcome=outcome, keywords=update.keywords, hints=update.hints)

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
            project, lambda learning: {one: learning.profile(one) or NO_PROFILE for one in memory_ids}
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
        return self._write(project, updates, entries, self._learner) if updates else ()

    def _write(
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
                updates=tuple(one for one in there if one.has_words),
                analyzed_ids=tuple(one.memory_id for one in there),
                rule=LEARNER_RULE,
            )
            record(work.learning, learnt)
            return LearntReply(updates=there)

        request = WriteRequest(request_id="", fingerprint=b"", reply_type=LearntReply, apply=apply, creates=False)
        try:
            return self._store.write(project, request).result().reply.updates
        except ProjectNotFound:  # it was deleted while the learner was reading
            return ()


def _says(memory: Memory | None, content_hash: bytes) -> bool:
    """Whether it is an entry that still says what was read."""
    return memory is not None and memory.kind is MemoryKind.ENTRY and memory.content_hash == content_hash


def _entry_text(memory: Memory, profile: Profile) -> EntryText:
    content = "" if memory.payload is None else memory.payload.content
    return EntryText(
        memory_id=memory.id,
        title=memory.index.title,
        text=content,
        keywords=profile.keywords,
        hints=profile.hints,
    )


class Scan:
    """A scan of a project's entries, as those who follow it see it. Its owner's lock guards it."""

    def __init__(self, lock: Condition) -> None:
        self._lock = lock
        self.waiting: OrderedDict[str, None] = OrderedDict()
        self.learnt: list[EntryLearnt] = []
        self.end: ScanEnd | None = None
        self.due_s = 0.0

    def since(self, read: int) -> ScanProgress:
        """How far it is; `read` entries of it are known."""
        with self._lock:
            return ScanProgress(
                total=len(self.learnt) + len(self.waiting),
                learnt=tuple(self.learnt[read:]),
                end=self.end,
                reason="" if self.end is None else _REASONS[self.end],
            )

    @property
    def is_failing(self) -> bool:
        """Whether the learner failed at each of the last few entries."""
        last = self.learnt[-FAILURES:]
        return len(last) == FAILURES and all(one.outcome is EntryOutcome.FAILED for one in last)


class BackgroundLearner:
    """Learns of one thing at a time, on one thread for all projects: turns first, scans between them.

    Of each project the newest turn waits; one that it replaces is dropped, for its words are the older ones. A scan
    reads an entry, lets the project's pause go by, and reads the next. Safe to call from several threads.
    """

    def __init__(self, learn: LearnKeywords, clock: Clock) -> None:
        """Nothing runs before `start`."""
        self._learn = learn
        self._clock = clock
        self._lock = Condition()
        self._turns: OrderedDict[str, str] = OrderedDict()
        self._scans: OrderedDict[str, Scan] = OrderedDict()
        self._followers: list[Callable[[str, int], None]] = []
        self._thread: Thread | None = None
        self._is_closed = False
        self._dropped = 0
        self._failure = ""

    @property
    def dropped(self) -> int:
        """Turns that were never learnt from, because newer ones came first."""
        return self._dropped

    @property
    def waiting(self) -> int:
        """Turns that are to be learnt from."""
        return len(self._turns)

    def start(self) -> None:
        """Begins to work."""
        self._thread = Thread(target=self._run, name="learner", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends; what the learner is reading is waited for a little, and then left."""
        with self._lock:
            self._is_closed = True
            self._lock.notify_all()
        if self._thread is not None:
            self._thread.join(_END_S)

    def follow(self, follower: Callable[[str, int], None]) -> None:
        """Tells of every step of a scan, as `ports.Store.follow` tells of writes."""
        self._followers.append(follower)

    def seen(self, project: str, user_text: str) -> None:
        """A turn is over; returns at once."""
        with self._lock:
            if self._is_closed or self._learn.learner is None:
                return
            self._dropped += project in self._turns
            self._turns[project] = user_text
            if len(self._turns) > MAX_WAITING_PROJECTS:
                self._turns.popitem(last=False)
                self._dropped += 1
            self._lock.notify_all()

    def forget(self, project: str) -> None:
        """A project was deleted: its turn is not learnt from, and its scan ends."""
        with self._lock:
            self._turns.pop(project, None)
            scan = self._scans.pop(project, None)
            if scan is not None:
                scan.waiting.clear()
                scan.end = ScanEnd.DONE
            self._lock.notify_all()

    def switched_on(self, project: str) -> bool:
        """Learning was switched on: a language model begins to read what has no keywords. False where there is none."""
        is_told = self._learn.learner is Learner.LLM
        if is_told:
            self.scan(project, ScanScope.UNLEARNED)
        return is_told

    def scan(self, project: str, scope: ScanScope, chosen: Sequence[str] = ()) -> Scan:
        """Begins to read entries, or joins the project's scan that runs, whose entries these are put behind."""
        end, memory_ids = self._begin(project, scope, chosen)
        with self._lock:
            scan = self._scans.get(project) or Scan(self._lock)
            if end is None:
                scan.waiting.update(dict.fromkeys(memory_ids))
                end = None if scan.waiting else ScanEnd.DONE
            if end is not None:
                scan.end = end
                self._scans.pop(project, None)
            elif not self._is_closed:
                self._scans[project] = scan
            self._lock.notify_all()
            return scan

    def step(self) -> bool:
        """Does what is due, if anything is: a turn, or an entry of the scan that is due first."""
        with self._lock:
            turn = self._turns.popitem(last=False) if self._turns else None
            due = None if turn else self._due_scan()
        if turn is not None:
            self._learn_from(*turn)
        elif due is not None:
            self._go_on(*due)
        return turn is not None or due is not None

    def _begin(self, project: str, scope: ScanScope, chosen: Sequence[str]) -> tuple[ScanEnd | None, tuple[str, ...]]:
        if self._learn.learner is None:
            return ScanEnd.NO_LEARNER, ()
        if not self._learn.state(project).enabled:
            return ScanEnd.OFF, ()
        match scope:
            case ScanScope.UNLEARNED:
                return None, self._learn.unlearned_ids(project)
            case ScanScope.ALL:
                return None, self._learn.all_ids(project)
            case ScanScope.CHOSEN:
                return None, tuple(chosen)

    def _run(self) -> None:
        while True:
            with self._lock:
                while not self._is_closed and (wait_s := self._wait_s()) != 0:
                    self._lock.wait(wait_s)
                if self._is_closed:
                    return
            self.step()

    def _wait_s(self) -> float | None:
        """Until something is due; None when nothing will be."""
        if self._turns:
            return 0.0
        due = [scan.due_s for scan in self._scans.values()]
        return max(0.0, min(due) - self._clock.monotonic()) if due else None

    def _due_scan(self) -> tuple[str, Scan] | None:
        now = self._clock.monotonic()
        ready = [(scan.due_s, project) for project, scan in self._scans.items() if scan.due_s <= now]
        if not ready:
            return None
        project = min(ready, key=lambda one: one[0])[1]
        return project, self._scans[project]

    def _learn_from(self, project: str, user_text: str) -> None:
        try:
            self._learn.from_turn(project, user_text)
            self._failure = ""
        except LearnerFailed as failed:
            # Once for a language model that is down, not for every turn.
            if str(failed) != self._failure:
                _log.warning("nothing was learnt from a turn: %s", failed)
            self._failure = str(failed)
        except Exception as error:
            # Whatever it is: the next turn is another matter.
            _log_unexpected("nothing was learnt from a turn", error)

    def _go_on(self, project: str, scan: Scan) -> None:
        """Reads the next entry of a scan."""
        memory_id = next(iter(scan.waiting))
        end, pause_s = None, 0.0
        try:
            state = self._learn.state(project)
            pause_s = state.settings.cold_start_pause_s
            learnt = self._learn.of_entry(project, memory_id) if state.enabled else None
            end = None if state.enabled else ScanEnd.OFF
        except Exception as error:
            _log_unexpected("an entry could not be learnt of", error)
            learnt = EntryLearnt(memory_id=memory_id, outcome=EntryOutcome.FAILED, reason=type(error).__name__)
        with self._lock:
            if learnt is not None:
                scan.waiting.pop(memory_id, None)
                scan.learnt.append(learnt)
            if end is None and scan.is_failing:
                end = ScanEnd.FAILING
            if end is None and not scan.waiting:
                end = ScanEnd.DONE
            scan.end = scan.end or end
            scan.due_s = self._clock.monotonic() + pause_s
            if scan.end is not None and self._scans.get(project) is scan:
                del self._scans[project]
        for follower in self._followers:
            follower(project, 0)


def _log_unexpected(event: str, error: Exception) -> None:
    """Without the error's message, which could hold what was said."""
    _log.error("%s: %s at %s", event, type(error).__qualname__, ", ".join(places_of(error)))
