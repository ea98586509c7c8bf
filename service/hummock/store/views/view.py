"""One project in memory, as it is after a certain write: loaded, kept up to date, made anew."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import lmdb
import numpy as np
from numpy.typing import NDArray

from hummock.core.memory import MemoryKind
from hummock.core.settings import NO_SETTINGS, ProjectSettings
from hummock.store.errors import RecordDamaged
from hummock.store.limits import PlanLimits, StoreLimits
from hummock.store.lmdb import keys, op_log, record_codec, term_dictionary
from hummock.store.lmdb.environment import Environment
from hummock.store.lmdb.settings_records import read_settings
from hummock.store.lmdb.term_dictionary import ForwardLists
from hummock.store.views.columns import ROW, Columns, Growing, unpack_rows
from hummock.store.views.domain_names import LazyDomainNames
from hummock.store.views.postings import Postings
from hummock.store.views.sign_bits import SignBits


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stored:
    """Some memories in the order of their documents.

    Attributes:
        rows: (memories,) of `columns.ROW`.
        ids: Of the memories.
        lists: Their forward lists.
        halves: (chunks, dim) float16 in uint16; the chunks of a memory are neighbours.
    """

    rows: NDArray[np.void]
    ids: list[str]
    lists: ForwardLists
    halves: Growing[np.uint16]


def read_all(
    environment: Environment, txn: lmdb.Transaction[bytes], number: int, record: record_codec.ProjectRecord
) -> Stored:
    """All memories of a project, read slice by slice: what is no array takes little memory, and not for long.

    Raises: RecordDamaged: the parts are not of the same memories.
    """
    tables = environment.tables
    prefix = keys.project_prefix(number)
    rows_of_slices, ids = [np.empty(0, ROW)], []
    for values in keys.slices(txn, tables.column, prefix, sum(record.kinds.values())):
        some_rows, some_ids = unpack_rows(values)
        rows_of_slices.append(some_rows)
        ids.extend(some_ids)
    rows = np.concatenate(rows_of_slices)
    lists = [term_dictionary.join(values) for values in keys.slices(txn, tables.terms, prefix, len(rows))]
    chunks = int(rows["chunk_count"].sum(dtype=np.int64))
    halves = _vectors(environment, txn, keys.space_prefix(number, record.active_space), chunks)
    return _checked(number, Stored(rows=rows, ids=ids, lists=term_dictionary.concatenated(lists), halves=halves))


def read_docs(
    environment: Environment, txn: lmdb.Transaction[bytes], number: int, space: int, docs: list[int]
) -> Stored:
    """These memories, whose documents ascend. Raises: RecordDamaged."""
    columns: list[bytes] = []
    lists: list[bytes] = []
    vectors: list[bytes] = []
    tables = environment.tables
    for doc in docs:
        key = keys.doc_key(number, doc)
        columns.append(txn.get(key, b"", db=tables.column))
        lists.append(txn.get(key, b"", db=tables.terms))
        chunks = keys.chunks_prefix(number, space, doc)
        vectors.extend(value for _, value in keys.entries(txn, tables.vector, chunks))
    rows, ids = unpack_rows(columns)
    halves = Growing.of(_halves(vectors, environment.space.dim))
    return _checked(number, Stored(rows=rows, ids=ids, lists=term_dictionary.join(lists), halves=halves))


def _vectors(environment: Environment, txn: lmdb.Transaction[bytes], space: bytes, expected: int) -> Growing[np.uint16]:
    dim = environment.space.dim
    grown: Growing[np.uint16] = Growing.with_room(expected, (dim,), np.uint16)
    for values in keys.slices(txn, environment.tables.vector, space, expected):
        grown = grown.extended(_halves(values, dim))
    return grown


def _halves(values: list[bytes], dim: int) -> NDArray[np.uint16]:
    return np.frombuffer(b"".join(values), "<u2").reshape(-1, dim)


def _checked(number: int, stored: Stored) -> Stored:
    chunks = int(stored.rows["chunk_count"].sum(dtype=np.int64))
    if len(stored.lists) != len(stored.rows) or chunks != stored.halves.size:
        raise RecordDamaged(
            number,
            f"{len(stored.rows)} memories of {chunks} chunks have {len(stored.lists)} term lists and "
            f"{stored.halves.size} vectors",
        )
    return stored


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProjectView:
    """A project's memories, searchable.

    Attributes:
        number: The project's.
        seq: Writes that the view knows of.
        content_seq: The generation of its content.
        columns: Of every memory.
        vectors: (rows, dim) float16 in uint16; the chunks of a memory are neighbours.
        row_doc: (rows,) int32, the ordinal of each row, ascending.
        postings: Terms to ordinals.
        domain_names: Of the project's domains, removed ones too.
        plans: How its nearest vectors are found.
        signs: The vectors' sign bits; None in a project that is small, or has only just grown.
        line: The same in views that have the same memories in the same places, but for those added at the end.
        settings: What the project sets for itself.
    """

    number: int
    seq: int
    content_seq: int
    columns: Columns
    vectors: Growing[np.uint16]
    row_doc: Growing[np.int32]
    postings: Postings
    domain_names: LazyDomainNames
    plans: PlanLimits
    signs: SignBits | None = None
    line: object = field(default_factory=object)
    settings: ProjectSettings = NO_SETTINGS

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        signs = 0 if self.signs is None else self.signs.nbytes
        return self.columns.nbytes + self.vectors.nbytes + self.row_doc.nbytes + self.postings.nbytes + signs


def load(
    environment: Environment,
    txn: lmdb.Transaction[bytes],
    number: int,
    record: record_codec.ProjectRecord,
    limits: StoreLimits,
) -> ProjectView:
    """The view of a project as the transaction sees it."""
    stored = read_all(environment, txn, number, record)
    ordinals = np.arange(len(stored.rows), dtype=np.int32)
    row_doc = np.repeat(ordinals, stored.rows["chunk_count"])
    return ProjectView(
        number=number,
        seq=record.seq,
        content_seq=record.content_seq,
        settings=read_settings(txn, environment.tables, number),
        columns=Columns.empty().extended(stored.rows, stored.ids, 0),
        vectors=stored.halves,
        row_doc=Growing.of(row_doc[:0]).extended(row_doc),
        postings=Postings.of(
            stored.lists, stored.rows["length"].astype(np.float32), inverted=len(stored.rows) > limits.delta_docs
        ),
        domain_names=LazyDomainNames(),
        plans=limits.plans,
        signs=SignBits.of(stored.halves.values) if len(row_doc) >= limits.plans.sign_rows else None,
    )


def is_too_old(view: ProjectView, environment: Environment, txn: lmdb.Transaction[bytes]) -> bool:
    """Whether the operations that the view lacks are no longer kept, so that it cannot be caught up."""
    return view.seq < environment.project_record(txn, view.number).ops_after


def catch_up(
    view: ProjectView, environment: Environment, txn: lmdb.Transaction[bytes], limits: StoreLimits
) -> ProjectView:
    """The view after all writes that the transaction sees.

    Operations that the view lacks are applied; when they are no longer kept, the project is loaded anew.
    """
    tables = environment.tables
    record = environment.project_record(txn, view.number)
    if record.seq == view.seq:
        return view
    if view.seq < record.ops_after:
        return load(environment, txn, view.number, record, limits)
    prefix = keys.project_prefix(view.number)
    start = keys.op_key(view.number, view.seq + 1, 0)
    changes = op_log.net(value for _, value in keys.entries(txn, tables.ops, prefix, start))
    settings = read_settings(txn, tables, view.number)
    newer = replace(_reduced(view, changes), seq=record.seq, content_seq=record.content_seq, settings=settings)
    if changes.put:
        newer = _extended(newer, read_docs(environment, txn, view.number, record.active_space, changes.put))
        if (newer.columns.kind.values[len(view.columns) :] == MemoryKind.DOMAIN_KNOWLEDGE).any():
            newer = replace(newer, domain_names=LazyDomainNames())
    return newer


def _extended(view: ProjectView, stored: Stored) -> ProjectView:
    ordinals: NDArray[np.int64] = np.arange(len(view.columns), len(view.columns) + len(stored.rows))
    halves = stored.halves.values
    return replace(
        view,
        columns=view.columns.extended(stored.rows, stored.ids, view.row_doc.size),
        vectors=view.vectors.extended(halves),
        signs=None if view.signs is None else view.signs.extended(halves),
        row_doc=view.row_doc.extended(np.repeat(ordinals, stored.rows["chunk_count"])),
        postings=view.postings.extended(stored.lists),
    )


def _reduced(view: ProjectView, changes: op_log.Changes) -> ProjectView:
    if not len(changes.removed):
        return view
    ordinals = view.columns.ordinals(changes.removed)
    if len(ordinals) != len(changes.removed):
        raise RecordDamaged(view.number, f"of {len(changes.removed)} removed memories {len(ordinals)} were known")
    return replace(view, columns=view.columns.without(ordinals), postings=view.postings.without(changes.removed_terms))


def is_rebuild_due(view: ProjectView, limits: StoreLimits) -> bool:
    """Whether too much of the view is removed, or outside the inverted index, or its sign bits are missing."""
    return has_many_dead(view, limits) or view.postings.delta > limits.delta_docs or _lacks_signs(view)


def has_many_dead(view: ProjectView, limits: StoreLimits) -> bool:
    """Whether so much of the view is removed that it is better copied without."""
    dead = len(view.columns) - view.columns.live
    return dead >= limits.dead_docs and dead > limits.dead_share * len(view.columns)


def rebuilt(view: ProjectView, limits: StoreLimits) -> ProjectView:
    """The same memories, indexed; of the same line as the view only when all of them have kept their places."""
    return _compacted(view) if has_many_dead(view, limits) else _indexed(view)


def caught_up(
    made: ProjectView,
    newest: ProjectView,
    environment: Environment,
    txn: lmdb.Transaction[bytes],
    limits: StoreLimits,
) -> ProjectView:
    """What was rebuilt, after all writes that the transaction sees.

    Args:
        made: By `rebuilt`.
        newest: What readers have, of the line that `made` was made of.
        environment: Of the store.
        txn: Sees every write that `newest` knows of.
        limits: Of the store.
    """
    if made.line is newest.line:
        return _joined(made, newest)
    return catch_up(made, environment, txn, limits)


def _indexed(view: ProjectView) -> ProjectView:
    return replace(
        view,
        postings=view.postings.inverted(view.columns.alive.values, view.columns.length.values, renumbered=False),
        signs=SignBits.of(view.vectors.values) if _lacks_signs(view) else view.signs,
    )


def _joined(made: ProjectView, newest: ProjectView) -> ProjectView:
    """The newest view with the index of an older one of its line."""
    signs = newest.signs
    if signs is None and made.signs is not None:
        signs = made.signs.extended(newest.vectors.values[made.signs.size :])
    return replace(newest, postings=newest.postings.behind(made.postings), signs=signs)


def _compacted(view: ProjectView) -> ProjectView:
    """It shares nothing that grows, so both may be caught up from here."""
    alive = view.columns.alive.values
    kept = np.flatnonzero(alive[view.row_doc.values])
    places = np.cumsum(alive, dtype=np.int32) - 1
    vectors = view.vectors.taken(kept)
    row_doc = view.row_doc.taken(kept)
    row_doc.values[:] = places[row_doc.values]
    return replace(
        view,
        line=object(),
        columns=view.columns.compacted(),
        vectors=vectors,
        signs=SignBits.of(vectors.values) if vectors.size >= view.plans.sign_rows else None,
        row_doc=row_doc,
        postings=view.postings.inverted(alive, view.columns.length.values, renumbered=True),
    )


def _lacks_signs(view: ProjectView) -> bool:
    return view.signs is None and view.vectors.size >= view.plans.sign_rows
