"""Access to the projects of an engine, each for the duration of one transaction or one unsynchronised read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from hummock.core.errors import Unavailable
from hummock.store.errors import ProjectGone
from hummock.store.tables.engine import Engine, Transaction
from hummock.store.tables.lookups import project_number, project_record
from hummock.store.tables.reads import TableProject
from hummock.store.tables.recent import DecodedMemories, RecentReads
from hummock.store.tables.term_dictionary import TermNumbers

_LOOKS = 16  # Attempts to read a project that is removed concurrently each time.

Found = TypeVar("Found")


class TableProjects:
    """All projects of an engine. Thread-safe."""

    def __init__(self, engine: Engine, now: Callable[[], float], recent: RecentReads | None = None) -> None:
        """Memories expired at `now()` are left out. `recent` is for engines with reads slower than a cache."""
        self._engine = engine
        self.now = now
        self.term_numbers = TermNumbers(engine.tables)
        self._recent = recent
        self._decoded = DecodedMemories()

    def number_of(self, project: str) -> int | None:
        """A project's number; None if it does not exist."""
        with self._engine.reading(project) as txn:
            return project_number(txn, self._engine, project)

    def look(self, project: str, look: Callable[[TableProject], Found]) -> Found | None:
        """Result of `look`, whose reads may be of different moments; None if the project does not exist."""
        for _ in range(_LOOKS):
            try:
                with self._engine.looking(project) as txn:
                    number = project_number(txn, self._engine, project)
                    return None if number is None else look(self._project(txn, number))
            except ProjectGone:  # a new project may have its name
                continue
        raise Unavailable(f"project {project} is removed again each time that it is looked at; try again")

    def seq(self, number: int) -> int:
        """Sequence number of a project's last write. Raises: ProjectGone."""
        with self._engine.reading(number) as txn:
            return project_record(txn, self._engine, number).seq

    @contextmanager
    def reading(self, number: int, seen_seq: int = 0) -> Iterator[TableProject]:
        """Open a project as it is now, shortly. Cached reads are valid at `seen_seq`; 0 is the read's own."""
        with self._engine.answering(number) as txn:
            yield self._project(txn, number, self._recent, seen_seq)

    @contextmanager
    def looking(self, number: int, seen_seq: int = 0) -> Iterator[TableProject]:
        """Open a project for reads that may be of different moments; with `seen_seq` 0 the cache is not used."""
        with self._engine.looking(number) as txn:
            yield self._project(txn, number, self._recent if seen_seq else None, seen_seq)

    @contextmanager
    def reading_by_name(self, project: str) -> Iterator[TableProject | None]:
        """Open a project by its name, at one moment; None if it does not exist."""
        with self._engine.answering(project) as txn:
            number = project_number(txn, self._engine, project)
            yield None if number is None else self._project(txn, number, self._recent)

    def last_commit(self) -> int:
        """The number of the newest transaction of any process."""
        return self._engine.last_commit()

    def _project(
        self, txn: Transaction, number: int, recent: RecentReads | None = None, seen_seq: int = 0
    ) -> TableProject:
        return TableProject(self._engine, txn, number, self.term_numbers, self.now, self._decoded, recent, seen_seq)
