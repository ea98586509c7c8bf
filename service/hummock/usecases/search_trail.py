"""What each session has searched for lately. It is kept in memory only, and forgotten when nobody goes on with it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

from hummock.text.follow_ups import leans_back

TTL_S = 1800.0
"""Half an hour after its last search a conversation is over."""

MAX_SESSIONS = 4096
MAX_STEPS = 4
"""Searches that a session keeps, and that one may lean on."""

MAX_CHARACTERS = 300
"""Of each question: what it is about stands at its beginning."""

MAX_IDS = 50
"""Results of each search that count as seen: the best."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One search: what was asked, cut, and the best of what was shown."""

    text: str
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """What a search follows: the questions that it has to be read with, newest first, and what was shown already."""

    texts: tuple[str, ...] = ()
    seen: frozenset[str] = frozenset()


@dataclass(slots=True)
class _Trail:
    steps: tuple[Step, ...]
    expires_at: float


class SearchTrails:
    """The last searches of many sessions. Safe to call from several threads."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        """Keeps none yet; `monotonic` gives seconds from some start."""
        self._monotonic = monotonic
        self._lock = Lock()
        self._trails: OrderedDict[tuple[str, str], _Trail] = OrderedDict()

    def before(self, project: str, session_id: str, text: str) -> Before:
        """What this question follows in its session.

        One that was asked already follows what it followed then: a repeat has the same answer.
        """
        steps = self._steps(project, session_id)
        asked = _cut(text)
        earlier = [step for step in steps if step.text != asked]
        seen = frozenset(memory_id for step in earlier for memory_id in step.ids)
        return Before(texts=_leant_on(earlier) if leans_back(text) else (), seen=seen)

    def add(self, project: str, session_id: str, text: str, ids: tuple[str, ...]) -> None:
        """Notes a search that was answered; it takes the place of an equal one."""
        step = Step(text=_cut(text), ids=ids[:MAX_IDS])
        with self._lock:
            now = self._monotonic()
            kept = [one for one in self._live((project, session_id), now) if one.text != step.text]
            self._trails[project, session_id] = _Trail((*kept, step)[-MAX_STEPS:], now + TTL_S)
            self._trails.move_to_end((project, session_id))
            self._forget(now)

    def _steps(self, project: str, session_id: str) -> tuple[Step, ...]:
        with self._lock:
            return self._live((project, session_id), self._monotonic())

    def _live(self, key: tuple[str, str], now: float) -> tuple[Step, ...]:
        trail = self._trails.get(key)
        return trail.steps if trail is not None and now < trail.expires_at else ()

    def _forget(self, now: float) -> None:
        """Those at the front have been idle for longest."""
        while self._trails:
            oldest = next(iter(self._trails.values()))
            if now < oldest.expires_at and len(self._trails) <= MAX_SESSIONS:
                return
            self._trails.popitem(last=False)


def _leant_on(earlier: list[Step]) -> tuple[str, ...]:
    """Back to the last question that stood on its own."""
    texts: list[str] = []
    for step in reversed(earlier):
        texts.append(step.text)
        if not leans_back(step.text):
            break
    return tuple(texts)


def _cut(text: str) -> str:
    return text.strip()[:MAX_CHARACTERS]
