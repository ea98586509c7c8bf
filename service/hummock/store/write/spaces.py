"""Embedding spaces of a data directory: another model's vectors beside those in use, and the switch to them.

While memories are embedded for the next space, its vectors lie in the same tables under its number, and removing a
memory removes them too. A switch makes that space the one in use, in one transaction at a start. What it has no vectors
for, mostly memories stored since, waits for them as new memories do. The former vectors stay for some days, so that
switching back is as quick; afterwards they are removed.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import msgspec

from hummock.core.embedding import EmbeddingSpace
from hummock.ports.store import Embedded, Missing
from hummock.store.tables import integrity, keys, record_codec, text_vectors
from hummock.store.tables.engine import Engine, Room, Tables, Transaction
from hummock.store.tables.forward_lists import TermDictionary
from hummock.store.tables.lookups import DIRECTORY_KEY, project_number, project_numbers, project_record, with_space
from hummock.store.tables.row_codec import TokenSign, with_chunks
from hummock.store.write.write_batch import WriteBatch

KEPT_S = 7 * 24 * 3600.0
"""How long the vectors of a space stay after it was left."""

_MISSING_COUNT = 256
_MISSING_SHARE = 1 / 16
"""A space is ready when so many memories, or this share of all, lack its vectors: they are embedded in a minute."""

_ENTRIES_AT_ONCE = 4096


class SpaceBeside:
    """The vectors of a space that is not in use yet; see `ports.store.SpaceBeside`."""

    def __init__(self, engine: Engine, room: Room, space: EmbeddingSpace) -> None:
        """Record the space, unless it is known."""
        self._engine = engine
        self._tables = engine.tables
        self._room = room
        self._dim = space.dim
        with engine.writing() as txn:
            record, self._number = with_space(_directory(txn, engine), space)
            txn.put(DIRECTORY_KEY, record_codec.encode(record), db=engine.tables.meta)
        _note_others(engine, record)

    def missing(self, project: str, after: int) -> Missing:
        with self._engine.reading(project) as txn:
            number = project_number(txn, self._engine, project)
            if number is None:
                return Missing(docs=(), scanned=0, last=after)
            return _missing(txn, self._tables, number, self._engine.space_number, self._number, after)

    def put(self, project: str, embedded: Sequence[Embedded]) -> None:
        tables = self._tables
        with self._engine.writing() as txn:
            number = project_number(txn, self._engine, project)
            if number is None:
                return
            there = [one for one in embedded if txn.get(keys.doc_key(number, one[0]), db=tables.memory) is not None]
            batch = WriteBatch(self._engine, txn, number, TermDictionary())
            batch.put_embeddings(there, self._number, self._dim)
            self._room.require(txn)


def lacks_little(txn: Transaction, tables: Tables, numbers: Sequence[int], active: int, space: int) -> bool:
    """Whether hardly any memory of these projects with vectors in use lacks those of a space."""
    found = [_missing(txn, tables, number, active, space, 0) for number in numbers]
    missing, scanned = sum(len(one.docs) for one in found), sum(one.scanned for one in found)
    return missing <= max(_MISSING_COUNT, _MISSING_SHARE * scanned)


def switch_space(engine: Engine, now: float) -> None:
    """Make the space that the engine was opened with the one in use; does nothing if it is. Nobody reads it yet.

    `now` is in Unix seconds. Raises: DirectoryUnusable: a memory's row cannot be read, or there is no space.
    """
    failures: tuple[type[Exception], ...] = (*engine.failures, OSError, msgspec.MsgspecError)
    try:
        with engine.reading() as txn:
            record = _directory(txn, engine)
        if record.active_space == engine.space_number:
            return
        with engine.writing() as txn:
            for number in project_numbers(txn, engine):
                _switch_project(txn, engine, number)
            spaces = [
                msgspec.structs.replace(one, left=now if one.number == record.active_space else 0.0)
                for one in record.spaces
            ]
            switched = msgspec.structs.replace(record, active_space=engine.space_number, spaces=tuple(spaces))
            txn.put(DIRECTORY_KEY, record_codec.encode(switched), db=engine.tables.meta)
    except failures as error:
        raise engine.unusable(error) from error


def drop_left_spaces(engine: Engine, now: float) -> None:
    """Remove the vectors of spaces that are not in use and were left KEPT_S ago, or never used."""
    if not engine.other_spaces:
        return
    with engine.reading() as txn:
        record, numbers = _directory(txn, engine), project_numbers(txn, engine)
    outdated = {one.number for one in record.spaces if one.number != record.active_space and one.left < now - KEPT_S}
    for space in outdated:
        for number in numbers:
            while _drop_some(engine, keys.space_prefix(number, space)):
                pass
    if outdated:
        kept = tuple(one for one in record.spaces if one.number not in outdated)
        with engine.writing() as txn:
            record = msgspec.structs.replace(_directory(txn, engine), spaces=kept)
            txn.put(DIRECTORY_KEY, record_codec.encode(record), db=engine.tables.meta)
        _note_others(engine, record)


def _drop_some(engine: Engine, prefix: bytes) -> bool:
    """Remove some of the vectors with this prefix; false if there was none."""
    with engine.writing() as txn:
        found = [key for key, _ in islice(keys.entries(txn, engine.tables.vector, prefix), _ENTRIES_AT_ONCE)]
        for key in found:
            txn.delete(key, db=engine.tables.vector)
            txn.delete(key, db=engine.tables.token)
    return bool(found)


def _switch_project(txn: Transaction, engine: Engine, number: int) -> None:
    tables, space = engine.tables, engine.space_number
    record = project_record(txn, engine, number)
    former = record.active_space
    for doc in list(keys.docs_behind(txn, tables.memory, number, 0, descending=False)):
        key = keys.doc_key(number, doc)
        try:
            stored = record_codec.decode_memory(txn.get(key, b"", db=tables.memory))
        except msgspec.MsgspecError:  # reading it reports the damage
            continue
        is_sound = integrity.is_sound(txn, tables, number, former, doc)
        had = stored.memory.chunk_count
        for chunk, digest in enumerate(text_vectors.split(stored.digests)):
            text_vectors.drop(txn, tables, keys.chunk_key(number, former, doc, chunk), digest)
        count = sum(1 for _ in keys.entries(txn, tables.vector, keys.chunks_prefix(number, space, doc)))
        tokens = txn.get(keys.chunk_key(number, space, doc, 0), b"", db=tables.token)
        row = with_chunks(txn.get(key, b"", db=tables.column), count, TokenSign.of_bytes(tokens))
        memory = msgspec.structs.replace(stored.memory, chunk_count=count)
        txn.put(key, row, db=tables.column)
        txn.put(key, record_codec.encode_memory(memory, stored.text, stored.session_position, b""), db=tables.memory)
        if had and not count:
            txn.put(key, b"", db=tables.pending)
        elif count and not had:
            txn.delete(key, db=tables.pending)
        record.pending += bool(had) - bool(count)
        if is_sound:
            integrity.keep_sums(txn, tables, number, space, doc)
    record.active_space = space
    # Copies of the project and answers of before are no longer up to date.
    record.seq += 1
    record.content_seq += 1
    txn.put(keys.project_number_key(number), record_codec.encode(record), db=tables.project)


def _missing(txn: Transaction, tables: Tables, number: int, active: int, space: int, after: int) -> Missing:
    docs, scanned, last = [], 0, after
    for doc in keys.docs_behind(txn, tables.memory, number, after, descending=False):
        last = doc
        if txn.get(keys.chunk_key(number, active, doc, 0), db=tables.vector) is None:
            continue
        scanned += 1
        if txn.get(keys.chunk_key(number, space, doc, 0), db=tables.vector) is None:
            docs.append(doc)
    return Missing(docs=tuple(docs), scanned=scanned, last=last)


def _directory(txn: Transaction, engine: Engine) -> record_codec.DirectoryRecord:
    return record_codec.decode_directory(txn.get(DIRECTORY_KEY, b"", db=engine.tables.meta))


def _note_others(engine: Engine, record: record_codec.DirectoryRecord) -> None:
    engine.other_spaces = tuple(one.number for one in record.spaces if one.number != record.active_space)
