"""A project as one transaction sees it: what its views are made of, the operations they follow, and its memories."""

from __future__ import annotations

import logging
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

import msgspec
import numpy as np
from numpy.typing import NDArray

from hummock.core.memory import Memory, Payload
from hummock.core.settings import ProjectSettings
from hummock.ports.writes import TextKey
from hummock.store.errors import EntryDamaged, MemoryDamaged
from hummock.store.tables import integrity, keys, op_log, record_codec
from hummock.store.tables.engine import Engine, Tables, Transaction
from hummock.store.tables.integrity import KeptSums
from hummock.store.tables.learning_log import StoredRows
from hummock.store.tables.projects import project_record
from hummock.store.tables.recent import RecentReads
from hummock.store.tables.record_codec import read_settings
from hummock.store.tables.term_dictionary import TermNumbers
from hummock.store.views import forward_lists
from hummock.store.views.growing import Growing
from hummock.store.views.row_codec import ROW, unpack_rows
from hummock.store.views.stored import Changes, Listed, Progress, Records, StoredMemories
from hummock.text.likeness import identity

_log = logging.getLogger(__name__)

_MOST_OF_ONE_TEXT = 64
"""Memories that are looked at for the same one: so many that differ in their times alone, or that an earlier version
has taken for one. Behind them a repeat is stored again."""


class DecodesRecords(ABC):
    """The memories and payloads of the records of a `StoredProject`."""

    __slots__ = ()

    @abstractmethod
    def records(self, doc: int, *, full: bool) -> Records:
        """A memory and, if it is asked for in full, its payload; nothing where there is none."""

    def decoded(self, records: Records) -> Memory:
        """The memory of its records; without a payload where there is no record of one."""
        memory, payload = records
        return record_codec.memory_of(memory, payload or None)

    def payload(self, doc: int) -> Payload | None:
        """A memory's payload; None where `records` has none of it."""
        memory, payload = self.records(doc, full=True)
        return record_codec.decode_payload(payload) if memory else None


