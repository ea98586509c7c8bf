"""What was found to be damaged."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from threading import Lock

from hummock.store.errors import DatabaseDamaged

_log = logging.getLogger(__name__)


class Damage:
    """What was found to be damaged since the store was opened. Safe to use from several threads.

    Documents that are damaged are left out of views; a project with any is read thoroughly when it is loaded.
    Of other entries it is noted which are left out.

    Attributes:
        of_database: What is wrong with the database itself, once a read has met it.
    """

    def __init__(self) -> None:
        self._docs: dict[int, set[int]] = {}
        self._entries: set[tuple[str, bytes]] = set()
        self._lock = Lock()
        self.of_database: DatabaseDamaged | None = None

    def note(self, number: int, doc: int) -> bool:
        """Notes a document of a project; False where it was known."""
        with self._lock:
            docs = self._docs.setdefault(number, set())
            is_new = doc not in docs
            docs.add(doc)
        return is_new

    def note_entry(self, what: str, key: bytes) -> None:
        """Notes an entry that is no document; `what` it is, for people."""
        with self._lock:
            is_new = (what, key) not in self._entries
            self._entries.add((what, key))
        if is_new:
            _log.error("%s is damaged on the disk and left out", what)

    def settle(self, number: int, docs: Iterable[int]) -> None:
        """A project was read thoroughly: these are all."""
        with self._lock:
            self._docs[number] = set(docs)

    def of(self, number: int) -> frozenset[int]:
        """Those of a project."""
        with self._lock:
            return frozenset(self._docs.get(number, ()))

    @property
    def is_any(self) -> bool:
        """Whether anything was found at all."""
        return any(self._docs.values())

    @property
    def count(self) -> int:
        """Number of damaged memories and other entries found, in all projects."""
        with self._lock:
            return sum(map(len, self._docs.values())) + len(self._entries)
