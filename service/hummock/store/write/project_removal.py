"""Removal of projects: one write makes a project disappear; its entries are cleared slice by slice afterwards.

A project's number is never used again, so entries still to be cleared are unreachable. A hash of its name stays with
the project's last position: a later project of the same name counts on from there, so that no seq, document number or
session number ever has two meanings for a client that stored one.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from hashlib import blake2b
from heapq import merge
from itertools import islice

import msgspec

from hummock.core.project import DeletedProject, ids_digest
from hummock.ports.writes import ALL_PROJECTS, Claim, ClaimLost, Claims, Work
from hummock.store.tables import integrity, keys, record_codec, text_vectors
from hummock.store.tables.engine import Engine, Table, Tables, Transaction
from hummock.store.tables.sessions import clock_key, sessions_of

_ENTRIES_AT_ONCE = 2048
"""Upper bound on entries removed in one slice: some ten milliseconds, the longest wait of a write."""

REQUESTS = 0  # Project number under which removal requests are stored: they outlive the removed projects.

_log = logging.getLogger(__name__)


class _Reached(msgspec.Struct, array_like=True, frozen=True):
    """Last position of a removed project; `clock` is the last number given to one of its sessions."""

    seq: int
    content_seq: int
    next_doc: int
    clock: bytes


_decode_reached = msgspec.msgpack.Decoder(_Reached).decode


def remove_project(
    engine: Engine, txn: Transaction, number: int, record: record_codec.ProjectRecord
) -> tuple[int, DeletedProject]:
    """Make a project with this last record disappear; returns the write's seq and what `Remains` clears."""
    tables, prefix = engine.tables, keys.project_prefix(number)
    deleted = _counted(txn, tables, number, record)
    reached = _Reached(
        seq=record.seq + 1,
        content_seq=record.content_seq + 1,
        next_doc=record.next_doc,
        clock=_clock(txn, tables, number),
    )
    txn.put(_reached_key(record.name), record_codec.encode(reached), db=tables.meta)
    txn.delete(keys.project_name_key(record.name), db=tables.project)
    txn.delete(keys.project_number_key(number), db=tables.project)
    txn.put(prefix, b"", db=tables.project_removed)
    return reached.seq, deleted


def first_record(
    txn: Transaction, tables: Tables, number: int, record: record_codec.ProjectRecord
) -> record_codec.ProjectRecord:
    """The record of a new project; it continues the counts of a removed project with the same name."""
    value = txn.get(_reached_key(record.name), db=tables.meta)
    if value is None:
        return record
    reached = _decode_reached(value)
    if reached.clock:
        key = clock_key(number)
        txn.put(key, integrity.seal(key, reached.clock), db=tables.session_order)
    return msgspec.structs.replace(
        record,
        seq=reached.seq,
        content_seq=reached.content_seq,
        next_doc=reached.next_doc,
        ops_after=reached.seq,
        entries_seq=reached.seq,
    )


def _counted(txn: Transaction, tables: Tables, number: int, record: record_codec.ProjectRecord) -> DeletedProject:
    sessions = messages = 0
    for session in sessions_of(txn, tables, number):
        sessions += 1
        messages += session.message_count
    prefix = keys.project_prefix(number)
    return DeletedProject(
        memory_count=sum(record.kinds.values()),
        session_count=sessions,
        message_count=messages,
        event_count=_count(txn, tables.event, prefix),
        held_count=_count(txn, tables.review, prefix),
        ids_digest=ids_digest(merge(_ids(txn, tables.by_id, prefix), _ids(txn, tables.session_record, prefix))),
    )


def _ids(txn: Transaction, table: Table, prefix: bytes) -> Iterator[bytes]:
    return (key[len(prefix) :] for key, _ in keys.entries(txn, table, prefix))


def _count(txn: Transaction, table: Table, prefix: bytes) -> int:
    return sum(1 for _ in keys.entries(txn, table, prefix))


def _clock(txn: Transaction, tables: Tables, number: int) -> bytes:
    """The last number given to one of a project's sessions; empty if none was."""
    stored = txn.get(clock_key(number), b"", db=tables.session_order)
    return stored and integrity.number("the clock of sessions", clock_key(number), stored)


