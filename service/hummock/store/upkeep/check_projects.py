"""Consistency checks of a project: related entries must all exist, without orphans.

Each check is a function that yields a problem, without any stored text, and the number of the document, event or
session concerned. `PROJECT_CHECKS` has all of them.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import TypeAlias, cast

import numpy as np

from hummock.core.errors import HummockError
from hummock.store.tables import integrity, keys, record_codec
from hummock.store.tables.engine import Tables
from hummock.store.tables.forward_lists import unpack_terms
from hummock.store.tables.learning_log import decode_event, decode_profile, decode_state, decode_turn, decode_usage
from hummock.store.tables.op_log import is_removal
from hummock.store.tables.row_codec import unpack_rows
from hummock.store.tables.sessions import (
    SessionRecord,
    clock_key,
    decode_message,
    decode_session,
    message_key,
    messages_prefix,
    number_of,
    order_key,
)
from hummock.store.upkeep.moment import DirectoryMoment

UNREADABLE = (*integrity.UNREADABLE, HummockError)  # Errors that reading a damaged record may raise.

Found: TypeAlias = Iterator[tuple[str, int | None]]
"""Problems, each with the number of the document, event or session concerned, if it has one."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Project:
    """A project at one moment, with data that several checks need."""

    moment: DirectoryMoment
    number: int
    record: record_codec.ProjectRecord
    prefix: bytes  # Of the project's keys.
    memories: dict[int, record_codec.MemoryRecord] = field(default_factory=dict)  # Readable ones, by document.
    unreadable: set[int] = field(default_factory=set)  # The other documents.
    sessions: dict[bytes, SessionRecord] = field(default_factory=dict)  # Readable ones, by key.
    unreadable_sessions: list[bytes] = field(default_factory=list)  # Keys of the others.
    counts: Counter[str] = field(default_factory=Counter)  # Filled by the checks.

    @classmethod
    def read(cls, moment: DirectoryMoment, number: int, record: record_codec.ProjectRecord) -> Project:
        """Read a project with its memories and sessions."""
        project = cls(moment=moment, number=number, record=record, prefix=keys.project_prefix(number))
        for key, value in moment.entries("memory", project.prefix):
            doc = keys.doc_of_doc_key(key)
            try:
                project.memories[doc] = record_codec.decode_memory(value)
            except UNREADABLE:
                project.unreadable.add(doc)
        for key, value in moment.values("session_record", project.prefix):
            try:
                project.sessions[key] = decode_session(value)
            except UNREADABLE:
                project.unreadable_sessions.append(key)
        project.counts.update(memories=len(project.docs()), sessions=len(project.sessions))
        return project

    def docs(self) -> set[int]:
        """All documents."""
        return self.memories.keys() | self.unreadable

    def docs_in(self, table: str) -> list[int]:
        """The documents with entries in a table."""
        return [keys.doc_of_doc_key(key) for key, _ in self.moment.entries(table, self.prefix)]


def _unreadable_records(project: Project) -> Found:
    yield from (("a memory cannot be read", doc) for doc in sorted(project.unreadable))
    yield from (("a session cannot be read", None) for _ in project.unreadable_sessions)


def _parts(project: Project) -> Found:
    for table, part in (("payload", "payload"), ("column", "row of columns"), ("terms", "list of terms")):
        lacking, orphan = f"a memory has no {part}", f"a {part} has no memory"
        yield from _compared(project.docs(), project.docs_in(table), lacking, orphan)
    for key, value in project.moment.entries("payload", project.prefix):
        if not _can_read(record_codec.decode_payload, value):
            yield "a payload cannot be read", keys.doc_of_doc_key(key)


def _waiting(project: Project) -> Found:
    waiting = [doc for doc, record in project.memories.items() if not record.memory.chunk_count]
    found = [doc for doc in project.docs_in("pending") if doc not in project.unreadable]
    lacking, orphan = "a memory without vectors does not wait for any", "what has vectors, or is none, waits for some"
    yield from _compared(waiting, found, lacking, orphan)
    if project.record.pending != len(found):
        yield "the count of memories that wait for vectors is wrong", None


def _checksums(project: Project) -> Found:
    # The tables that `is_sound` reads exist in every directory with checksums.
    tables = cast(Tables, SimpleNamespace(**project.moment.tables))
    space = project.record.active_space
    for doc in project.docs_in("checksum"):
        if not integrity.is_sound(project.moment.txn, tables, project.number, space, doc):
            yield "a memory is not what was written", doc


