"""Caches of recent reads: decoded memories, and what loaded projects read from a database, also while it is away."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from threading import Lock
from typing import Generic, TypeVar

from hummock.core.memory import Memory
from hummock.store.limits import DECODED_MEMORY_BYTES
from hummock.store.tables.record_codec import ProjectRecord

_ENTRY_BYTES = 200  # Overhead of an entry in bytes: key, objects and table slots.
_Decoded = tuple[object, Memory, int]  # Its version, itself, its bytes.
_MEMORY_BYTES = 1500  # A decoded memory without its texts, with the objects of its fields.
_FORMS = 3  # Copies of the texts of a decoded memory: its own, two as prompts show it.

Records = tuple[bytes, bytes]  # A memory's stored record and that of its payload.
Value = TypeVar("Value")


class DecodedMemories:
    """Memories of the hits of recent recalls, in two generations within a budget. Thread-safe.

    Each is valid for the version of its records that it was decoded from: a caller who reads the version first never
    gets a memory that was removed or changed, and need not read and decode its records.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._young: dict[tuple[int, int], _Decoded] = {}
        self._old: dict[tuple[int, int], _Decoded] = {}
        self._young_bytes = 0

    def get(self, number: int, docs: Sequence[int], versions: Sequence[object]) -> list[Memory | None]:
        """The memories as of these versions, in order; None for those that are not kept."""
        found: list[Memory | None] = []
        for doc, version in zip(docs, versions, strict=True):
            known = self._young.get((number, doc))
            if known is None:
                known = self._old.get((number, doc))
                if known is not None:
                    self._put((number, doc), known)
            found.append(known[1] if known is not None and known[0] == version else None)
        return found

    def keep(self, number: int, doc: int, version: object, memory: Memory, nbytes: int) -> None:
        """Keep a memory decoded from records of `nbytes`."""
        self._put((number, doc), (version, memory, _FORMS * nbytes + _MEMORY_BYTES))

    def drop(self, number: int, docs: Iterable[int]) -> None:
        """Drop removed memories, so that their texts do not stay in memory."""
        for doc in docs:
            self._young.pop((number, doc), None)
            self._old.pop((number, doc), None)

    def _put(self, name: tuple[int, int], decoded: _Decoded) -> None:
        with self._lock:
            self._young[name] = decoded
            self._young_bytes += decoded[2]
            if self._young_bytes > DECODED_MEMORY_BYTES // 2:
                # What was not asked for since the last time is dropped.
                self._young, self._old, self._young_bytes = {}, self._young, 0


class RecentReads:
    """Cached memories with their payloads, and token vectors, of loaded projects.

    All entries of a project are valid at one seq, which moves with its view. A transaction at another seq finds
    nothing and adds nothing. So a read that began after a removal never gets the removed memory, and the entry is
    dropped once the view has the write. Thread-safe.
    """

    def __init__(self, memory_bytes: int, token_bytes: int) -> None:
        """Create a cache with these byte budgets for memories and for token vectors."""
        self._lock = Lock()
        self._records: dict[int, ProjectRecord] = {}
        self._memories: _Kept[Records] = _Kept(memory_bytes)
        self._tokens: _Kept[dict[int, bytes]] = _Kept(token_bytes)

    def begin(self, number: int, record: ProjectRecord) -> None:
        """Start caching a project as it is loaded now; drops earlier entries."""
        with self._lock:
            self._drop(number)
            self._records[number] = record

    def follow(self, number: int, after_seq: int, record: ProjectRecord, changed: Iterable[int]) -> None:
        """Move a project from one seq to that of the record; drops these removed or changed documents."""
        with self._lock:
            known = self._records.get(number)
            if known is None or known.seq == record.seq:
                return
            if known.seq == after_seq:
                for doc in changed:
                    self._memories.drop(number, doc)
                    self._tokens.drop(number, doc)
            else:
                # The changes do not cover the seqs in between.
                self._drop(number)
            self._records[number] = record

    def forget(self, number: int) -> None:
        """Drop a project that is no longer loaded."""
        with self._lock:
            self._drop(number)

    def record(self, number: int) -> ProjectRecord | None:
        """The cached record of a loaded project, or None."""
        return self._records.get(number)

    def memory(self, number: int, seq: int | None, doc: int) -> Records | None:
        """Cached records of a memory and its payload, if valid at this seq.

        None accepts any, for callers that know the documents from a view: their content never changes.
        """
        with self._lock:
            return self._memories.get(number, doc) if self._is_at(number, seq) else None

    def keep_memory(self, number: int, seq: int, doc: int, records: Records) -> None:
        """Cache records of a memory and its payload read at this seq."""
        with self._lock:
            if self._is_at(number, seq):
                self._memories.put(number, doc, records, sum(map(len, records)))

    def tokens(self, number: int, seq: int | None, chunks: Sequence[tuple[int, int]]) -> list[bytes | None]:
        """Token vectors of chunks given as (document, chunk number); None if not cached."""
        with self._lock:
            if not self._is_at(number, seq):
                return [None] * len(chunks)
            return [(self._tokens.get(number, doc) or {}).get(chunk) for doc, chunk in chunks]

    def keep_tokens(self, number: int, seq: int, found: Mapping[tuple[int, int], bytes]) -> None:
        """Cache token vectors of chunks read at this seq."""
        with self._lock:
            if not self._is_at(number, seq):
                return
            for (doc, chunk), value in found.items():
                of_doc = {**(self._tokens.get(number, doc) or {}), chunk: value}
                self._tokens.put(number, doc, of_doc, sum(map(len, of_doc.values())))

    def usage(self) -> tuple[int, int]:
        """Number of cached memories, and the bytes of all entries."""
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
    """Least-recently-used cache by project and document within a byte budget. Not thread-safe."""

    def __init__(self, budget_bytes: int) -> None:
        self.nbytes = 0
        self._budget_bytes = budget_bytes
        self._entries: OrderedDict[tuple[int, int], tuple[Value, int]] = OrderedDict()
        self._docs_of: dict[int, set[int]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, number: int, doc: int) -> Value | None:
        entry = self._entries.get((number, doc))
        if entry is None:
            return None
        self._entries.move_to_end((number, doc))
        return entry[0]

    def put(self, number: int, doc: int, value: Value, nbytes: int) -> None:
        self.drop(number, doc)
        nbytes += _ENTRY_BYTES
        self._entries[number, doc] = value, nbytes
        self._docs_of.setdefault(number, set()).add(doc)
        self.nbytes += nbytes
        while self.nbytes > self._budget_bytes:
            self.drop(*next(iter(self._entries)))

    def drop(self, number: int, doc: int) -> None:
        entry = self._entries.pop((number, doc), None)
        if entry is not None:
            self.nbytes -= entry[1]
            docs = self._docs_of[number]
            docs.discard(doc)
            if not docs:
                del self._docs_of[number]

    def drop_all(self, number: int) -> None:
        for doc in list(self._docs_of.get(number, ())):
            self.drop(number, doc)
