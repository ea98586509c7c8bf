"""Interface through which views and searches read a store: parts of a view, later operations, and records.

Views and searches use nothing else of an engine.
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

Records = tuple[bytes, bytes]  # A memory's stored record and that of its payload.

NO_PROJECT = 0
"""Number of a project that does not exist, which reads as one without memories; numbers of projects begin at 1."""

Present = TypeVar("Present")


class DamageMet(Outdated):
    """A memory in a view is damaged: the view must be loaded again without it."""


class ProjectGone(Outdated):
    """The project was removed; a project of the same name may be a new one."""


def all_present(found: Sequence[Present | None]) -> tuple[Present, ...]:
    """The values, all of them present. Raises: Outdated: one is missing."""
    present = tuple(value for value in found if value is not None)
    if len(present) < len(found):
        raise Outdated
    return present


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StoredMemories:
    """Data of some memories for a view, in the order of their documents."""

    rows: NDArray[np.void]  # (memories,) of dtype `row_codec.ROW`.
    ids: list[str]  # Memory ids.
    lists: Sequence[ForwardLists]  # Their forward lists, in consecutive parts.
    halves: Growing[np.uint16]  # (chunks, dim) float16 in uint16; the chunks of a memory are adjacent.


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Changes:
    """Net effect of some operations."""

    put: list[int]  # New documents that are still present, ascending.
    embedded: list[int]  # Earlier documents that got their vectors, ascending.
    judged: list[int]  # Earlier documents with changed verdicts, ascending.
    removed: NDArray[np.int64]  # int64 earlier documents that were removed.
    removed_terms: NDArray[np.uint32]  # uint32 concatenated terms of those.


Listed = Callable[[NDArray[np.void], Sequence[ForwardLists]], None]
"""Callback for the rows and forward lists of some memories."""


class Progress(NamedTuple):
    """Position of a project. Operations of all writes after `ops_after` are kept."""

    seq: int
    content_seq: int
    ops_after: int


class StoredProject(Protocol):
    """A project as seen by one read transaction; valid only during it."""

    @property
    def number(self) -> int:
        """The project's number, which never changes."""

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
            listed: Called with all rows and lists before the vectors are read, which takes as long again; called
                again if some turn out to be damaged. The last call has the rows and lists of the result.
        """

    def memories_of(self, docs: Sequence[int]) -> StoredMemories:
        """These memories, which must exist; documents ascend."""

    def changes(self, after_seq: int) -> Changes:
        """Net effect of the operations after this write, which must all be kept."""

    def term_numbers(self, terms: Sequence[str]) -> list[int | None]:
        """The numbers of terms, in order; None for a term that no memory ever contained."""

    def numbers_behind(self, prefix: str, most: int | None = None) -> dict[str, int]:
        """Terms with this prefix, without the prefix, and their numbers; at most the first `most`."""

    def records(self, doc: int, *, full: bool) -> Records:
        """Records of a memory and, if `full`, of its payload; empty if the memory was removed."""

    def decoded(self, records: Records) -> Memory:
        """Decode a memory; without a payload if its record is empty."""

    def payload(self, doc: int) -> Payload | None:
        """A memory's payload; None when it was removed."""

    def called(self, limit: int) -> list[tuple[str, ...]]:
        """Title and keywords of at most `limit` memories with keywords, in the order of their ids."""

    def tokens(self, chunks: Iterable[tuple[int, int]]) -> list[bytes]:
        """Token vectors, int8, of chunks given as (document, chunk number); empty where there are none."""


class StoredProjects(Protocol):
    """All projects of a store. Thread-safe."""

    def number_of(self, project: str) -> int | None:
        """A project's number; None if it does not exist."""

    def seq(self, number: int) -> int:
        """Sequence number of a project's last write. Raises: ProjectGone."""

    def reading(self, number: int) -> AbstractContextManager[StoredProject]:
        """Open a project as it is now; reads of a removed one raise ProjectGone or find nothing."""

    def last_commit(self) -> int:
        """A number that changes with every write."""
