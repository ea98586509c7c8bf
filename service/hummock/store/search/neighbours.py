"""Memories before and after a memory: in its session, or in its file."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest

import numpy as np

from hummock.core import facets
from hummock.core.memory import CodeFragment, Memory, MemoryKind, Payload
from hummock.ports.store import Neighbours, Outdated
from hummock.store.search.filters import holding
from hummock.store.tables.reads import TableProject
from hummock.store.tables.recent import Records
from hummock.store.views.view import ProjectView


def neighbours_of(
    view: ProjectView, stored: TableProject, docs: Sequence[int], count: int, *, full: bool, most_bytes: int
) -> list[Neighbours]:
    """Neighbours of each document, within the part of `most_bytes` that the documents themselves leave.

    `stored` is the same project in a transaction later than the view. Raises: Outdated.
    """
    room_bytes = most_bytes - sum(_bytes_of(stored.records(doc, full=full)) for doc in docs)
    surroundings, reading = _Surroundings(view, stored), _Reading(view, stored, room_bytes, full=full)
    return [reading.memories(surroundings.of(doc, count)) for doc in docs]


@dataclass(frozen=True, slots=True)
class _Window:
    """Documents before and after one, in their order."""

    before: Sequence[int] = ()
    after: Sequence[int] = ()

    def nearest_first(self) -> Iterable[int]:
        """All documents, the nearest first."""
        outwards = chain.from_iterable(zip_longest(reversed(self.before), self.after))
        return (doc for doc in outwards if doc is not None)

    def __len__(self) -> int:
        return len(self.before) + len(self.after)


class _Surroundings:
    """Finds the neighbours of documents in one view; each file is read once."""

    def __init__(self, view: ProjectView, stored: TableProject) -> None:
        self._view = view
        self._stored = stored
        self._files: dict[str, list[tuple[int, int]]] = {}

    def of(self, doc: int, count: int) -> _Window:
        """At most `count` documents on either side; none if the view lacks the document.

        A code fragment's neighbours are the other fragments of its file, by line; those of other memories are the
        turns of the session, up to a removed one.
        """
        columns = self._view.columns
        found = columns.ordinals(np.array([doc], np.int64))
        if not len(found) or count <= 0:
            return _Window()
        if columns.kind[found[0]] == MemoryKind.CODE_FRAGMENT:
            return self._in_file(doc, count)
        before, after = (self._in_session(int(found[0]), step, count) for step in (0, 1))
        return _Window(before[::-1], after)

    def _in_session(self, ordinal: int, step: int, count: int) -> list[int]:
        """Documents next to an ordinal, nearest first; step 0 goes back, 1 forward."""
        columns = self._view.columns
        docs: list[int] = []
        at = np.array([ordinal], np.int64)
        for _ in range(count):
            at = np.ascontiguousarray(columns.neighbours(at)[:, step])
            if at[0] < 0:
                break
            docs.append(int(columns.doc[at[0]]))
        return docs

    def _in_file(self, doc: int, count: int) -> _Window:
        own = _fragment(self._stored.payload(doc))
        if own is None:
            return _Window()
        if own.path not in self._files:
            self._files[own.path] = self._pieces(own.path)
        pieces = self._files[own.path]
        place = bisect_left(pieces, (own.start_line, doc))
        docs = [other for _, other in pieces[max(0, place - count) : place + 1 + count]]
        middle = min(place, count)
        return _Window(docs[:middle], docs[middle + 1 :])

    def _pieces(self, path: str) -> list[tuple[int, int]]:
        """First line and document of each fragment of a file, in order."""
        columns = self._view.columns
        # Longer paths that end in this one have the facet too.
        holders = holding(self._view, [facets.path(path)], self._stored) & columns.alive
        docs = columns.doc[np.flatnonzero(holders)].tolist()
        pieces = [(_fragment(self._stored.payload(doc)), doc) for doc in docs]
        return sorted((piece.start_line, doc) for piece, doc in pieces if piece is not None and piece.path == path)


class _Reading:
    """Reads each neighbour once, and stops after the first that exceeds the byte limit."""

    def __init__(self, view: ProjectView, stored: TableProject, room_bytes: int, *, full: bool) -> None:
        """`room_bytes` limits the records' bytes; `full` reads them with their payloads."""
        self._columns = view.columns
        self._stored = stored
        self._room_bytes = room_bytes
        self._full = full
        self._read: dict[int, tuple[Memory, int]] = {}

    def memories(self, window: _Window) -> Neighbours:
        """The window's memories, read nearest first; a memory in several windows counts in each."""
        taken: dict[int, Memory] = {}
        for doc in window.nearest_first():
            memory = self._take(doc)
            if memory is None:
                break
            taken[doc] = memory
        before, after = (tuple(taken[doc] for doc in side if doc in taken) for side in (window.before, window.after))
        return Neighbours(
            before=before, after=after, is_cut=len(taken) < len(window), text_hashes=self._text_hashes(taken)
        )

    def _text_hashes(self, taken: Mapping[int, Memory]) -> dict[str, int]:
        # All of them are in the view, which found them.
        at = np.searchsorted(self._columns.doc, list(taken))
        hashes = self._columns.text_hash[at].tolist()
        return {memory.id: text for memory, text in zip(taken.values(), hashes, strict=True)}

    def _take(self, doc: int) -> Memory | None:
        """The memory, or None if it exceeds the limit; only then is it left undecoded. Raises: Outdated."""
        if self._room_bytes <= 0:
            return None
        known = self._read.get(doc)
        records = (b"", b"") if known else self._stored.records(doc, full=self._full)
        if known is None and not records[0]:
            raise Outdated
        nbytes = known[1] if known else _bytes_of(records)
        if nbytes > self._room_bytes:
            self._room_bytes = 0
            return None
        self._room_bytes -= nbytes
        if known is None:
            known = self._read[doc] = self._stored.decoded(records), nbytes
        return known[0]


def _bytes_of(records: Records) -> int:
    """Bytes of a memory's records."""
    memory, payload = records
    return len(memory) + len(payload)


def _fragment(payload: Payload | None) -> CodeFragment | None:
    return payload.detail if payload is not None and isinstance(payload.detail, CodeFragment) else None
