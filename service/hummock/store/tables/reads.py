"""Projects as one transaction sees them: the data and operations for their views, and their memories."""

from __future__ import annotations

import logging
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from hummock.core.errors import Unavailable
from hummock.core.memory import Memory, Payload
from hummock.core.settings import ProjectSettings
from hummock.ports.store import Outdated
from hummock.store.errors import EntryDamaged, MemoryDamaged, ProjectGone
from hummock.store.growing import Growing
from hummock.store.tables import forward_lists, integrity, keys, op_log, record_codec
from hummock.store.tables.engine import Engine, Transaction
from hummock.store.tables.forward_lists import ForwardLists
from hummock.store.tables.integrity import KeptSums
from hummock.store.tables.learning_log import StoredLearning
from hummock.store.tables.lookups import doc_of, project_number, project_record
from hummock.store.tables.op_log import Changes
from hummock.store.tables.recent import DecodedMemories, RecentReads, Records
from hummock.store.tables.record_codec import read_settings
from hummock.store.tables.row_codec import ROW, unpack_rows
from hummock.store.tables.term_dictionary import TermNumbers

_log = logging.getLogger(__name__)

_LOOKS = 16  # Attempts to read a project that is removed concurrently each time.

Found = TypeVar("Found")
Present = TypeVar("Present")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StoredMemories:
    """Data of some memories for a view, in the order of their documents."""

    rows: NDArray[np.void]  # (memories,) of dtype `row_codec.ROW`.
    ids: list[str]  # Memory ids.
    lists: Sequence[ForwardLists]  # Their forward lists, in consecutive parts.
    halves: Growing[np.uint16]  # (chunks, dim) float16 in uint16; the chunks of a memory are adjacent.


Listed = Callable[[NDArray[np.void], Sequence[ForwardLists]], None]
"""Callback for the rows and forward lists of some memories."""


class Progress(NamedTuple):
    """Position of a project. Operations of all writes after `ops_after` are kept."""

    seq: int
    content_seq: int
    ops_after: int


def all_present(found: Sequence[Present | None]) -> tuple[Present, ...]:
    """The values, all of them present. Raises: Outdated: one is missing."""
    present = tuple(value for value in found if value is not None)
    if len(present) < len(found):
        raise Outdated
    return present