def _ids(project: Project) -> Found:
    named = {key: int.from_bytes(value, "little") for key, value in project.moment.values("by_id", project.prefix)}
    for doc, record in project.memories.items():
        if named.get(keys.name_key(project.number, record.memory.id)) != doc:
            yield "a memory is not found by its id", doc
    docs = list(named.values())
    yield from _compared((), set(docs) - project.docs(), "", "an id names no memory")
    if len(docs) != len(set(docs)):
        yield "several ids name one memory", None


def _texts(project: Project) -> Found:
    texts = {(record.text, doc) for doc, record in project.memories.items() if record.text}
    found = {
        (key[len(project.prefix) : -8], keys.doc_of_text_key(key))
        for key, _ in project.moment.entries("by_text", project.prefix)
        if keys.doc_of_text_key(key) not in project.unreadable
    }
    for what, some in (("a memory is not found by its text", texts - found), ("a text names no memory", found - texts)):
        yield from ((what, doc) for _, doc in sorted(some, key=operator.itemgetter(1)))


def _columns(project: Project) -> Found:
    for key, value in project.moment.entries("column", project.prefix):
        doc = keys.doc_of_doc_key(key)
        record = project.memories.get(doc)
        if record is None:
            continue
        try:
            (row,), (memory_id,) = unpack_rows([value])
        except UNREADABLE:
            yield "a row of columns cannot be read", doc
            continue
        memory = record.memory
        said = (int(row["doc"]), memory_id, int(row["kind"]), int(row["origin"]), int(row["chunk_count"]))
        if said != (doc, memory.id, memory.kind, memory.origin, memory.chunk_count):
            yield "a row of columns is of another memory", doc


def _terms(project: Project) -> Found:
    numbers = [int.from_bytes(value, "little") for _, value in project.moment.entries("term", project.prefix)]
    known = np.unique(np.array(numbers, np.int64))
    if len(known) != len(numbers):
        yield "two terms have one number", None
    if len(known) and int(known[-1]) >= project.record.next_term:
        yield "a term's number is still to be given", None
    for key, value in project.moment.entries("terms", project.prefix):
        doc = keys.doc_of_doc_key(key)
        if len(value) % 8:
            yield "a list of terms cannot be read", doc
        elif not np.isin(unpack_terms(value), known).all():
            yield "a memory holds a term that has no name", doc


def _vectors(project: Project) -> Found:
    space = project.moment.space()
    prefix = keys.space_prefix(project.number, space.number)
    expected = {(doc, chunk) for doc, record in project.memories.items() for chunk in range(record.memory.chunk_count)}
    found = set()
    for key, value in project.moment.entries("vector", prefix):
        _, doc, chunk = keys.of_chunk_key(key)
        if doc in project.unreadable:
            continue
        found.add((doc, chunk))
        if len(value) != 2 * space.dim or not np.isfinite(np.frombuffer(value, "<f2")).all():
            yield "a vector cannot be read", doc
    yield from (("a chunk has no vector", doc) for doc, _ in sorted(expected - found))
    yield from (("a vector has no memory", doc) for doc, _ in sorted(found - expected))
    for key, value in project.moment.entries("token", prefix):
        _, doc, chunk = keys.of_chunk_key(key)
        if doc not in project.unreadable and (doc, chunk) not in expected:
            yield "token vectors have no memory", doc
        if len(value) % space.token_dim:
            yield "token vectors cannot be read", doc
    project.counts["chunks"] = len(found)


def _numbers(project: Project) -> Found:
    kinds = Counter(int(record.memory.kind) for record in project.memories.values())
    counted = {kind: count for kind, count in project.record.kinds.items() if count}
    if not project.unreadable and counted != dict(kinds):
        yield "the counts of memories by kind are wrong", None
    highest = max(project.docs(), default=0)
    if highest >= project.record.next_doc:
        yield "a document's number is still to be given", highest


def _ends(project: Project) -> Found:
    for doc, record in sorted(project.memories.items()):
        end = record.memory.expire_time
        if end is not None and project.moment.get("expiry", keys.expiry_key(end, project.number, doc)) is None:
            yield "a memory that ends is not noted", doc


def _order(project: Project) -> Found:
    clock = clock_key(project.number)
    places = {key: value for key, value in project.moment.values("session_order", project.prefix) if key != clock}
    for key, record in project.sessions.items():
        place = order_key(project.number, record.moved, archived=record.session.is_archived)
        if places.pop(place, None) != key:
            yield "a session has no place", record.session.number
    if places:
        yield "a place in the order of sessions has no session", None
    last = number_of(project.moment.value("session_order", clock) or bytes(8))
    highest = max((max(one.moved, one.session.number) for one in project.sessions.values()), default=0)
    if highest > last:
        yield "a session's number is still to be given", None