class TableProject(DecodesRecords):
    """A `StoredProject`; it lives no longer than its transaction."""

    __slots__ = (
        "_engine",
        "_kept",
        "_known_record",
        "_lately",
        "_now",
        "_recent",
        "_seen_seq",
        "_tables",
        "_term_numbers",
        "number",
        "txn",
    )

    def __init__(
        self,
        engine: Engine,
        txn: Transaction,
        number: int,
        term_numbers: TermNumbers,
        now: Callable[[], float],
        recent: RecentReads | None = None,
        seen_seq: int = 0,
    ) -> None:
        """A project.

        Args:
            engine: The open directory, or database.
            txn: Of which it is a part.
            number: The project's.
            term_numbers: Those that were looked up.
            now: Tells Unix seconds.
            recent: What was read lately.
            seen_seq: At which what was read lately will do; 0 is that of the transaction.
        """
        self._now = now
        self._recent = recent
        self._seen_seq = seen_seq
        self._kept: frozenset[int] = frozenset()
        self._lately: dict[int, Records] = {}
        self.txn = txn
        self.number = number
        self._engine = engine
        self._tables = engine.tables
        self._term_numbers = term_numbers
        self._known_record: record_codec.ProjectRecord | None = None

    @property
    def token_dim(self) -> int:
        """Components of a token vector."""
        return self._engine.space.token_dim

    def record(self) -> record_codec.ProjectRecord:
        """What is recorded of the project."""
        if self._known_record is None:
            self._known_record = project_record(self.txn, self._engine, self.number)
        return self._known_record

    def progress(self) -> Progress:
        """How far the project has come."""
        record = self.record()
        return Progress(record.seq, record.content_seq, record.ops_after)

    def settings(self) -> ProjectSettings:
        """What the project sets for itself."""
        return read_settings(self.txn, self._tables.settings, self.number, self._engine.damage)

    def memories(self, listed: Listed) -> StoredMemories:
        """All memories but those that are damaged; `listed` is given their rows and lists before the vectors."""
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
        """Read slice by slice: what is no array takes little memory, and not for long. Raises: _Unsound, ValueError."""
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
        lists: list[forward_lists.ForwardLists] = []
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
        """The vectors of all chunks. Raises: _Unsound, ValueError."""
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
        """The documents all of whose parts are what was written, ascending; the others are noted."""
        prefix = keys.project_prefix(self.number)
        tables = self._tables
        listed = {key for table in (tables.checksum, tables.column) for key, _ in keys.entries(self.txn, table, prefix)}
        # A key of another length is damage as well; whose memory it was cannot be told.
        found = [key for key in listed if len(key) == keys.DOC_KEY_BYTES]
        sound, damaged = [], []
        for doc in sorted(map(keys.doc_of_doc_key, found)):
            if self.is_sound(doc):
                sound.append(doc)
            else:
                self._note_damage(doc)
                damaged.append(doc)
        # Others that were known are gone, or were written again.
        self._engine.damage.settle(self.number, damaged)
        return sound

    def is_sound(self, doc: int) -> bool:
        """Whether all parts of a document are what was written; where no sums were kept, whether they can be read."""
        kept = self.txn.get(keys.doc_key(self.number, doc), db=self._tables.checksum)
        if kept is None:
            return self._is_legible(doc)
        return kept == integrity.sums_of(self.txn, self._tables, self.number, self.record().active_space, doc)

    def _is_legible(self, doc: int) -> bool:
        """Whether the parts of a document can be read and fit together."""
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
        """These memories, all of which are there; their documents ascend."""
        space = self.record().active_space
        doc_keys = [keys.doc_key(self.number, doc) for doc in docs]
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
        """What the operations behind this write come to."""
        prefix, start = keys.project_prefix(self.number), keys.op_key(self.number, after_seq + 1, 0)
        found = op_log.net(value for _, value in keys.entries(self.txn, self._tables.ops, prefix, start))
        if self._recent is not None:
            changed = (*found.removed.tolist(), *found.embedded)
            self._recent.follow(self.number, after_seq, self.record(), changed)
        return found

    def term_numbers(self, terms: Sequence[str]) -> list[int | None]:
        """The numbers of terms, in order; None for what nothing has ever held."""
        return self._term_numbers.numbers_of(self.txn, self.number, terms)

    def has_any_term(self, terms: Sequence[str]) -> bool:
        """Whether a memory holds, or once held, one of these terms."""
        return self._term_numbers.has_any(self.txn, self.number, terms)

    def numbers_behind(self, prefix: str, most: int | None = None) -> dict[str, int]:
        """The rest of every term that begins so, or of the first ones, and its number."""
        begin = keys.name_key(self.number, prefix)
        entries = islice(keys.entries(self.txn, self._tables.term, begin), most)
        return {key[len(begin) :].decode(): int.from_bytes(value, "little") for key, value in entries}

    def prefetch(self, docs: Sequence[int], *, full: bool, keep: bool = False) -> None:
        """Says which memories will be read soon, whether with their payloads, and whether others will ask for them."""
        self._kept = frozenset(docs) if keep and full and self._recent is not None else frozenset()
        # They are held: a write may take them from there before they are asked for.
        lately = {doc: records for doc in docs if (records := self._read_lately(doc)) is not None}
        self._lately |= lately
        doc_keys = [keys.doc_key(self.number, doc) for doc in docs if doc not in lately]
        if not doc_keys:
            return
        parts = ("memory", "checksum", "payload") if full else ("memory", "checksum")
        self._engine.prefetch(self.txn, dict.fromkeys(parts, doc_keys))

    def prefetch_named(self, memory_ids: Sequence[str], *, full: bool) -> None:
        """Read memories ahead, by their ids."""
        by_id = self._tables.by_id
        id_keys = keys.name_keys(self.number, memory_ids)
        self._engine.prefetch(self.txn, {"by_id": id_keys})
        stored = ((key, self.txn.get(key, db=by_id)) for key in id_keys)
        numbers = [integrity.opened_number(key, value) for key, value in stored if value is not None]
        self.prefetch([int.from_bytes(one, "little") for one in numbers if one is not None], full=full)

    def memory(self, doc: int, *, full: bool) -> Memory | None:
        """A memory, with its payload if it is asked for in full; None where there is none, or it has expired."""
        memory, payload = self.records(doc, full=full)
        if not memory:
            return None
        found = self._decoded(doc, memory, payload if full else None)
        return None if found.expire_time is not None and found.is_over(self._now()) else found

    def named(self, memory_ids: Sequence[str], *, full: bool) -> list[Memory | None]:
        """The memories with these ids, in order; None where there is none. Raises: MemoryDamaged."""
        self.prefetch_named(memory_ids, full=full)
        return [self._named(memory_id, full=full) for memory_id in memory_ids]

    def _named(self, memory_id: str, *, full: bool) -> Memory | None:
        doc = doc_of(self.txn, self._tables, self.number, memory_id)
        try:
            memory = None if doc is None else self.memory(doc, full=full)
        except MemoryDamaged as error:
            raise MemoryDamaged(memory_id, error.doc) from error
        # An id that leads to another memory is as damaged as its record would be.
        if doc is not None and memory is not None and memory.id != memory_id:
            raise MemoryDamaged(memory_id, doc)
        return memory

    def memories_behind(self, after: int, *, full: bool, newest_first: bool) -> Iterator[tuple[int, Memory]]:
        """Documents and their memories behind a document (0: the first), upwards or downwards.

        Without what has expired, and without what is damaged in any part: a view leaves it out too.
        """
        for doc in keys.docs_behind(self.txn, self._tables.memory, self.number, after, descending=newest_first):
            if not self.is_sound(doc):
                self._note_damage(doc)
            elif memory := self.memory(doc, full=full):
                yield doc, memory

    def _decoded(self, doc: int, memory: bytes, payload: bytes | None) -> Memory:
        try:
            return record_codec.memory_of(memory, payload)
        except msgspec.MsgspecError as error:  # of before there were checksums
            self._note_damage(doc)
            raise MemoryDamaged("", doc) from error

    def records(self, doc: int, *, full: bool) -> Records:
        """A memory and, if it is asked for in full, its payload; nothing of one that was removed.

        Raises: MemoryDamaged.
        """
        known = self._lately.get(doc) or self._read_lately(doc)
        if known is not None:
            return known if full else (known[0], b"")
        key = keys.doc_key(self.number, doc)
        payload = self.txn.get(key, b"", db=self._tables.payload) if full else b""
        memory = self.txn.get(key, b"", db=self._tables.memory)
        self._require(key, memory, payload if full else None)
        if full and memory and self._recent is not None and doc in self._kept:
            self._recent.keep_memory(self.number, self._seq(), doc, (memory, payload))
        return memory, payload

    def _seq(self) -> int:
        """At which what was read lately will do."""
        return self._seen_seq or self.record().seq

    def _read_lately(self, doc: int) -> Records | None:
        return None if self._recent is None else self._recent.memory(self.number, self._seq(), doc)

    def _require(self, key: bytes, memory: bytes, payload: bytes | None) -> None:
        kept = self.txn.get(key, db=self._tables.checksum)
        try:
            integrity.require(kept, key, "", memory, payload)
        except MemoryDamaged as damaged:
            # Of a project that was removed the parts are cleared one after the other; that one is gone, not damaged.
            project_record(self.txn, self._engine, self.number)
            self._note_damage(damaged.doc)
            raise

    def called(self, limit: int) -> list[tuple[str, ...]]:
        """The titles and keywords of at most so many memories that have keywords, by their ids."""
        profiles = StoredRows(self.txn, self._tables, self._engine.damage, self.number).profiles()
        with_keywords = ((memory_id, profile.keywords) for memory_id, profile in profiles if profile.keywords)
        found: list[tuple[str, ...]] = []
        for memory_id, keywords in islice(with_keywords, limit):
            try:
                doc = doc_of(self.txn, self._tables, self.number, memory_id)
                memory = None if doc is None else self.memory(doc, full=False)
            except EntryDamaged:
                memory = None  # whoever asks for it is told
            if memory is not None:
                found.append((memory.index.title, *keywords))
        return found

    def tokens(self, chunks: Iterable[tuple[int, int]]) -> list[bytes]:
        """The token vectors of chunks, int8, by their documents and their numbers in these.

        Nothing of one that a write removed: it is missed when the memory is loaded.
        """
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
        wanted = [keys.chunk_key(self.number, space, doc, chunk) for doc, chunk in chunks]
        with self.txn.cursor(self._tables.token) as cursor:
            found = dict(cursor.getmulti(wanted))
        return [found.get(key, b"") for key in wanted]


