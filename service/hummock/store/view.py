"""One project in memory, as it is after a certain write.

A view never changes. Readers take a reference and need no lock; the reference keeps the memory alive for as long as
they use it. The writer makes the next view out of the newest one, with which it shares all that did not change.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import lmdb
import numpy as np
from numpy.typing import NDArray

from hummock.store import codec, keys, operations, scan, terms
from hummock.store.columns import Columns, unpack_rows
from hummock.store.environment import Environment
from hummock.store.errors import RecordDamaged
from hummock.store.growing import Growing
from hummock.store.limits import PlanLimits, StoreLimits
from hummock.store.postings import Postings
from hummock_kernels.signbit import sign_bits


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
        plans: How its nearest vectors are found.
        signs: (rows, words), the vectors' sign bits; None in a project that is small, or has only just grown.
    """

    number: int
    seq: int
    content_seq: int
    columns: Columns
    vectors: Growing[np.uint16]
    row_doc: Growing[np.int32]
    postings: Postings
    plans: PlanLimits
    signs: Growing[np.uint64] | None = None

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        signs = 0 if self.signs is None else self.signs.nbytes
        return self.columns.nbytes + self.vectors.nbytes + self.row_doc.nbytes + self.postings.nbytes + signs


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stored:
    """Some memories' stored parts in the order of their documents."""

    columns: list[bytes]
    lists: list[bytes]
    vectors: list[bytes]


def load(
    environment: Environment,
    txn: lmdb.Transaction[bytes],
    number: int,
    record: codec.ProjectRecord,
    limits: StoreLimits,
) -> ProjectView:
    """The view of a project as the transaction sees it."""
    prefix = keys.project_prefix(number)
    space = keys.space_prefix(number, record.active_space)
    tables = environment.tables
    stored = _Stored(
        columns=[value for _, value in scan.entries(txn, tables.column, prefix)],
        lists=[value for _, value in scan.entries(txn, tables.terms, prefix)],
        vectors=[value for _, value in scan.entries(txn, tables.vector, space)],
    )
    empty = ProjectView(
        number=number,
        seq=record.seq,
        content_seq=record.content_seq,
        columns=Columns.empty(),
        vectors=Growing.of(np.empty((0, environment.space.dim), np.uint16)),
        row_doc=Growing.of(np.empty(0, np.int32)),
        postings=Postings.empty(),
        plans=limits.plans,
    )
    loaded = _extended(empty, stored)
    if loaded.vectors.size >= limits.plans.sign_rows:
        loaded = replace(loaded, signs=Growing.of(sign_bits(loaded.vectors.values)))
    if not is_rebuild_due(loaded, limits):
        return loaded
    every = np.ones(len(loaded.columns), np.uint8)
    return replace(loaded, postings=loaded.postings.compacted(every))


def catch_up(
    view: ProjectView, environment: Environment, txn: lmdb.Transaction[bytes], limits: StoreLimits
) -> ProjectView:
    """The view after all writes that the transaction sees.

    Operations that the view lacks are applied; when they are no longer kept, the project is loaded anew.
    """
    tables = environment.tables
    record = codec.decode_project(txn.get(keys.project_number_key(view.number), db=tables.project) or b"")
    if record.seq == view.seq:
        return view
    if view.seq < record.ops_after:
        return load(environment, txn, view.number, record, limits)
    prefix = keys.project_prefix(view.number)
    start = keys.op_key(view.number, view.seq + 1, 0)
    changes = operations.net(value for _, value in scan.entries(txn, tables.ops, prefix, start))
    newer = replace(_reduced(view, changes), seq=record.seq, content_seq=record.content_seq)
    if changes.put:
        newer = _extended(newer, _stored(environment, txn, view.number, record.active_space, changes.put))
    return newer


def is_rebuild_due(view: ProjectView, limits: StoreLimits) -> bool:
    """Whether too much of the view is removed, or outside the inverted index."""
    dead = len(view.columns) - view.columns.live
    has_too_many_dead = dead >= limits.dead_docs and dead > limits.dead_share * len(view.columns)
    return has_too_many_dead or view.postings.delta > limits.delta_docs


def rebuilt(view: ProjectView) -> ProjectView:
    """A copy without what was removed, all of it in the inverted index. It answers the same, to the bit.

    It shares nothing that grows, so both may be caught up from here.
    """
    alive = view.columns.alive.values
    kept = np.flatnonzero(alive[view.row_doc.values])
    places = (np.cumsum(alive, dtype=np.int64) - 1).astype(np.int32)
    vectors = view.vectors.values[kept]
    return replace(
        view,
        columns=view.columns.compacted(),
        vectors=Growing.of(vectors),
        signs=_signs_of(view, kept, vectors),
        row_doc=Growing.of(places[view.row_doc.values[kept]]),
        postings=view.postings.compacted(alive),
    )


def _signs_of(view: ProjectView, kept: NDArray[np.int64], vectors: NDArray[np.uint16]) -> Growing[np.uint64] | None:
    if len(vectors) < view.plans.sign_rows:
        return None
    return Growing.of(sign_bits(vectors) if view.signs is None else view.signs.values[kept])


def _stored(
    environment: Environment, txn: lmdb.Transaction[bytes], number: int, space: int, docs: list[int]
) -> _Stored:
    stored = _Stored(columns=[], lists=[], vectors=[])
    tables = environment.tables
    for doc in docs:
        key = keys.doc_key(number, doc)
        stored.columns.append(txn.get(key, b"", db=tables.column))
        stored.lists.append(txn.get(key, b"", db=tables.terms))
        chunks = keys.space_prefix(number, space) + key[-8:]
        stored.vectors.extend(value for _, value in scan.entries(txn, tables.vector, chunks))
    return stored


def _extended(view: ProjectView, stored: _Stored) -> ProjectView:
    rows, ids = unpack_rows(stored.columns)
    halves = np.frombuffer(b"".join(stored.vectors), "<u2").reshape(-1, view.vectors.buffer.shape[1])
    chunk_count = rows["chunk_count"].astype(np.int64)
    if len(stored.lists) != len(rows) or chunk_count.sum() != len(halves):
        raise RecordDamaged(
            view.number,
            f"{len(rows)} memories of {chunk_count.sum()} chunks have {len(stored.lists)} term lists and "
            f"{len(halves)} vectors",
        )
    ordinals: NDArray[np.int64] = np.arange(len(view.columns), len(view.columns) + len(rows))
    return replace(
        view,
        columns=view.columns.extended(rows, ids, view.row_doc.size),
        vectors=view.vectors.extended(halves),
        signs=None if view.signs is None else view.signs.extended(sign_bits(halves)),
        row_doc=view.row_doc.extended(np.repeat(ordinals, chunk_count)),
        postings=view.postings.extended(terms.join(stored.lists)),
    )


def _reduced(view: ProjectView, changes: operations.Changes) -> ProjectView:
    if not len(changes.removed):
        return view
    ordinals = view.columns.ordinals(changes.removed)
    if len(ordinals) != len(changes.removed):
        raise RecordDamaged(view.number, f"of {len(changes.removed)} removed memories {len(ordinals)} were known")
    return replace(view, columns=view.columns.without(ordinals), postings=view.postings.without(changes.removed_terms))
