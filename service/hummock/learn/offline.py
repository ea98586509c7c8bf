"""Learns keywords from what was observed, without a language model.

What an entry or a text tells it to do has no effect: it counts terms, and a term can become a keyword of those entries
alone whose turns it was said in.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Sequence
from threading import Lock
from typing import Final

from hummock.core.learning_events import (
    FeedbackGiven,
    Forgotten,
    Judgement,
    KeywordUpdate,
    Learner,
    LoggedEvent,
    TurnObserved,
)
from hummock.learn.observed import Observed
from hummock.ports.learner import KeywordQuestion
from hummock.ports.store import Store

WINDOW_EVENTS: Final = 6000
"""Of a project's log that are counted, the newest ones; a turn is two or three."""
MAX_PROJECTS: Final = 64
"""Whose counts are kept in memory; those of others are read from their logs again."""
MOST_DUE: Final = 20

_PAGE: Final = 500


class LearnOffline:
    """`ports.KeywordLearner` by counting. What it knows is a function of the newest events of a project's log."""

    kind = Learner.OFFLINE

    def __init__(self, store: Store) -> None:
        """Args are where the logs are."""
        self._store = store
        self._projects: OrderedDict[str, _Project] = OrderedDict()
        self._lock = Lock()

    def due(self, project: str) -> tuple[str, ...]:
        """The entries of the turns since it was asked last, the newest first, then some of the others in turn.

        As more is said of other things, what was said of an entry long ago may become evidence.
        """
        with self._lock:
            return self._current(project).due()

    def keywords(self, question: KeywordQuestion) -> tuple[KeywordUpdate, ...]:
        """What is new of each entry.

        After a turn, entries of which nothing is new have not been read: it costs nothing to look at them again.
        """
        with self._lock:
            observed = self._current(question.project).observed
            found = [
                KeywordUpdate(memory_id=entry.memory_id, keywords=observed.keywords(entry))
                for entry in question.entries
            ]
        return tuple(update for update in found if update.keywords or not question.user_text)

    def _current(self, project: str) -> _Project:
        """The project's counts, with all that its log holds by now."""
        known = self._projects.pop(project, None) or _Project()
        while events := self._store.read_learning(
            project, lambda learning: learning.events(known.after(learning.state().events), _PAGE)
        ):
            known.follow(events)
        self._projects[project] = known
        if len(self._projects) > MAX_PROJECTS:
            self._projects.popitem(last=False)
        return known


class _Project:
    """What is known of a project's log."""

    def __init__(self) -> None:
        self.observed = Observed()
        self._last = 0
        self._newest: OrderedDict[str, None] = OrderedDict()
        self._others: deque[str] = deque()

    def after(self, events: int) -> int:
        """Behind which event to read on, in a log of so many."""
        return max(self._last, events - WINDOW_EVENTS)

    def follow(self, events: Sequence[LoggedEvent]) -> None:
        """Counts the next events."""
        for logged in events:
            match logged.event:
                case TurnObserved(user_text=text, used_ids=used_ids):
                    self._count(logged.number, text, used_ids)
                case FeedbackGiven(query_text=text, verdicts=verdicts):
                    useful = tuple(verdict.memory_id for verdict in verdicts if verdict.judgement is Judgement.HELPFUL)
                    self._count(logged.number, text, useful)
                case Forgotten(memory_ids=memory_ids):
                    self.observed.forget(memory_ids)
        self._last = events[-1].number
        self.observed.drop_before(self._last - WINDOW_EVENTS + 1)

    def due(self) -> tuple[str, ...]:
        """Entries that were used since it was asked last, the newest first, then others; at most MOST_DUE."""
        newest = tuple(reversed(self._newest))[:MOST_DUE]
        self._newest.clear()
        room = MOST_DUE - len(newest)
        if not self._others:
            self._others.extend(self.observed.memory_ids)
        others = [self._others.popleft() for _ in range(min(room, len(self._others)))]
        return tuple(dict.fromkeys((*newest, *others)))

    def _count(self, number: int, text: str, used_ids: tuple[str, ...]) -> None:
        self.observed.add(number, text, used_ids)
        for memory_id in used_ids:
            self._newest[memory_id] = None
            self._newest.move_to_end(memory_id)