def doc_of(
    txn: Transaction,
    tables: Tables,
    number: int,
    memory_id: str,
    is_lost: integrity.Lost = integrity.number_may_be_lost,
) -> int | None:
    """The document that has a memory's id. Raises: EntryDamaged: the id is damaged, or lost."""
    key = keys.name_key(number, memory_id)
    stored = txn.get(key, db=tables.by_id)
    if stored is not None:
        return int.from_bytes(integrity.number(f"the id of memory {memory_id}", key, stored), "little")
    if is_lost(txn, tables.by_id, key):
        raise EntryDamaged(f"the id of memory {memory_id}")
    return None


def find_by_text(txn: Transaction, tables: Tables, number: int, key: TextKey) -> str | None:
    """The id of the oldest memory that is the same as what has this key, and is sound."""
    by_identity = keys.text_bytes(key)
    for text in (by_identity, *keys.earlier_text_bytes(key)):
        some = islice(keys.entries(txn, tables.by_text, keys.text_prefix(number, text)), _MOST_OF_ONE_TEXT)
        for found, _ in some:
            doc_key = keys.doc_key(number, keys.doc_of_text_key(found))
            memory = _with_text(txn, tables, doc_key, text)
            if memory is None or key.create_time not in (None, memory.create_time):
                continue
            if text == by_identity or _identity(txn, tables, doc_key, memory) == key.identity:
                return memory.id
    return None


