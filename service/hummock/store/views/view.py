"""One project in memory, as it is after a certain write.

A view never changes. Readers take a reference and need no lock; the reference keeps the memory alive for as long as
they use it. The writer makes the next view out of the newest one, with which it shares all that did not change.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import lmdb
import numpy as np
from numpy.typing import NDArray

from hummock.core.memory import MemoryKind
from hummock.core.settings import NO_SETTINGS, ProjectSettings
from hummock.store import keys, scan
from hummock.store.environment import Environment
from hummock.store.errors import RecordDamaged
from hummock.store.limits import PlanLimits, StoreLimits
from hummock.store.records import codec, operations
from hummock.store.records.settings import read_settings
from hummock.store.views.columns import Columns
from hummock.store.views.domain_names import LazyDomainNames
from hummock.store.views.growing import Growing
from hummock.store.views.postings import Postings
from hummock.store.views.signs import SignBits
from hummock.store.views.stored import Stored, read_all, read_docs


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
    record: codec.ProjectRecord,
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
    changes = operations.net(value for _, value in scan.entries(txn, tables.ops, prefix, start))
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


def _reduced(view: ProjectView, changes: operations.Changes) -> ProjectView:
    if not len(changes.removed):
        return view
    ordinals = view.columns.ordinals(changes.removed)
    if len(ordinals) != len(changes.removed):
        raise RecordDamaged(view.number, f"of {len(changes.removed)} removed memories {len(ordinals)} were known")
    return replace(view, columns=view.columns.without(ordinals), postings=view.postings.without(changes.removed_terms))