class TableProject:
    """A project as seen by one read transaction; valid only during it."""

    def __init__(
        self,
        engine: Engine,
        txn: Transaction,
        number: int,
        term_numbers: TermNumbers,
        now: Callable[[], float],
        decoded: DecodedMemories,
        recent: RecentReads | None = None,
        seen_seq: int = 0,
    ) -> None:
        """Cached reads of `recent` are valid at `seen_seq`; 0 is the transaction's. `now` is in Unix seconds."""
        self._now = now
        self._memories = decoded
        self._recent = recent
        self._seen_seq = seen_seq
        self._kept: frozenset[int] = frozenset()
        self._lately: dict[int, Records] = {}
        self.txn = txn
        self.number = number
        self.token_dim = engine.space.token_dim
        self._engine = engine
        self._tables = engine.tables
        self._term_numbers = term_numbers
        self._known_record: record_codec.ProjectRecord | None = None

    def record(self) -> record_codec.ProjectRecord:
        """The project's record."""
        if self._known_record is None:
            self._known_record = project_record(self.txn, self._engine, self.number)
        return self._known_record

    def progress(self) -> Progress:
        """The project's position."""
        record = self.record()
        return Progress(record.seq, record.content_seq, record.ops_after)

    def settings(self) -> ProjectSettings:
        """The project's own settings."""
        return read_settings(self.txn, self._tables.settings, self.number, self._engine.damage)

    def memories(self, listed: Listed) -> StoredMemories:
        """All intact memories.

        `listed` gets all rows and lists before the vectors are read, which takes as long again; and once more if some
        turn out to be damaged. The last call has the rows and lists of the result.
        """
        if self._recent is not None:
            self._recent.begin(self.number, self.record())
        if not self._engine.damage.of(self.number):
            try:
                return self._all_memories(listed)
            except (_Unsound, ValueError, struct.error):  # the latter: parts that cannot be read
                pass
        sound = self.memories_of(self._sound_docs())
        listed(sound.rows, sound.lists)
        return sound

    def _all_memories(self, listed: Listed) -> StoredMemories:
        """All memories, read in slices so that values take little memory. Raises: _Unsound, ValueError."""
        prefix = keys.project_prefix(self.number)
        kept = KeptSums.of(keys.entries(self.txn, self._tables.checksum, prefix))
        rows_of_slices, ids = [np.empty(0, ROW)], []
        for values in keys.slices(self.txn, self._tables.column, prefix, sum(self.record().kinds.values())):
            some_rows, some_ids = unpack_rows(values)
            _require(kept.match(integrity.COLUMN, some_rows["doc"], values))
            rows_of_slices.append(some_rows)
            ids.extend(some_ids)
        rows = np.concatenate(rows_of_slices)
        _require(bool(np.isin(kept.docs, rows["doc"]).all()))
        lists: list[ForwardLists] = []
        start = 0
        for values in keys.slices(self.txn, self._tables.terms, prefix, len(rows)):
            docs = rows["doc"][start : start + len(values)]
            _require(len(docs) == len(values) and kept.match(integrity.TERMS, docs, values))
            lists.append(forward_lists.join(values))
            start += len(values)
        _require(start == len(rows))
        listed(rows, lists)
        return StoredMemories(rows=rows, ids=ids, lists=lists, halves=self._all_halves(rows, kept))

    def _all_halves(self, rows: NDArray[np.void], kept: KeptSums) -> Growing[np.uint16]:
        dim, chunk_count = self._engine.space.dim, rows["chunk_count"].astype(np.int64)
        docs = np.repeat(rows["doc"], chunk_count)
        chunks = np.arange(len(docs)) - np.repeat(np.cumsum(chunk_count) - chunk_count, chunk_count)
        halves: Growing[np.uint16] = Growing.with_room(len(docs), (dim,), np.uint16)
        number, space = self.number, self.record().active_space
        for values in keys.slices(self.txn, self._tables.vector, keys.space_prefix(number, space), len(docs)):
            some = slice(halves.size, halves.size + len(values))
            _require(len(docs[some]) == len(values))
            chunk_keys = keys.chunk_keys(number, space, docs[some], chunks[some])
            _require(kept.match_vectors(docs[some], chunks[some], dict(zip(chunk_keys, values, strict=True))))
            halves = halves.extended(_halves(values, dim))
        _require(halves.size == len(docs))
        return halves

    def _sound_docs(self) -> list[int]:
        """Intact documents, ascending; damaged ones are recorded."""
        prefix = keys.project_prefix(self.number)
        tables = self._tables
        listed = {key for table in (tables.checksum, tables.column) for key, _ in keys.entries(self.txn, table, prefix)}
        # A key of another length is damage as well, but its memory is unknown.
        found = [key for key in listed if len(key) == keys.DOC_KEY_BYTES]
        sound, damaged = [], []
        for doc in sorted(map(keys.doc_of_doc_key, found)):
            if self.is_sound(doc):
                sound.append(doc)
            else:
                self._note_damage(doc)
                damaged.append(doc)
        # Other known damaged documents were removed or written again.
        self._engine.damage.settle(self.number, damaged)
        return sound

    def is_sound(self, doc: int) -> bool:
        """Whether all parts of a document match their checksums or, if it has none, can be decoded."""
        kept = self.txn.get(keys.doc_key(self.number, doc), db=self._tables.checksum)
        if kept is None:
            return self._is_legible(doc)
        return kept == integrity.sums_of(self.txn, self._tables, self.number, self.record().active_space, doc)

    def _is_legible(self, doc: int) -> bool:
        key = keys.doc_key(self.number, doc)
        try:
            record_codec.memory_of(
                self.txn.get(key, b"", db=self._tables.memory), self.txn.get(key, b"", db=self._tables.payload)
            )
            one = self.memories_of([doc])
            return len(one.ids) == sum(map(len, one.lists)) == 1 and one.halves.size == one.rows["chunk_count"][0]
        except (msgspec.MsgspecError, ValueError, struct.error):
            return False

    def _note_damage(self, doc: int) -> None:
        if self._engine.damage.note(self.number, doc):
            _log.error("a memory is damaged on the disk and left out: project number %d, document %d", self.number, doc)

    def memories_of(self, docs: Sequence[int]) -> StoredMemories:
        """These memories, which must exist; documents ascend."""
        space = self.record().active_space
        doc_keys = keys.doc_keys(self.number, docs)
        self._engine.prefetch(self.txn, dict.fromkeys(("column", "terms"), doc_keys))
        columns = [self.txn.get(key, b"", db=self._tables.column) for key in doc_keys]
        lists = [self.txn.get(key, b"", db=self._tables.terms) for key in doc_keys]
        rows, ids = unpack_rows(columns)
        chunk_keys = [
            keys.chunk_key(self.number, space, doc, chunk)
            for doc, chunk_count in zip(docs, rows["chunk_count"].tolist(), strict=True)
            for chunk in range(chunk_count)
        ]
        self._engine.prefetch(self.txn, {"vector": chunk_keys})
        vectors = [self.txn.get(key, b"", db=self._tables.vector) for key in chunk_keys]
        halves = Growing.of(_halves(vectors, self._engine.space.dim))
        return StoredMemories(rows=rows, ids=ids, lists=[forward_lists.join(lists)], halves=halves)

    def changes(self, after_seq: int) -> Changes:
        """Net effect of the operations after this write, which must all be kept."""
        prefix, start = keys.project_prefix(self.number), keys.op_key(self.number, after_seq + 1, 0)
        found = op_log.net([value for _, value in keys.entries(self.txn, self._tables.ops, prefix, start)])
        changed = (*found.removed.tolist(), *found.embedded)
        self._memories.drop(self.number, changed)
        if self._recent is not None:
            self._recent.follow(self.number, after_seq, self.record(), changed)
        return found

    def term_numbers(self, terms: Sequence[str]) -> list[int | None]:
        """The numbers of terms, in order; None for a term that no memory ever contained."""
        return self._term_numbers.numbers_of(self.txn, self.number, terms)

    def has_any_term(self, terms: Sequence[str]) -> bool:
        """Whether any memory, present or removed, contains one of these terms."""
        return self._term_numbers.has_any(self.txn, self.number, terms)

    def numbers_behind(self, prefix: str, most: int | None = None) -> dict[str, int]:
        """Terms with this prefix, without the prefix, and their numbers; at most the first `most`."""
        begin = keys.name_key(self.number, prefix)
        entries = islice(keys.entries(self.txn, self._tables.term, begin), most)
        return {key[len(begin) :].decode(): int.from_bytes(value, "little") for key, value in entries}

    def prefetch(self, docs: Sequence[int], *, full: bool, keep: bool = False) -> None:
        """Read memories ahead, with payloads if `full`; `keep` caches them for later reads too."""
        if self._recent is not None:
            self._kept = frozenset(docs) if keep and full else frozenset()
            # Held here: a write may drop them from the cache before they are read.
            self._lately |= {doc: records for doc in docs if (records := self._read_lately(doc)) is not None}
        if doc_keys := keys.doc_keys(self.number, [doc for doc in docs if doc not in self._lately]):
            parts = ("memory", "checksum", "payload") if full else ("memory", "checksum")
            self._engine.prefetch(self.txn, dict.fromkeys(parts, doc_keys))

    def load(self, docs: Sequence[int], *, full: bool) -> list[Memory | None]:
        """Memories as `memory` gives them, in order; kept for later loads, and cached where reads are slow."""
        self.prefetch(docs, full=full, keep=True)
        get, checksum, lately = self.txn.get, self._tables.checksum, self._lately
        doc_keys = keys.doc_keys(self.number, docs)
        # All parts of a memory are written together with their checksums.
        versions = [
            (full, None if doc in lately else get(key, db=checksum), lately.get(doc))
            for doc, key in zip(docs, doc_keys, strict=True)
        ]
        kept = self._memories.get(self.number, docs, versions)
        each = zip(kept, docs, doc_keys, versions, strict=True)
        found = [memory or self._read(doc, key, version) for memory, doc, key, version in each]
        return [one if one is None or one.expire_time is None else self._unless_over(one) for one in found]

    def _read(self, doc: int, key: bytes, version: tuple[bool, bytes | None, Records | None]) -> Memory | None:
        """A memory as of its version, kept for later loads; None if it is missing."""
        full, sums, known = version
        memory, payload = self._of_tables(doc, key, sums, full=full) if known is None else known
        if not memory:
            return None
        found = self._decoded(doc, memory, payload if full else None)
        if sums is not None or known is not None:
            self._memories.keep(self.number, doc, version, found, len(memory) + len(payload))
        return found

    def memory(self, doc: int, *, full: bool) -> Memory | None:
        """A memory, with its payload if `full`; None if it is missing or expired."""
        memory, payload = self.records(doc, full=full)
        return self._unless_over(self._decoded(doc, memory, payload if full else None)) if memory else None

    def _unless_over(self, memory: Memory) -> Memory | None:
        return None if memory.expire_time is not None and memory.is_over(self._now()) else memory

    def named(self, memory_ids: Sequence[str], *, full: bool) -> list[Memory | None]:
        """The memories with these ids, in order; None for an unknown id. Raises: MemoryDamaged."""
        self._engine.prefetch(self.txn, {"by_id": keys.name_keys(self.number, memory_ids)})
        docs = [doc_of(self.txn, self._tables, self.number, memory_id) for memory_id in memory_ids]
        ids = {doc: memory_id for doc, memory_id in zip(docs, memory_ids, strict=True) if doc is not None}
        try:
            found = dict(zip(ids, self.load([*ids], full=full), strict=True))
        except MemoryDamaged as error:
            raise MemoryDamaged(ids[error.doc], error.doc) from error
        for doc, memory in found.items():
            # An id that leads to another memory is damaged.
            if memory is not None and memory.id != ids[doc]:
                raise MemoryDamaged(ids[doc], doc)
        return [None if doc is None else found[doc] for doc in docs]

    def memories_behind(self, after: int, *, full: bool, newest_first: bool) -> Iterator[tuple[int, Memory]]:
        """Documents and their memories after a document (0: from the start), ascending or descending.

        Expired and damaged memories are left out, as in a view.
        """
        for doc in keys.docs_behind(self.txn, self._tables.memory, self.number, after, descending=newest_first):
            if not self.is_sound(doc):
                self._note_damage(doc)
            elif memory := self.memory(doc, full=full):
                yield doc, memory

    def decoded(self, records: Records) -> Memory:
        """Decode a memory; without a payload if its record is empty."""
        memory, payload = records
        return record_codec.memory_of(memory, payload or None)

    def payload(self, doc: int) -> Payload | None:
        """A memory's payload; None if the memory does not exist."""
        memory, payload = self.records(doc, full=True)
        return record_codec.decode_payload(payload) if memory else None

    def _decoded(self, doc: int, memory: bytes, payload: bytes | None) -> Memory:
        try:
            return record_codec.memory_of(memory, payload)
        except msgspec.MsgspecError as error:  # written before there were checksums
            self._note_damage(doc)
            raise MemoryDamaged("", doc) from error

    def records(self, doc: int, *, full: bool) -> Records:
        """Records of a memory and, if `full`, of its payload; empty if it was removed. Raises: MemoryDamaged."""
        known = self._lately.get(doc) or self._read_lately(doc)
        if known is not None:
            return known if full else (known[0], b"")
        key = keys.doc_key(self.number, doc)
        return self._of_tables(doc, key, self.txn.get(key, db=self._tables.checksum), full=full)

    def _of_tables(self, doc: int, key: bytes, sums: bytes | None, *, full: bool) -> Records:
        payload = self.txn.get(key, b"", db=self._tables.payload) if full else b""
        memory = self.txn.get(key, b"", db=self._tables.memory)
        try:
            integrity.require(sums, key, "", memory, payload if full else None)
        except MemoryDamaged as damaged:
            # A removed project is cleared part by part: raises ProjectGone, as its memories are not damaged.
            project_record(self.txn, self._engine, self.number)
            self._note_damage(damaged.doc)
            raise
        if full and memory and self._recent is not None and doc in self._kept:
            self._recent.keep_memory(self.number, self._seq(), doc, (memory, payload))
        return memory, payload

    def _seq(self) -> int:
        """Sequence number at which cached reads are valid."""
        return self._seen_seq or self.record().seq

    def _read_lately(self, doc: int) -> Records | None:
        return None if self._recent is None else self._recent.memory(self.number, self._seq(), doc)

    def called(self, limit: int) -> list[tuple[str, ...]]:
        """Title and keywords of at most `limit` memories with keywords, in the order of their ids."""
        profiles = StoredLearning(self.txn, self._tables, self._engine.damage, self.number).profiles()
        with_keywords = ((memory_id, profile.keywords) for memory_id, profile in profiles if profile.keywords)
        found: list[tuple[str, ...]] = []
        for memory_id, keywords in islice(with_keywords, limit):
            try:
                doc = doc_of(self.txn, self._tables, self.number, memory_id)
                memory = None if doc is None else self.memory(doc, full=False)
            except EntryDamaged:
                memory = None  # reading the memory itself reports it
            if memory is not None:
                found.append((memory.index.title, *keywords))
        return found

    def tokens(self, chunks: Iterable[tuple[int, int]]) -> list[bytes]:
        """Token vectors, int8, of chunks given as (document, chunk number); empty for a removed memory."""
        if self._recent is None:
            return self._stored_tokens(list(chunks))
        asked, seq = list(chunks), self._seq()
        known = self._recent.tokens(self.number, seq, asked)
        unknown = [chunk for chunk, value in zip(asked, known, strict=True) if value is None]
        found = dict(zip(unknown, self._stored_tokens(unknown), strict=True)) if unknown else {}
        self._recent.keep_tokens(self.number, seq, {chunk: value for chunk, value in found.items() if value})
        return [found[chunk] if value is None else value for chunk, value in zip(asked, known, strict=True)]

    def _stored_tokens(self, chunks: Sequence[tuple[int, int]]) -> list[bytes]:
        space = self._engine.space_number
        wanted = list(keys.chunk_keys(self.number, space, *np.array(chunks, np.int64).reshape(-1, 2).T))
        with self.txn.cursor(self._tables.token) as cursor:
            found = dict(cursor.getmulti(wanted))
        return [found.get(key, b"") for key in wanted]


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


class _Unsound(Exception):
    """Some part is damaged; the memories must be checked one by one."""


def _require(is_sound: bool) -> None:
    if not is_sound:
        raise _Unsound


def _halves(values: list[bytes], dim: int) -> NDArray[np.uint16]:
    return np.frombuffer(b"".join(values), "<u2").reshape(-1, dim)