def _with_text(txn: Transaction, tables: Tables, doc_key: bytes, text: bytes) -> Memory | None:
    """A memory without its payload; None where it is not sound, or has another text: then it is damaged."""
    value = txn.get(doc_key, b"", db=tables.memory)
    if not integrity.matches(txn.get(doc_key, db=tables.checksum), integrity.MEMORY, doc_key, value):
        return None
    try:
        record = record_codec.decode_memory(value)
    except msgspec.MsgspecError:
        return None
    return record.memory if record.text == text else None


def _identity(txn: Transaction, tables: Tables, doc_key: bytes, memory: Memory) -> bytes:
    """The identity of a stored memory; empty where its payload is not sound."""
    payload = txn.get(doc_key, b"", db=tables.payload)
    try:
        whole = msgspec.structs.replace(memory, payload=record_codec.decode_payload(payload))
    except msgspec.MsgspecError:
        return b""
    return identity(whole, memory.index)


class _Unsound(Exception):
    """Something is not what was written; which it is is found out memory by memory."""


def _require(is_sound: bool) -> None:
    if not is_sound:
        raise _Unsound


def _halves(values: list[bytes], dim: int) -> NDArray[np.uint16]:
    return np.frombuffer(b"".join(values), "<u2").reshape(-1, dim)
