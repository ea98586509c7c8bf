"""Hears of the writes of all services that have a database open, and passes them on."""

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
"""Between two tries to connect."""

_log = logging.getLogger(__name__)


class Listener:
    """A thread that notifies followers of every write by any service."""

    def __init__(self, database: Database, seqs: Callable[[], dict[str, int]]) -> None:
        """Starts the thread.

        Args:
            database: Where writes are told of.
            seqs: The seq of every project: what was written while nobody listened is told of as one write.
        """
        self._database = database
        self._seqs = seqs
        self._followers: tuple[Callable[[str, int], None], ...] = ()
        self._interceptor = Lock()
        self._ending = Event()
        self._is_deaf = False
        self._thread = Thread(target=self._run, name="hummock-listener", daemon=True)
        self._thread.start()

    def follow(self, follower: Callable[[str, int], None]) -> None:
        """Tells of every write from now on: its project, and the project's seq after it."""
        with self._interceptor:
            self._followers = (*self._followers, follower)

    def close(self) -> None:
        """Ends the thread."""
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
                # A server that is frozen says nothing for ever; this ends with an error.
                connection.execute(b"SELECT 1")
                self._database.look()

    def _tell(self, project: str, seq: int) -> None:
        for follower in self._followers:
            follower(project, seq)
