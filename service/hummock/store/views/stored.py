"""What views and searches read from a store: the parts of a view, the operations after it, and records.

Whatever keeps projects answers this; views and searches know nothing else of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from hummock.core.memory import Memory, Payload
from hummock.core.settings import ProjectSettings
from hummock.ports.store import Outdated
from hummock.store.views.forward_lists import ForwardLists
from hummock.store.views.growing import Growing

Records = tuple[bytes, bytes]
"""A memory and its payload as they are stored."""

Present = TypeVar("Present")


class DamageMet(Outdated):
    """A memory that a view names is damaged: the view is to be loaded anew, without it."""


class ProjectGone(Outdated):
    """The project itself was removed; one of its name may be another one."""


def all_present(found: Sequence[Present | None]) -> tuple[Present, ...]:
    """The values, all of them present. Raises: Outdated: one is missing."""
    present = tuple(value for value in found if value is not None)
    if len(present) < len(found):
        raise Outdated
    return present


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StoredMemories:
    """Parts of some memories that views hold, in the order of their documents.

    Attributes:
        rows: (memories,) of `row_codec.ROW`.
        ids: Of the memories.
        lists: Their forward lists, in parts that follow one another.
        halves: (chunks, dim) float16 in uint16; the chunks of a memory are neighbours.
    """

    rows: NDArray[np.void]
    ids: list[str]
    lists: Sequence[ForwardLists]
    halves: Growing[np.uint16]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Changes:
    """Net effect of some operations.

    Attributes:
        put: Documents that are new and still there, ascending.
        embedded: Documents that were there before without vectors, and have them now, ascending.
        judged: Documents that were there before, of which something else is said now, ascending.
        removed: int64 documents that were there before and are gone.
        removed_terms: uint32 terms that those held, one after the other.
    """

    put: list[int]
    embedded: list[int]
    judged: list[int]
    removed: NDArray[np.int64]
    removed_terms: NDArray[np.uint32]


Listed = Callable[[NDArray[np.void], Sequence[ForwardLists]], None]
"""Takes the rows and the forward lists of some memories."""


class Progress(NamedTuple):
    """Position of a project. Operations of all writes after `ops_after` are kept."""

    seq: int
    content_seq: int
    ops_after: int


class StoredProject(Protocol):
    """A project as one read transaction sees it, and no longer than that lasts."""

    @property
    def number(self) -> int:
        """The project's, which never changes."""

    @property
    def token_dim(self) -> int:
        """Components of a token vector."""

    def progress(self) -> Progress:
        """The project's position."""

    def settings(self) -> ProjectSettings:
        """The project's own settings."""

    def memories(self, listed: Listed) -> StoredMemories:
        """All memories.

        Args:
            listed: Is given all rows and lists before the vectors are read, which takes as long again; and once more
                where others than these turn out to be sound. The last ones are those of the result.
        """

    def memories_of(self, docs: Sequence[int]) -> StoredMemories:
        """These memories, all of which are there; their documents ascend."""

    def changes(self, after_seq: int) -> Changes:
        """Net effect of the operations after this write, which must all be kept."""

    def term_numbers(self, terms: Sequence[str]) -> list[int | None]:
        """The numbers of terms, in order; None for what nothing has ever held."""

    def numbers_behind(self, prefix: str, most: int | None = None) -> dict[str, int]:
        """The rest of every term that begins so, or of the first ones, and its number."""

    def records(self, doc: int, *, full: bool) -> Records:
        """A memory and, if it is asked for in full, its payload; nothing of one that was removed."""

    def decoded(self, records: Records) -> Memory:
        """The memory of its records; without a payload where there is no record of one."""

    def payload(self, doc: int) -> Payload | None:
        """A memory's payload; None when it was removed."""

    def called(self, limit: int) -> list[tuple[str, ...]]:
        """The titles and keywords of at most so many memories that have keywords, by their ids."""

    def tokens(self, chunks: Iterable[tuple[int, int]]) -> list[bytes]:
        """The token vectors, int8, of chunks by their documents and their numbers in these; nothing where none are."""


class StoredProjects(Protocol):
    """All projects. Safe to call from several threads."""

    def number_of(self, project: str) -> int | None:
        """A project's number; None when there is no such project."""

    def seq(self, number: int) -> int:
        """The writes that a project has accepted. Raises: ProjectGone."""

    def reading(self, number: int) -> AbstractContextManager[StoredProject]:
        """A project as it is now; what is asked of one that was removed raises ProjectGone, or finds nothing."""

    def last_commit(self) -> int:
        """A number that is another one whenever anything was written."""