def _reached_key(name: str) -> bytes:
    # A hash, as the name itself must not outlive its project.
    return b"reached" + blake2b(name.encode(), digest_size=16).digest()


class Remains:
    """Clears the entries of removed projects. Used by the writer's thread only."""

    def __init__(self, engine: Engine, claims: Claims, entries_at_once: int = _ENTRIES_AT_ONCE) -> None:
        self._engine = engine
        self._claims = claims
        self._claim: Claim | None = None
        self._tables = engine.tables
        self._entries_at_once = entries_at_once
        self._are_any = True

    def come(self) -> None:
        """Record that a project was removed."""
        self._are_any = True

    def clear_some(self) -> bool:
        """Clear some entries, durably; False if there are none, or if they cannot be cleared now."""
        if not self._are_any:
            return False
        self._claim = self._claim or self._claims.take(Work.CLEAR, ALL_PROJECTS)
        if self._claim is None:
            return False
        try:
            number = self._clear_next(self._claim)
        except ClaimLost:
            self._claim = None
            return False
        except self._engine.fatal:
            raise
        except self._engine.failures:
            # A full disk accepts no removal either; the next project removal or the next start tries again.
            _log.exception("what a removed project left could not be cleared; it is out of reach and takes room")
            number = None
        self._are_any = number is not None
        if not self._are_any:
            claim, self._claim = self._claim, None
            self._claims.release(claim)
        return self._are_any

    def _clear_next(self, claim: Claim) -> int | None:
        """Clear some entries of one removed project; returns its number, or None if nothing is left."""
        with self._engine.reading() as txn:
            number = next(self._numbers(txn), None)
        if number is not None:
            with self._engine.writing(number=number) as txn:
                self._engine.require_claim(txn, claim)
                self._clear(txn, number)
        return number

    def _numbers(self, txn: Transaction) -> Iterator[int]:
        return (keys.unpack_project(key) for key, _ in keys.entries(txn, self._tables.project_removed, b""))

    def _clear(self, txn: Transaction, number: int) -> None:
        prefix = keys.project_prefix(number)
        left = self._entries_at_once - self._clear_memories(txn, number)
        for table in self._of_projects():
            if left <= 0:
                return
            left -= _cleared(txn, table, prefix, left)
        if left > 0:
            txn.delete(prefix, db=self._tables.project_removed)

    def _clear_memories(self, txn: Transaction, number: int) -> int:
        """Clear some memories with their expiry and digest entries; returns the number of entries."""
        spaces, cleared = (self._engine.space_number, *self._engine.other_spaces), 0
        found = keys.entries(txn, self._tables.memory, keys.project_prefix(number))
        for key, value in list(islice(found, self._entries_at_once)):
            if cleared >= self._entries_at_once:
                break
            doc = keys.doc_of_doc_key(key)
            stored = record_codec.decode_memory(value)
            if stored.memory.expire_time is not None:
                ends = keys.expiry_key(stored.memory.expire_time, number, doc)
                txn.delete(ends, db=self._tables.expiry)
                cleared += 1
            for chunk, digest in enumerate(text_vectors.split(stored.digests)):
                for space in spaces:
                    txn.delete(digest + keys.chunk_key(number, space, doc, chunk), db=self._tables.by_digest)
                cleared += 1
            txn.delete(key, db=self._tables.memory)
            cleared += 1
        return cleared

    def _of_projects(self) -> tuple[Table, ...]:
        """All tables with keys that begin with a project's number, except the memories; counted ones come first."""
        tables = self._tables
        return (
            tables.pending, tables.payload, tables.checksum, tables.vector, tables.token, tables.terms, tables.term,
            tables.column, tables.by_id, tables.by_text, tables.session, tables.settings, tables.review, tables.ops,
            tables.removed,
            tables.request, tables.request_age, tables.learning, tables.event, tables.turn, tables.usage,
            tables.usage_scope, tables.link, tables.session_record, tables.session_order, tables.session_deleted,
            tables.message, tables.message_id,
        )  # fmt: skip # a list of names


def _cleared(txn: Transaction, table: Table, prefix: bytes, limit: int) -> int:
    found = [key for key, _ in islice(keys.entries(txn, table, prefix), limit)]
    for key in found:
        txn.delete(key, db=table)
    return len(found)
