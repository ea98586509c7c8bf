"""Lookups: a project by its name, a memory by its id, its text or its expiry, the record of the whole store."""

from __future__ import annotations

from itertools import islice, takewhile
from pathlib import Path

import msgspec

from hummock.core.embedding import EmbeddingSpace
from hummock.core.memory import Memory
from hummock.ports.writes import TextKey
from hummock.store.errors import AnalyzerTooNew, EntryDamaged, ProjectGone, SchemaTooNew, SpaceDiffers
from hummock.store.tables import integrity, keys, record_codec
from hummock.store.tables.engine import Engine, Tables, Transaction
from hummock.store.tables.keys import NO_PROJECT
from hummock.text.analyzer import ANALYZER_VERSION
from hummock.text.likeness import identity

DIRECTORY_KEY = b"directory"

_MOST_OF_ONE_TEXT = 64
"""Upper bound on memories compared to find a repeat: these differ only in time, or an earlier version had treated them
as equal. A repeat of a later one is stored again."""


def project_number(txn: Transaction, engine: Engine, project: str) -> int | None:
    """The number of a project, or None."""
    value = txn.get(keys.project_name_key(project), db=engine.tables.project)
    return None if value is None else keys.unpack_project(value)


def project_numbers(txn: Transaction, engine: Engine) -> list[int]:
    """The numbers of all projects, in the order of their names."""
    found = keys.entries(txn, engine.tables.project, keys.project_name_key(""))
    return [keys.unpack_project(value) for _, value in found]


def project_record(txn: Transaction, engine: Engine, number: int) -> record_codec.ProjectRecord:
    """The record of a project. Raises: ProjectGone: it was removed."""
    if number == NO_PROJECT:
        return record_codec.ProjectRecord(name="", create_time=0.0, active_space=0)
    value = txn.get(keys.project_number_key(number), db=engine.tables.project)
    if value is None:
        raise ProjectGone
    return record_codec.decode_project(value)


def active_space(record: record_codec.DirectoryRecord) -> record_codec.SpaceRecord:
    """The embedding space of all vectors."""
    return next(space for space in record.spaces if space.number == record.active_space)


def first_record(space: EmbeddingSpace) -> record_codec.DirectoryRecord:
    """The record of a new store for vectors of this space."""
    first = record_codec.SpaceRecord(1, space.id, space.model, space.dim, space.token_dim)
    return record_codec.DirectoryRecord(
        schema=record_codec.SCHEMA, active_space=first.number, spaces=(first,), analyzer=ANALYZER_VERSION
    )


def known_record(value: bytes, place: Path | str) -> record_codec.DirectoryRecord:
    """The record of a store that this version can open. Raises: SchemaTooNew, AnalyzerTooNew, msgspec.MsgspecError."""
    schema = record_codec.decode_schema(value).schema
    if schema > record_codec.SCHEMA:
        raise SchemaTooNew(place, schema, record_codec.SCHEMA)
    record = record_codec.decode_directory(value)
    if record.analyzer > ANALYZER_VERSION:
        raise AnalyzerTooNew(place, record.analyzer, ANALYZER_VERSION)
    return record


def number_of_space(
    record: record_codec.DirectoryRecord, space: EmbeddingSpace, place: Path | str, *, switches: bool = False
) -> int:
    """The number of a space, which must be that of all vectors in use.

    With `switches` any recorded space will do: `store.write.spaces` switches to it. Raises: SpaceDiffers.
    """
    active = active_space(record)
    number = next((one.number for one in record.spaces if one.id == space.id), 0)
    if number != active.number and not (switches and number):
        raise SpaceDiffers(place, (active.model, active.id), (space.model, space.id))
    return number


def with_space(record: record_codec.DirectoryRecord, space: EmbeddingSpace) -> tuple[record_codec.DirectoryRecord, int]:
    """The record with one more space, unless it has it, and the number of the space."""
    number = next((one.number for one in record.spaces if one.id == space.id), 0)
    if number:
        return record, number
    number = max(one.number for one in record.spaces) + 1
    added = record_codec.SpaceRecord(number, space.id, space.model, space.dim, space.token_dim)
    return msgspec.structs.replace(record, spaces=(*record.spaces, added)), number


def doc_of(
    txn: Transaction,
    tables: Tables,
    number: int,
    memory_id: str,
    is_lost: integrity.Lost = integrity.number_may_be_lost,
) -> int | None:
    """The document with a memory's id, or None. Raises: EntryDamaged: the id is damaged or lost."""
    key = keys.name_key(number, memory_id)
    stored = txn.get(key, db=tables.by_id)
    if stored is not None:
        return int.from_bytes(integrity.number(f"the id of memory {memory_id}", key, stored), "little")
    if is_lost(txn, tables.by_id, key):
        raise EntryDamaged(f"the id of memory {memory_id}")
    return None


def find_by_text(txn: Transaction, tables: Tables, number: int, key: TextKey) -> str | None:
    """The id of the oldest intact memory with this text key, or None."""
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
    """A memory without its payload; None if it is damaged, which includes having another text."""
    value = txn.get(doc_key, b"", db=tables.memory)
    if not integrity.matches(txn.get(doc_key, db=tables.checksum), integrity.MEMORY, doc_key, value):
        return None
    try:
        record = record_codec.decode_memory(value)
    except msgspec.MsgspecError:
        return None
    return record.memory if record.text == text else None


def _identity(txn: Transaction, tables: Tables, doc_key: bytes, memory: Memory) -> bytes:
    payload = txn.get(doc_key, b"", db=tables.payload)
    try:
        whole = msgspec.structs.replace(memory, payload=record_codec.decode_payload(payload))
    except msgspec.MsgspecError:
        return b""
    return identity(whole, memory.index)


def expired(engine: Engine, now: float, limit: int) -> list[tuple[str, str]]:
    """Projects and ids of at most `limit` memories expired at `now`, in Unix seconds; the earliest first."""
    with engine.reading() as txn:
        ends = (keys.of_expiry_key(key) for key, _ in keys.entries(txn, engine.tables.expiry, b""))
        ended = [(number, doc) for _, number, doc in islice(takewhile(lambda end: end[0] <= now, ends), limit)]
    found = (_ended(engine, number, doc, now) for number, doc in ended)
    return [one for one in found if one is not None]


def _ended(engine: Engine, number: int, doc: int, now: float) -> tuple[str, str] | None:
    with engine.reading(number) as txn:
        value = txn.get(keys.doc_key(number, doc), db=engine.tables.memory)
        try:
            project = project_record(txn, engine, number).name
        except ProjectGone:  # its expiry entries are cleared with its other entries
            return None
    memory = None if value is None else record_codec.memory_of(value, None)
    return (project, memory.id) if memory is not None and memory.is_over(now) else None