def _messages(project: Project) -> Found:
    moment, number, begin = project.moment, project.number, len(project.prefix) + 8
    deleted = {key for key, _ in moment.entries("session_deleted", project.prefix)}
    expected = {
        message_key(number, record.session.number, at + 1)
        for record in project.sessions.values()
        for at in range(record.session.last_position)
    }
    found = set()
    for key, value in moment.values("message", project.prefix):
        project.counts["messages"] += 1
        if key[:begin] in deleted:
            continue
        found.add(key)
        session = number_of(key[:begin])
        try:
            message = decode_message(value, number_of(key))
        except UNREADABLE:
            yield "a message cannot be read", session
            continue
        position = moment.value("message_id", messages_prefix(number, session) + message.id.encode())
        if not position or number_of(position) != message.position:
            yield "a message is not found by its id", session
    yield from (("a session lacks a message", number_of(key[:begin])) for key in sorted(expected - found))
    yield from (("a message has no session", number_of(key[:begin])) for key in sorted(found - expected))
    for key, position in moment.values("message_id", project.prefix):
        if key[:begin] + position not in found and key[:begin] not in deleted:
            yield "an id of a message names none", number_of(key[:begin])


def _learning(project: Project) -> Found:
    value = project.moment.value("learning", project.prefix)
    try:
        last = 0 if value is None else decode_state(value).events
    except UNREADABLE:
        yield "the state of learning cannot be read", None
        return
    numbers = []
    for key, stored in project.moment.values("event", project.prefix):
        numbers.append(keys.doc_of_doc_key(key))
        if not _can_read(partial(decode_event, numbers[-1]), stored):
            yield "an event cannot be read", numbers[-1]
    project.counts["events"] = len(numbers)
    lacking, orphan = "the learning log lacks an event", "an event is behind the end of the learning log"
    yield from _compared(range(1, last + 1), numbers, lacking, orphan)
    turns, profiles = (project.moment.values(table, project.prefix) for table in ("turn", "link"))
    yield from (("a turn cannot be read", None) for _, one in turns if not _can_read(decode_turn, one))
    what = "what was learnt of a memory cannot be read"
    yield from ((what, None) for _, one in profiles if not _can_read(decode_profile, one))


def _usage(project: Project) -> Found:
    noted = dict(project.moment.entries("usage_scope", project.prefix))
    begin = len(project.prefix)
    for key, value in project.moment.values("usage", project.prefix):
        scope = key[begin : begin + keys.HASH_BYTES]
        if noted.pop(keys.usage_scope_key(project.number, keys.memory_of_usage_key(key), scope), None) != scope:
            yield "a usage is not found by its memory", None
        if not _can_read(decode_usage, value):
            yield "a usage cannot be read", None
    if noted:
        yield "a memory has a usage that is not there", None


def _writes(project: Project) -> Found:
    removals = set()
    for key, value in project.moment.entries("ops", project.prefix):
        seq = keys.seq_of_op_key(key)
        if not project.record.ops_after <= seq <= project.record.seq:
            yield "an operation is of no write that is kept", seq
        if is_removal(value):
            removals.add(key)
    if not {key for key, _ in project.moment.entries("removed", project.prefix)} <= removals:
        yield "the id of a removed memory has no removal", None


def _requests(project: Project) -> Found:
    for key, value in project.moment.entries("request", project.prefix):
        try:
            record = record_codec.decode_request(value)
        except UNREADABLE:
            yield "the answer to a request cannot be read", None
            continue
        if project.moment.get("request_age", keys.age_key(project.number, record.time, record.seq)) != key:
            yield "the answer to a request has no age", record.seq


def _review(project: Project) -> Found:
    for key, value in project.moment.values("review", project.prefix):
        try:
            memory_id = record_codec.decode_held(value).memory.id
        except UNREADABLE:
            yield "what is held for review cannot be read", None
        else:
            if keys.name_key(project.number, memory_id) != key:
                yield "what is held for review is under another id", None


PROJECT_CHECKS = (
    _unreadable_records, _parts, _waiting, _checksums, _ids, _texts, _columns, _terms, _vectors, _numbers, _ends,
    _order, _messages, _learning, _usage, _writes, _requests, _review,
)  # fmt: skip # a list of names
"""Checksums come after checks that say more about the same memories."""


def _can_read(decode: Callable[[bytes], object], value: bytes) -> bool:
    try:
        decode(value)
    except UNREADABLE:
        return False
    return True


def _compared(expected: Collection[Hashable], found: Iterable[Hashable], lacking: str, orphan: str) -> Found:
    """Problems for each expected item that is missing, and each found one that is not expected."""
    wanted, present = set(expected), set(found)
    for what, some in ((lacking, wanted - present), (orphan, present - wanted)):
        for key in sorted(some, key=repr):
            yield what, key if isinstance(key, int) else None
