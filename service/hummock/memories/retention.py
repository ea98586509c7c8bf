"""Removes expired memories, those beyond a project's limits of age and size, and idle sessions."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from threading import Event, Lock, Thread
from typing import Final

from hummock.core.errors import ProjectNotFound, SessionNotFound, places_of
from hummock.core.memory import Filter, Memory, Origin, WriteCommand
from hummock.core.session import DeleteSession
from hummock.core.settings import RetentionSettings
from hummock.memories.forget import Forget, ForgetCommand
from hummock.memories.garden import DELETED_AT_ONCE
from hummock.memories.sessions import NoReply, Sessions, written
from hummock.ports.models import Clock
from hummock.ports.store import Store
from hummock.ports.writes import ALL_PROJECTS, Claim, ClaimLost, UnitOfWork, Work

_LOOK_S = 10.0
"""Seconds between two checks of written projects: the longest time that a project exceeds its limits."""

_AGE_LOOK_S = 3600.0
"""Seconds between two checks of all projects for memories that have become too old."""

_PAGE = 256
_DAY_S = 86_400.0

_KEPT_BY_THE_INDEXER: Final = Filter(origins=frozenset(set(Origin) - {Origin.INDEXER}))
"""All but indexed memories, which the next run of the indexer would restore."""

_log = logging.getLogger(__name__)


class _Upkeep(ABC):
    """Removes memories on a thread of its own.

    Of several services with one store, one does this for as long as it lives.
    """

    def __init__(self, store: Store, name: str, look_s: float, failed: str) -> None:
        """Nothing runs before `start`; `failed` is logged where it fails, once until it works again."""
        self._store = store
        self._look_s = look_s
        self._failed = failed
        self._claim: Claim | None = None
        self._closing = Event()
        self._thread = Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread; it also removes what became due while no process ran."""
        self._thread.start()

    def close(self) -> None:
        """Stop after the running write."""
        self._closing.set()
        if self._thread.ident is not None:
            self._thread.join()

    @abstractmethod
    def _remove_due(self) -> bool:
        """Remove some of what is due. Returns True if there may be more right now."""

    def _lacks_claim(self) -> bool:
        return self._claim is None or not self._store.claims.holds(self._claim)

    def _run(self) -> None:
        has_failed = False
        while not self._closing.is_set():
            has_more = False
            try:
                has_more = self._remove_due()
                has_failed = False
            except ClaimLost:  # the next look finds out whose it is
                self._claim = None
            except Exception as error:  # whatever it is: the next look tries again
                if not has_failed and not self._closing.is_set():
                    _log.warning("%s: %s at %s", self._failed, type(error).__name__, places_of(error))
                has_failed = True
            if not has_more:
                self._closing.wait(self._look_s)


