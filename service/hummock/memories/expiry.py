"""Removes expired memories: reads do not find them any more, and watches are notified."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Event, Thread

from hummock.core.claims import ALL_PROJECTS, Claim, ClaimLost, Work
from hummock.core.errors import ProjectNotFound, places_of
from hummock.ports.store import Store
from hummock.ports.writes import UnitOfWork, WriteRequest

_LOOK_S = 1.0
"""Between two looks: so late, at most, is a removal told."""

_AT_ONCE = 256
"""Memories of one look, and at most of one write: other writes wait for some ten milliseconds."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpiredReply:
    """Reply kept for a removal that is never repeated."""


class Expiry:
    """Removes what has expired, on a thread of its own. Reads do not wait for it: to them it is gone before.

    Of several services that have one store, one does it for as long as it lives.
    """

    def __init__(self, store: Store) -> None:
        """Nothing runs before `start`."""
        self._store = store
        self._claim: Claim | None = None
        self._closing = Event()
        self._thread: Thread | None = None

    def start(self) -> None:
        """Begins, also with what expired while no process ran."""
        self._thread = Thread(target=self._run, name="expiry", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends behind the write that runs."""
        self._closing.set()
        if self._thread is not None:
            self._thread.join()

    def remove_some(self) -> bool:
        """Removes some of what has expired, one write a project, on the caller's thread.

        False where nothing has, and where another service does it.
        """
        if self._claim is None or not self._store.claims.holds(self._claim):
            self._claim = self._store.claims.take(Work.EXPIRE, ALL_PROJECTS)
        if self._claim is None:
            return False
        due: dict[str, list[str]] = defaultdict(list)
        for project, memory_id in self._store.expired(_AT_ONCE):
            due[project].append(memory_id)
        for project, memory_ids in due.items():
            self._remove(project, memory_ids, self._claim)
        return bool(due)

    def _remove(self, project: str, memory_ids: Sequence[str], claim: Claim) -> None:
        def apply(work: UnitOfWork) -> ExpiredReply:
            for memory_id in memory_ids:
                # One that was written again meanwhile is another one.
                if work.get(memory_id) is None:
                    work.delete(memory_id)
            return ExpiredReply()

        request = WriteRequest(
            request_id="", fingerprint=b"", reply_type=ExpiredReply, apply=apply, creates=False, claim=claim
        )
        try:
            self._store.write(project, request).result()
        except ProjectNotFound:  # it was deleted meanwhile
            return

    def _run(self) -> None:
        has_failed = False
        while not self._closing.is_set():
            try:
                has_more = self.remove_some()
                has_failed = False
            except ClaimLost:  # the next look finds out whose it is
                self._claim, has_more = None, False
            except Exception as error:  # whatever it is: the next look tries again
                if not has_failed and not self._closing.is_set():
                    _log.warning("what has expired is not removed: %s at %s", type(error).__name__, places_of(error))
                has_more, has_failed = False, True
            if not has_more:
                self._closing.wait(_LOOK_S)
