"""The projects of an engine, each as long as one transaction, or one look, lasts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from hummock.core.errors import Unavailable
from hummock.store.tables.engine import Engine, Transaction
from hummock.store.tables.projects import project_number, project_record
from hummock.store.tables.reads import TableProject
from hummock.store.tables.recent import RecentReads
from hummock.store.tables.term_dictionary import TermNumbers
from hummock.store.views.stored import ProjectGone

_LOOKS = 16
"""Attempts to read a project that is removed each time before it is read."""

Found = TypeVar("Found")


class TableProjects:
    """The `StoredProjects` of an engine."""

    def __init__(self, engine: Engine, now: Callable[[], float], recent: RecentReads | None = None) -> None:
        """The projects of an engine.

        Args:
            engine: The open directory, or database.
            now: Tells Unix seconds: what has expired by then is not there.
            recent: What was read lately, where a read takes longer than a look there.
        """
        self._engine = engine
        self.now = now
        self.term_numbers = TermNumbers(engine.tables)
        self._recent = recent

    def number_of(self, project: str) -> int | None:
        """A project's number; None when there is no such project."""
        with self._engine.reading(project) as txn:
            return project_number(txn, self._engine, project)

    def look(self, project: str, look: Callable[[TableProject], Found]) -> Found | None:
        """The result of a function of a project, not all of one moment; None if there is no such project."""
        for _ in range(_LOOKS):
            try:
                with self._engine.looking(project) as txn:
                    number = project_number(txn, self._engine, project)
                    return None if number is None else look(self._project(txn, number))
            except ProjectGone:  # there may be another one of its name
                continue
        raise Unavailable(f"project {project} is removed again each time that it is looked at; try again")

    def seq(self, number: int) -> int:
        """The writes that a project has accepted. Raises: ProjectGone."""
        with self._engine.reading(number) as txn:
            return project_record(txn, self._engine, number).seq

    @contextmanager
    def reading(self, number: int, seen_seq: int = 0) -> Iterator[TableProject]:
        """A project as it is now, to be left soon: meanwhile no page is reused.

        Args:
            number: The project's.
            seen_seq: A seq that it was seen to have since somebody asked for it, at which what was read lately will
                do; 0 is whatever it has when it is read.
        """
        with self._engine.answering(number) as txn:
            yield self._project(txn, number, self._recent, seen_seq)

    @contextmanager
    def looking(self, number: int, seen_seq: int = 0) -> Iterator[TableProject]:
        """Open a project for reads that need not be of one moment; with `seen_seq` 0 the cache is not used."""
        with self._engine.looking(number) as txn:
            yield self._project(txn, number, self._recent if seen_seq else None, seen_seq)

    @contextmanager
    def reading_by_name(self, project: str) -> Iterator[TableProject | None]:
        """Open a project by its name, at one moment; None if it does not exist."""
        with self._engine.answering(project) as txn:
            number = project_number(txn, self._engine, project)
            yield None if number is None else self._project(txn, number, self._recent)

    def knows_any_term(self, number: int, terms: Sequence[str]) -> bool:
        """Whether a project has one of these terms, as far as that was read before."""
        return self.term_numbers.knows_any(number, terms)

    def last_commit(self) -> int:
        """The number of the newest transaction, of whatever process."""
        return self._engine.last_commit()

    def _project(
        self,
        txn: Transaction,
        number: int,
        recent: RecentReads | None = None,
        seen_seq: int = 0,
    ) -> TableProject:
        return TableProject(self._engine, txn, number, self.term_numbers, self.now, recent, seen_seq)
