"""What was read lately of projects that are in memory, so that it is not read again, or is there when nothing is."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from threading import Lock
from typing import Generic, TypeVar

from hummock.store.tables.record_codec import ProjectRecord
from hummock.store.views.stored import Records

_ENTRY_BYTES = 200
"""Bytes of an entry without those of its value: the key, the objects and their places."""

Value = TypeVar("Value")


class RecentReads:
    """Memories with their payloads, and token vectors, of projects whose views are in memory.

    All that is here of a project is as the project is at one seq, which moves with its view. A transaction that sees
    another seq finds nothing, and leaves nothing behind. So what a write has removed is never given to a read that
    began after it; and it is gone from here once the view knows of the write. Safe to use from several threads.
    """

    def __init__(self, memory_bytes: int, token_bytes: int) -> None:
        """Takes at most so many bytes for memories, and for token vectors."""
        self._lock = Lock()
        self._records: dict[int, ProjectRecord] = {}
        self._memories: _Kept[Records] = _Kept(memory_bytes)
        self._tokens: _Kept[dict[int, bytes]] = _Kept(token_bytes)

    def begin(self, number: int, record: ProjectRecord) -> None:
        """A project is loaded, as it is now: nothing that was read before counts."""
        with self._lock:
            self._drop(number)
            self._records[number] = record

    def follow(self, number: int, after_seq: int, record: ProjectRecord, changed: Iterable[int]) -> None:
        """A view is brought up from one seq to that of the record: these documents are gone, or are others now."""
        with self._lock:
            known = self._records.get(number)
            if known is None or known.seq == record.seq:
                return
            if known.seq == after_seq:
                for doc in changed:
                    self._memories.drop(number, doc)
                    self._tokens.drop(number, doc)
            else:
                # What came and went between is not among the changes.
                self._drop(number)
            self._records[number] = record

    def forget(self, number: int) -> None:
        """A project is not in memory any more."""
        with self._lock:
            self._drop(number)

    def record(self, number: int) -> ProjectRecord | None:
        """What is recorded of a project that is in memory."""
        return self._records.get(number)

    def memory(self, number: int, seq: int | None, doc: int) -> Records | None:
        """A memory and its payload, where a transaction that sees this seq would read them.

        None is for whoever knows by a view which documents there are: what those say never changes.
        """
        with self._lock:
            return self._memories.get(number, doc) if self._is_at(number, seq) else None

    def keep_memory(self, number: int, seq: int, doc: int, records: Records) -> None:
        """Takes a memory and its payload, as a transaction that sees this seq has read them."""
        with self._lock:
            if self._is_at(number, seq):
                self._memories.put(number, doc, records, sum(map(len, records)))

    def tokens(self, number: int, seq: int | None, chunks: Sequence[tuple[int, int]]) -> list[bytes | None]:
        """The token vectors of chunks, by their documents and their numbers in these; None for what is not here."""
        with self._lock:
            if not self._is_at(number, seq):
                return [None] * len(chunks)
            return [(self._tokens.get(number, doc) or {}).get(chunk) for doc, chunk in chunks]

    def keep_tokens(self, number: int, seq: int, found: Mapping[tuple[int, int], bytes]) -> None:
        """Takes the token vectors of chunks, as a transaction that sees this seq has read them."""
        with self._lock:
            if not self._is_at(number, seq):
                return
            for (doc, chunk), value in found.items():
                of_doc = {**(self._tokens.get(number, doc) or {}), chunk: value}
                self._tokens.put(number, doc, of_doc, sum(map(len, of_doc.values())))

    def usage(self) -> tuple[int, int]:
        """Memories that are here, and the bytes of all."""
        with self._lock:
            return len(self._memories), self._memories.nbytes + self._tokens.nbytes

    def _is_at(self, number: int, seq: int | None) -> bool:
        record = self._records.get(number)
        return record is not None and seq in (None, record.seq)

    def _drop(self, number: int) -> None:
        self._records.pop(number, None)
        self._memories.drop_all(number)
        self._tokens.drop_all(number)


class _Kept(Generic[Value]):
    """Values by project and document within a budget of bytes, those that were used last. For one thread at a time."""

    def __init__(self, budget_bytes: int) -> None:
        self.nbytes = 0
        self._budget_bytes = budget_bytes
        self._entries: OrderedDict[tuple[int, int], tuple[Value, int]] = OrderedDict()
        self._docs_of: dict[int, set[int]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, number: int, doc: int) -> Value | None:
        """A value, which is now the one used last."""
        entry = self._entries.get((number, doc))
        if entry is None:
            return None
        self._entries.move_to_end((number, doc))
        return entry[0]

    def put(self, number: int, doc: int, value: Value, nbytes: int) -> None:
        """Takes a value; those used longest ago give way."""
        self.drop(number, doc)
        nbytes += _ENTRY_BYTES
        self._entries[number, doc] = value, nbytes
        self._docs_of.setdefault(number, set()).add(doc)
        self.nbytes += nbytes
        while self.nbytes > self._budget_bytes:
            self.drop(*next(iter(self._entries)))

    def drop(self, number: int, doc: int) -> None:
        """Lets go of a value, if it is there."""
        entry = self._entries.pop((number, doc), None)
        if entry is not None:
            self.nbytes -= entry[1]
            docs = self._docs_of[number]
            docs.discard(doc)
            if not docs:
                del self._docs_of[number]

    def drop_all(self, number: int) -> None:
        """Lets go of all that a project has."""
        for doc in list(self._docs_of.get(number, ())):
            self.drop(number, doc)
