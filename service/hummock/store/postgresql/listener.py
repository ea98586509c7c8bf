"""Listener for the write notifications of all services that have a database open."""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Event, Lock, Thread

import psycopg

from hummock.core.errors import HummockError
from hummock.store.postgresql.database import Database

_AT_ONCE_S = 0.5
"""Seconds for which notifications are passed on before the thread checks the connection, and whether it is to end."""

_AGAIN_S = 0.5
"""Seconds between two attempts to connect."""

_log = logging.getLogger(__name__)


class Listener:
    """A thread that notifies followers of every write by any service."""

    def __init__(self, database: Database, seqs: Callable[[], dict[str, int]]) -> None:
        """Start the thread. Writes missed without a connection are reported as one per project, at its `seqs`."""
        self._database = database
        self._seqs = seqs
        self._followers: tuple[Callable[[str, int], None], ...] = ()
        self._interceptor = Lock()
        self._ending = Event()
        self._is_deaf = False
        self._thread = Thread(target=self._run, name="hummock-listener", daemon=True)
        self._thread.start()

    def follow(self, follower: Callable[[str, int], None]) -> None:
        """Call `follower` after every write from now on, with the project and its seq."""
        with self._interceptor:
            self._followers = (*self._followers, follower)

    def close(self) -> None:
        """End the thread."""
        self._ending.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ending.is_set():
            try:
                self._listen()
            except (HummockError, psycopg.Error) as error:
                if not self._is_deaf:
                    _log.warning("writes of other services are not heard of for the moment: %s", error)
                self._is_deaf = True
            self._ending.wait(_AGAIN_S)

    def _listen(self) -> None:
        with self._database.listening() as connection:
            if self._is_deaf:
                self._is_deaf = False
                _log.warning("writes of other services are heard of again")
                for project, seq in self._seqs().items():
                    self._tell(project, seq)
            while not self._ending.is_set():
                for notice in connection.notifies(timeout=_AT_ONCE_S):
                    number, _, project = notice.payload.partition(" ")
                    self._tell(project, int(number))
                # Detects a frozen server, which would otherwise stay silent forever.
                connection.execute(b"SELECT 1")
                self._database.look()

    def _tell(self, project: str, seq: int) -> None:
        for follower in self._followers:
            follower(project, seq)
