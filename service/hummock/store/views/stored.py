"""The parts of memories that a view is made of, as the tables hold them."""

from __future__ import annotations

from dataclasses import dataclass

import lmdb
import numpy as np
from numpy.typing import NDArray

from hummock.store import keys, scan
from hummock.store.environment import Environment
from hummock.store.errors import RecordDamaged
from hummock.store.records import codec, terms
from hummock.store.records.terms import ForwardLists
from hummock.store.views.columns import ROW, unpack_rows
from hummock.store.views.growing import Growing


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
    environment: Environment, txn: lmdb.Transaction[bytes], number: int, record: codec.ProjectRecord
) -> Stored:
    """All memories of a project, read slice by slice: what is no array takes little memory, and not for long.

    Raises: RecordDamaged: the parts are not of the same memories.
    """
    tables = environment.tables
    prefix = keys.project_prefix(number)
    rows_of_slices, ids = [np.empty(0, ROW)], []
    for values in scan.slices(txn, tables.column, prefix, sum(record.kinds.values())):
        some_rows, some_ids = unpack_rows(values)
        rows_of_slices.append(some_rows)
        ids.extend(some_ids)
    rows = np.concatenate(rows_of_slices)
    lists = [terms.join(values) for values in scan.slices(txn, tables.terms, prefix, len(rows))]
    chunks = int(rows["chunk_count"].sum(dtype=np.int64))
    halves = _vectors(environment, txn, keys.space_prefix(number, record.active_space), chunks)
    return _checked(number, Stored(rows=rows, ids=ids, lists=terms.concatenated(lists), halves=halves))


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
        vectors.extend(value for _, value in scan.entries(txn, tables.vector, chunks))
    rows, ids = unpack_rows(columns)
    halves = Growing.of(_halves(vectors, environment.space.dim))
    return _checked(number, Stored(rows=rows, ids=ids, lists=terms.join(lists), halves=halves))


def _vectors(environment: Environment, txn: lmdb.Transaction[bytes], space: bytes, expected: int) -> Growing[np.uint16]:
    dim = environment.space.dim
    grown: Growing[np.uint16] = Growing.with_room(expected, (dim,), np.uint16)
    for values in scan.slices(txn, environment.tables.vector, space, expected):
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
