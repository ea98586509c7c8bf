"""Whether all that belongs to a project's memories is there, and nothing else."""

from __future__ import annotations

import struct
from collections import Counter
from types import SimpleNamespace
from typing import cast

import msgspec
import numpy as np

from hummock.core.errors import HummockError
from hummock.store.tables import checksums, keys, record_codec
from hummock.store.tables.engine import Tables
from hummock.store.upkeep.inspection import Snapshot
from hummock.store.upkeep.problems import Problems
from hummock.store.views.forward_lists import unpack_terms
from hummock.store.views.row_codec import unpack_rows

UNREADABLE = (msgspec.MsgspecError, HummockError, struct.error, ValueError, TypeError, IndexError)
"""Errors that reading a damaged record may raise."""


class MemoriesCheck:
    """One look at the memories of a project."""

    def __init__(self, snapshot: Snapshot, number: int, record: record_codec.ProjectRecord, problems: Problems) -> None:
        """`number` and `record` are the project's; what is wrong goes to `problems`."""
        self._snapshot = snapshot
        self._number = number
        self._record = record
        self._prefix = keys.project_prefix(number)
        self._problems = problems
        self._memories: dict[int, record_codec.MemoryRecord] = {}
        self._unreadable: set[int] = set()

    def run(self) -> tuple[Counter[str], set[str]]:
        """Looks at everything; how much there is, and the ids of all memories."""
        self._read()
        self._parts()
        # Behind what says more of the same memories.
        self._sums()
        self._names()
        self._columns()
        self._terms()
        chunks = self._vectors()
        self._counts()
        ids = {record.memory.id for record in self._memories.values()}
        return Counter(memories=len(self._docs()), chunks=chunks), ids

    def _read(self) -> None:
        for key, value in self._snapshot.entries("memory", self._prefix):
            doc = keys.doc_of_doc_key(key)
            try:
                self._memories[doc] = record_codec.decode_memory(value)
            except UNREADABLE:
                self._unreadable.add(doc)
                self._problems.add("a memory cannot be read", doc)

    def _sums(self) -> None:
        """Whether the parts of each memory are what was written, where sums were kept of it."""
        # Those of them that are asked for are there as soon as there are sums.
        tables = cast(Tables, SimpleNamespace(**self._snapshot.tables))
        for key, _ in self._snapshot.entries("checksum", self._prefix):
            doc = keys.doc_of_doc_key(key)
            is_sound = checksums.is_sound(self._snapshot.txn, tables, self._number, self._record.active_space, doc)
            self._problems.require(is_sound, "a memory is not what was written", doc)

    def _docs(self) -> set[int]:
        return self._memories.keys() | self._unreadable

    def _parts(self) -> None:
        for table, part in (("payload", "payload"), ("column", "row of columns"), ("terms", "list of terms")):
            found = [keys.doc_of_doc_key(key) for key, _ in self._snapshot.entries(table, self._prefix)]
            self._problems.compare(self._docs(), found, f"a memory has no {part}", f"a {part} has no memory")
        for key, value in self._snapshot.entries("payload", self._prefix):
            try:
                record_codec.decode_payload(value)
            except UNREADABLE:
                self._problems.add("a payload cannot be read", keys.doc_of_doc_key(key))
        waiting = [doc for doc, record in self._memories.items() if not record.memory.chunk_count]
        found = [keys.doc_of_doc_key(key) for key, _ in self._snapshot.entries("pending", self._prefix)]
        found = [doc for doc in found if doc not in self._unreadable]
        self._problems.compare(
            waiting,
            found,
            "a memory without vectors does not wait for any",
            "what has vectors, or is none, waits for some",
        )
        self._problems.require(
            self._record.pending == len(found), "the count of memories that wait for vectors is wrong"
        )

    def _names(self) -> None:
        by_id = {key: int.from_bytes(value, "little") for key, value in self._snapshot.values("by_id", self._prefix)}
        for doc, record in self._memories.items():
            named = by_id.get(keys.name_key(self._number, record.memory.id))
            self._problems.require(named == doc, "a memory is not found by its id", doc)
        named_docs = list(by_id.values())
        self._problems.compare((), set(named_docs) - self._docs(), "", "an id names no memory")
        self._problems.require(len(named_docs) == len(set(named_docs)), "several ids name one memory")
        texts = {(record.text, doc) for doc, record in self._memories.items() if record.text}
        found = {
            (key[len(self._prefix) : -8], keys.doc_of_text_key(key))
            for key, _ in self._snapshot.entries("by_text", self._prefix)
            if keys.doc_of_text_key(key) not in self._unreadable
        }
        for text in sorted(texts - found, key=lambda each: each[1]):
            self._problems.add("a memory is not found by its text", text[1])
        for text in sorted(found - texts, key=lambda each: each[1]):
            self._problems.add("a text names no memory", text[1])

    def _columns(self) -> None:
        for key, value in self._snapshot.entries("column", self._prefix):
            doc = keys.doc_of_doc_key(key)
            record = self._memories.get(doc)
            if record is None:
                continue
            try:
                (row,), (memory_id,) = unpack_rows([value])
            except UNREADABLE:
                self._problems.add("a row of columns cannot be read", doc)
                continue
            memory = record.memory
            said = (int(row["doc"]), memory_id, int(row["kind"]), int(row["origin"]), int(row["chunk_count"]))
            expected = (doc, memory.id, memory.kind, memory.origin, memory.chunk_count)
            self._problems.require(said == expected, "a row of columns is of another memory", doc)

    def _terms(self) -> None:
        numbers = [int.from_bytes(value, "little") for _, value in self._snapshot.entries("term", self._prefix)]
        known = np.unique(np.array(numbers, np.int64))
        self._problems.require(len(known) == len(numbers), "two terms have one number")
        self._problems.require(
            not len(known) or int(known[-1]) < self._record.next_term, "a term's number is still to be given"
        )
        for key, value in self._snapshot.entries("terms", self._prefix):
            doc = keys.doc_of_doc_key(key)
            if len(value) % 8:
                self._problems.add("a list of terms cannot be read", doc)
            elif not np.isin(unpack_terms(value), known).all():
                self._problems.add("a memory holds a term that has no name", doc)

    def _vectors(self) -> int:
        """Check the vectors and return the number of chunks."""
        space = self._snapshot.space()
        expected = {
            (doc, chunk) for doc, record in self._memories.items() for chunk in range(record.memory.chunk_count)
        }
        found = set()
        for key, value in self._snapshot.entries("vector", keys.space_prefix(self._number, space.number)):
            _, doc, chunk = keys.of_chunk_key(key)
            if doc in self._unreadable:
                continue
            found.add((doc, chunk))
            if len(value) != 2 * space.dim or not np.isfinite(np.frombuffer(value, "<f2")).all():
                self._problems.add("a vector cannot be read", doc)
        for doc, _ in sorted(expected - found):
            self._problems.add("a chunk has no vector", doc)
        for doc, _ in sorted(found - expected):
            self._problems.add("a vector has no memory", doc)
        for key, value in self._snapshot.entries("token", keys.space_prefix(self._number, space.number)):
            _, doc, chunk = keys.of_chunk_key(key)
            if doc not in self._unreadable:
                self._problems.require((doc, chunk) in expected, "token vectors have no memory", doc)
            self._problems.require(len(value) % space.token_dim == 0, "token vectors cannot be read", doc)
        return len(found)

    def _counts(self) -> None:
        kinds = Counter(int(record.memory.kind) for record in self._memories.values())
        if not self._unreadable:
            counted = {kind: count for kind, count in self._record.kinds.items() if count}
            self._problems.require(counted == dict(kinds), "the counts of memories by kind are wrong")
        highest = max(self._docs(), default=0)
        self._problems.require(highest < self._record.next_doc, "a document's number is still to be given", highest)
        ends = {
            keys.expiry_key(record.memory.expire_time, self._number, doc)
            for doc, record in self._memories.items()
            if record.memory.expire_time is not None
        }
        for key in sorted(ends):
            doc = keys.of_expiry_key(key)[2]
            self._problems.require(
                self._snapshot.get("expiry", key) is not None, "a memory that ends is not noted", doc
            )