class Retention(_Upkeep):
    """Applies the retention settings of projects.

    The oldest writes go first. Each pass over a project forgets until it is within its limits. A service that takes
    over checks all projects.
    """

    def __init__(self, store: Store, forget: Forget, sessions: Sessions, clock: Clock) -> None:
        """Nothing runs before `start`."""
        super().__init__(store, "retention", _LOOK_S, "what is kept no longer is not removed")
        self._forget = forget
        self._sessions = sessions
        self._clock = clock
        self._lock = Lock()
        self._written: set[str] = set()
        self._next_age_look_s = clock.monotonic()

    def start(self) -> None:
        """Begins, with a look at every project."""
        self._store.follow(self.note)
        super().start()

    def look(self) -> None:
        """Apply the limits to every project written since the last call, and once an hour to each one.

        A project that fails is checked again the next time. Raises: the last failure, once all were checked; ClaimLost,
        after which none was.
        """
        now_s = self._clock.monotonic()
        if self._lacks_claim():
            self._claim = self._store.claims.take(Work.RETAIN, ALL_PROJECTS)
            self._next_age_look_s = now_s
        if self._claim is not None and now_s >= self._next_age_look_s:
            self._note_all()
            self._next_age_look_s = now_s + _AGE_LOOK_S
        with self._lock:
            written, self._written = self._written, set()
        if self._claim is None:
            return
        failure: Exception | None = None
        for project in sorted(written):
            try:
                self._apply(project, self._store.settings(project).retention, self._claim)
            except ProjectNotFound:  # it was deleted meanwhile
                continue
            except ClaimLost:
                self._claim = None
                raise
            except Exception as error:
                failure = error
                self.note(project, 0)
        if failure is not None:
            raise failure

    def note(self, project: str, seq: int) -> None:
        """Mark a project for the next check; a follower of the store."""
        del seq
        with self._lock:
            self._written.add(project)

    def _note_all(self) -> None:
        page = self._store.projects("", _PAGE)
        while page:
            for project in page:
                self.note(project.name, project.seq)
            page = self._store.projects(page[-1].name, _PAGE)

    def _apply(self, project: str, settings: RetentionSettings, claim: Claim) -> None:
        if settings.max_age_days is not None:
            self._apply_age(project, self._store.settled_now() - settings.max_age_days * _DAY_S, claim)
        if settings.max_memories is not None:
            self._apply_count(project, settings.max_memories, claim)
        if settings.max_bytes is not None:
            self._apply_bytes(project, settings.max_bytes, claim)

    def _apply_age(self, project: str, before: float, claim: Claim) -> None:
        """Forget memories and sessions from before a time, in Unix seconds."""
        where = Filter(origins=_KEPT_BY_THE_INDEXER.origins, created_before=before)
        while not self._closing.is_set():
            ids, _ = self._store.read(project, lambda found: found.first_passing(where, DELETED_AT_ONCE))
            if not self._forgot(project, ids, claim):
                break
        for session in self._store.sessions.all(project):
            if session.update_time < before and not self._closing.is_set():
                self._remove_session(project, session.id, claim)

    def _apply_count(self, project: str, most: int, claim: Claim) -> None:
        while not self._closing.is_set():
            ids, count = self._store.read(
                project, lambda found: found.first_passing(_KEPT_BY_THE_INDEXER, DELETED_AT_ONCE)
            )
            if not self._forgot(project, ids[: max(0, count - most)], claim):
                return

    def _apply_bytes(self, project: str, most: int, claim: Claim) -> None:
        ids = tuple(self._beyond(project, most))
        for start in range(0, len(ids), DELETED_AT_ONCE):
            if self._closing.is_set():
                return
            self._forgot(project, ids[start : start + DELETED_AT_ONCE], claim)

    def _beyond(self, project: str, most: int) -> Iterator[str]:
        """Yield the memories beyond the size limit, the newest of them first."""
        total, after = 0, 0
        while True:
            page = self._store.page(project, _KEPT_BY_THE_INDEXER, after, _PAGE, full=True, newest_first=True)
            for memory in page.memories:
                total += bytes_of(memory)
                if total > most:
                    yield memory.id
            if page.next_after is None or self._closing.is_set():
                return
            after = page.next_after

    def _forgot(self, project: str, ids: tuple[str, ...], claim: Claim) -> bool:
        if not ids:
            return False
        receipt, _ = self._forget(ForgetCommand(project=project, ids=ids, where=_KEPT_BY_THE_INDEXER, claim=claim))
        return receipt.memory_count > 0

    def _remove_session(self, project: str, session_id: str, claim: Claim) -> None:
        with suppress(SessionNotFound):  # somebody else has deleted it
            self._sessions.delete(DeleteSession(project=project, session_id=session_id), claim)

    def _remove_due(self) -> bool:
        self.look()
        return False


def bytes_of(memory: Memory) -> int:
    """Bytes of a memory that count against `max_bytes`: its text and its raw text, in UTF-8."""
    payload = memory.payload
    return 0 if payload is None else len(payload.content.encode()) + len(payload.raw.encode())


_EXPIRY_LOOK_S = 1.0
"""Seconds between two checks: the longest delay of a removal's event."""

_AT_ONCE = 256
"""Memories of one look, and at most of one write: other writes wait for some ten milliseconds."""


class Expiry(_Upkeep):
    """Removes expired memories. Reads hide them from the moment they expire."""

    def __init__(self, store: Store) -> None:
        """Nothing runs before `start`."""
        super().__init__(store, "expiry", _EXPIRY_LOOK_S, "what has expired is not removed")

    def remove_some(self) -> bool:
        """Remove some expired memories, one write per project, on the caller's thread.

        Returns False if none has expired or another service does it.
        """
        if self._lacks_claim():
            self._claim = self._store.claims.take(Work.EXPIRE, ALL_PROJECTS)
        if self._claim is None:
            return False
        due: dict[str, list[str]] = defaultdict(list)
        for project, memory_id in self._store.expired(_AT_ONCE):
            due[project].append(memory_id)
        for project, memory_ids in due.items():
            self._remove(project, memory_ids, self._claim)
        return bool(due)

    def _remove_due(self) -> bool:
        return self.remove_some()

    def _remove(self, project: str, memory_ids: Sequence[str], claim: Claim) -> None:
        def apply(work: UnitOfWork) -> NoReply:
            for memory_id in memory_ids:
                # One that was written again meanwhile is another one.
                if work.get(memory_id) is None:
                    work.delete(memory_id)
            return NoReply()

        with suppress(ProjectNotFound):  # it was deleted meanwhile
            written(self._store, WriteCommand(project=project), NoReply, apply, claim=claim)
