"""The changes of one write, in a transaction that it may share with other writes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from hummock.core.embedding import Embedding
from hummock.core.learning import Profile
from hummock.core.memory import Memory, MemoryKind, Terms
from hummock.core.project import ProjectInfo
from hummock.core.settings import NO_SETTINGS, ProjectSettings
from hummock.ports.learning import LearningUnit
from hummock.ports.writes import TextKey
from hummock.store.errors import MemoryDamaged
from hummock.store.tables import integrity, keys, op_log, record_codec, text_vectors
from hummock.store.tables.engine import Engine, Transaction
from hummock.store.tables.forward_lists import learned_of, with_learned
from hummock.store.tables.learning_log import LearningWriting
from hummock.store.tables.lookups import doc_of, find_by_text
from hummock.store.tables.record_codec import read_settings, write_settings
from hummock.store.tables.review import ReviewUnit
from hummock.store.tables.row_codec import NOBODY, judged
from hummock.store.tables.sessions import SessionUnit
from hummock.store.write.write_batch import Entry, Put, Waiting, WriteBatch, drop_chunks, move_doc, packed
from hummock.text.normalise import short_hash
from hummock.text.terms import learned_terms


class Unit:
    """The store's UnitOfWork. It changes tables and its project's record; the writer stores the record.

    New memories are pending until `finish` hands them to the batch, which writes those of several requests together.
    """

    def __init__(
        self,
        engine: Engine,
        txn: Transaction,
        number: int,
        record: record_codec.ProjectRecord,
        batch: WriteBatch,
        begin: Callable[[], None],
        now: float,
    ) -> None:
        """`record` has the write's seq; `begin` is called before any change; `now` is in Unix seconds."""
        self._engine = engine
        self._tables = tables = engine.tables
        self._damage = engine.damage
        self._txn = txn
        self._number = number
        self._record = record
        self._batch = batch
        self._begin = begin
        self._waiting = Waiting()
        self._missing: set[str] = set()
        self._now = now
        self._sessions: dict[bytes, int] = {}
        self._learning = LearningWriting(txn, tables, self._damage, number, now, self._set_learned, self._set_verdicts)
        self._removed: list[Entry] = []
        self.operations = 0
        self.has_put = False
        self.put_bytes = 0
        self.has_changed = False
        self.sessions = SessionUnit(txn, tables, self._damage, number, begin)
        self.review = ReviewUnit(txn, tables, number, begin)

    def get(self, memory_id: str) -> Memory | None:
        """The memory as this unit of work sees it, with its payload; None if missing or expired."""
        waiting = self._waiting.ids.get(memory_id) or self._batch.waiting.ids.get(memory_id)
        if waiting is not None:
            return waiting.memory
        doc = self._doc(memory_id)
        if doc is None:
            return None
        key = keys.doc_key(self._number, doc)
        value, payload = self._stored(doc), self._txn.get(key, b"", db=self._tables.payload)
        kept = self._txn.get(key, db=self._tables.checksum)
        integrity.require(kept, key, memory_id, value, payload)
        memory = record_codec.memory_of(value, payload)
        return None if memory.is_over(self._now) else memory

    def find_by_text(self, key: TextKey) -> str | None:
        stored = find_by_text(self._txn, self._tables, self._number, key)
        if stored is not None and self._record.has_expiring and self.get(stored) is None:
            stored = None
        text = keys.text_bytes(key), key.create_time
        return stored or self._batch.waiting.texts.get(text) or self._waiting.texts.get(text)

    def put(
        self,
        memory: Memory,
        key: TextKey | None,
        terms_of: Terms,
        embeddings: Sequence[Embedding],
        session_position: int | None = None,
        profile: Profile | None = None,
    ) -> None:
        """Store a memory, replacing one with the same id; by default that one's place in the session is kept.

        `profile` has the keywords and verdicts learned before the memory arrived. Without embeddings it waits for
        them, and is found by keyword only.
        """
        if memory.payload is None or memory.chunk_count != len(embeddings):
            raise ValueError(f"a memory of {memory.chunk_count} chunks came with {len(embeddings)} embeddings")
        old_doc = self._doc(memory.id)
        old = None if old_doc is None else self._memory(old_doc)
        learned = b"" if old_doc is None else learned_of(self._remove(old_doc))
        if old is not None and old.memory.kind is MemoryKind.ENTRY and memory.kind is not MemoryKind.ENTRY:
            self._learning.forget(memory.id, is_entry=True)
            learned = b""
        doc = self._next_doc()
        position = self._session_position(memory, old, session_position)
        text = b"" if key is None else keys.text_bytes(key)
        payload = record_codec.encode(memory.payload)
        verdicts = NOBODY if old_doc is None else self._verdicts(memory)
        if old_doc is None and profile is not None:
            learned = self._batch.forward_lists([learned_terms(profile.words)], self._record)[0]
            verdicts = profile.verdicts_on(short_hash(memory.content_hash))
        self._missing.discard(memory.id)
        self._waiting.add(Put(memory, payload, doc, position, text, terms_of, learned, verdicts, embeddings))
        self._count(memory.kind, 1)
        self._note(op_log.pack(op_log.PUT, doc))
        self.has_put = True
        self._record.has_superseding |= bool(memory.supersedes)
        self._record.has_expiring |= memory.expire_time is not None
        self.put_bytes += len(payload) + sum(2 * len(one.vector) + one.tokens.size for one in embeddings)

    def embed(self, memory_id: str, fingerprint: bytes, embeddings: Sequence[Embedding]) -> bool:
        doc = self._doc(memory_id)
        memory = None if doc is None else self._memory(doc).memory
        if doc is None or memory is None or memory.chunk_count or memory.fingerprint != fingerprint:
            return False
        self._begin()
        self._batch.embed(doc, self._memory(doc), embeddings, self._record)
        self._note(op_log.pack(op_log.EMBED, doc))
        self.has_put = True
        return True

    def delete(self, memory_id: str, *, keeps_vectors: bool = True) -> bool:
        """Remove a memory. False if there is none, or if it had expired; an expired one is removed too."""
        doc = self._doc(memory_id)
        if doc is None:
            return False
        self._begin()
        memory = self._memory(doc).memory
        is_entry = memory.kind is MemoryKind.ENTRY
        self._txn.delete(keys.name_key(self._number, memory_id), db=self._tables.by_id)
        self._remove(doc, keeps_vectors=keeps_vectors)
        self._learning.forget(memory_id, is_entry=is_entry)
        return not memory.is_over(self._now)

    @property
    def learning(self) -> LearningUnit:
        # Its methods may write.
        self._begin()
        return self._learning

    @property
    def has_grown(self) -> bool:
        """Whether the write needs additional space."""
        return self.has_put or self.sessions.has_put or self.review.has_put or self._learning.has_grown

    @property
    def has_removed(self) -> bool:
        """Whether something was removed, which leaves space for the write's own records."""
        return bool(self._removed) or self.sessions.has_removed or self.review.has_removed

    def finish(self) -> None:
        """Hand over everything still pending; ends the unit of work."""
        ends = [(key, integrity.seal(key, packed(turns))) for key, turns in sorted(self._sessions.items())]
        self._batch.put(self._tables.session, ends)
        self._batch.put(self._tables.removed, self._removed)
        self._batch.waiting.take(self._waiting)

    def info(self) -> ProjectInfo:
        return record_codec.info_of(self._record)

    def set_info(self, info: ProjectInfo) -> None:
        self.has_changed |= info != self.info()
        self._record.tech_stack = info.tech_stack
        self._record.path = info.path
        self._record.tech_stack_origin = int(info.tech_stack_origin or 0)
        self._record.path_origin = int(info.path_origin or 0)

    def settings(self) -> ProjectSettings:
        """The project's own settings, which the requests of a group read once."""
        if self._batch.settings is None:
            self._batch.settings = read_settings(self._txn, self._tables.settings, self._number, self._damage)
        return self._batch.settings

    def set_settings(self, settings: ProjectSettings) -> None:
        self.has_changed |= settings != self.settings()
        self.has_put |= settings != NO_SETTINGS
        self._begin()
        write_settings(self._txn, self._tables.settings, self._number, settings)
        self._batch.settings = None

    def _doc(self, memory_id: str) -> int | None:
        """The document with this id in the tables; a pending one is written first."""
        if memory_id in self._waiting.ids or memory_id in self._batch.waiting.ids:
            self._begin()
            self._batch.waiting.take(self._waiting)
            self._batch.write(self._record)
        # A Learn looks for an id before it puts a memory under it.
        doc = None
        if memory_id not in self._missing:
            doc = doc_of(self._txn, self._tables, self._number, memory_id, integrity.is_lost)
            if doc is None:
                self._missing.add(memory_id)
        return doc

    def _memory(self, doc: int) -> record_codec.MemoryRecord:
        try:
            return record_codec.decode_memory(self._stored(doc))
        except msgspec.MsgspecError as error:
            raise MemoryDamaged("", doc) from error

    def _stored(self, doc: int) -> bytes:
        return self._txn.get(keys.doc_key(self._number, doc), b"", db=self._tables.memory)

    def _next_doc(self) -> int:
        self._record.next_doc += 1
        return self._record.next_doc - 1

    def _set_learned(self, memory_id: str, keywords: Sequence[str]) -> None:
        """Replace the learned keywords by which a memory is found."""
        doc = self._doc(memory_id)
        if doc is None:
            return
        learned = self._batch.forward_lists([learned_terms(keywords)], self._record)[0]
        old = self._txn.get(keys.doc_key(self._number, doc), b"", db=self._tables.terms)
        new = with_learned(old, learned)
        if new != old:
            moved, space, entries_seq = self._next_doc(), self._record.active_space, self._record.entries_seq
            memory = move_doc(self._txn, self._tables, self._number, space, doc, moved, new)
            self._record.pending += not memory.chunk_count
            self._remove(doc)
            by_id = keys.name_key(self._number, memory_id)
            self._txn.put(by_id, integrity.seal(by_id, packed(moved)), db=self._tables.by_id)
            self._count(memory.kind, 1)
            # The memory's content is unchanged.
            self._record.entries_seq = entries_seq
            self._note(op_log.pack(op_log.PUT, moved))
            self.has_put = True

    def _verdicts(self, memory: Memory) -> tuple[int, int]:
        profile = self._learning.profile(memory.id)
        return NOBODY if profile is None else profile.verdicts_on(short_hash(memory.content_hash))

    def _set_verdicts(self, memory_id: str) -> None:
        """Update the verdicts in a memory's row, which recalls use."""
        doc = self._doc(memory_id)
        if doc is None:
            return
        key = keys.doc_key(self._number, doc)
        old = self._txn.get(key, b"", db=self._tables.column)
        new = judged(old, self._verdicts(self._memory(doc).memory))
        if new != old:
            space = self._record.active_space
            is_sound = integrity.is_sound(self._txn, self._tables, self._number, space, doc)
            self._txn.put(key, new, db=self._tables.column)
            if is_sound:
                integrity.keep_sums(self._txn, self._tables, self._number, space, doc)
            self._note(op_log.pack(op_log.JUDGE, doc))

    def _remove(self, doc: int, *, keeps_vectors: bool = True) -> bytes:
        """Remove a document except its id, which may be reassigned; returns its forward list."""
        self._begin()
        record = self._memory(doc)
        doc_key = keys.doc_key(self._number, doc)
        forward_list = self._txn.get(doc_key, b"", db=self._tables.terms)
        tables = self._tables
        for table in (tables.memory, tables.payload, tables.column, tables.terms, tables.checksum):
            self._txn.delete(doc_key, db=table)
        if not record.memory.chunk_count:
            self._txn.delete(doc_key, db=self._tables.pending)
            self._record.pending -= 1
        digests = text_vectors.split(record.digests)
        for chunk in range(record.memory.chunk_count):
            chunk_key = keys.chunk_key(self._number, self._record.active_space, doc, chunk)
            digest = next(digests, None)
            if digest and keeps_vectors:
                text_vectors.retire(self._txn, self._tables, chunk_key, digest, self._now)
            elif digest:
                text_vectors.drop(self._txn, self._tables, chunk_key, digest)
            self._txn.delete(chunk_key, db=self._tables.vector)
            self._txn.delete(chunk_key, db=self._tables.token)
        for space in self._engine.other_spaces:
            drop_chunks(self._txn, tables, self._number, space, doc)
        if record.text:
            self._txn.delete(keys.text_key(self._number, record.text, doc), db=self._tables.by_text)
        if record.memory.expire_time is not None:
            self._txn.delete(keys.expiry_key(record.memory.expire_time, self._number, doc), db=self._tables.expiry)
        self._count(record.memory.kind, -1)
        self._removed.append((self._op_key(), record.memory.id.encode()))
        self._note(op_log.pack_removal(doc, forward_list))
        return forward_list

    def _session_position(self, memory: Memory, old: record_codec.MemoryRecord | None, given: int | None) -> int:
        if not memory.session_id:
            return -1
        if given is None and old is not None and old.memory.session_id == memory.session_id:
            return old.session_position
        key = keys.name_key(self._number, memory.session_id)
        end = self._sessions.get(key)
        if end is None:
            stored = self._txn.get(key, db=self._tables.session)
            value = b"" if stored is None else integrity.number("the count of a session's memories", key, stored)
            end = int.from_bytes(value, "little")
        position = end if given is None else given
        self._sessions[key] = max(end, position + 1)
        return position

    def _count(self, kind: int, by: int) -> None:
        self._record.kinds[kind] = self._record.kinds.get(kind, 0) + by
        if kind == MemoryKind.ENTRY:
            self._record.entries_seq = self._record.seq

    def _note(self, operation: bytes) -> None:
        self._waiting.notes.append((self._op_key(), operation))
        self.operations += 1
        self.has_changed = True

    def _op_key(self) -> bytes:
        return keys.op_key(self._number, self._record.seq, self.operations)
