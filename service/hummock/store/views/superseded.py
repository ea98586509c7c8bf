"""Replaced memories of a view, found from the flag in the rows of the memories that replace others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hummock.ports.store import Outdated
from hummock.store.tables.reads import TableProject
from hummock.store.tables.row_codec import id_hash
from hummock.store.views.columns import Columns


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Superseded:
    """The memories that are replaced."""

    current: NDArray[np.uint8]  # (memories,) uint8, 0 for every replaced memory.
    by: Mapping[int, tuple[int, ...]]  # Ordinal of each replaced memory to those of its replacements, ascending.


class Superseding:
    """Cache of the ids that memories replace, by document; shared by the views of a project."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: Mapping[int, tuple[str, ...]] = {}

    def of(self, docs: list[int], stored: TableProject) -> list[tuple[str, ...]]:
        """Ids that each document replaces; other cached documents are dropped. Raises: Outdated: one was removed."""
        known = self._known
        found = {doc: known[doc] if doc in known else _read(doc, stored) for doc in docs}
        self._known = found
        return list(found.values())


def read_superseded(columns: Columns, superseding: Superseding, stored: TableProject) -> Superseded | None:
    """The replaced memories, or None. The transaction must be later than the view. Raises: Outdated."""
    holders = np.flatnonzero(columns.supersedes & columns.alive).tolist()
    if not holders:
        return None
    docs = columns.doc
    named = superseding.of(docs[holders].tolist(), stored)
    ordinals = _ordinals(columns, {memory_id for ids in named for memory_id in ids})
    pairs = {
        (ordinals[memory_id], holder)
        for holder, ids in zip(holders, named, strict=True)
        for memory_id in ids
        if ordinals.get(memory_id, holder) != holder
    }
    # If two memories replace each other, the later one stays: otherwise both would be lost.
    kept = sorted((old, new) for old, new in pairs if (new, old) not in pairs or docs[old] < docs[new])
    by: dict[int, tuple[int, ...]] = {}
    for old, new in kept:
        by[old] = (*by.get(old, ()), new)
    current = np.ones(len(columns), np.uint8)
    current[list(by)] = 0
    return Superseded(current=current, by=by) if by else None


def _ordinals(columns: Columns, memory_ids: set[str]) -> dict[str, int]:
    hashes = np.array([id_hash(memory_id) for memory_id in memory_ids], np.uint64)
    found = np.flatnonzero(np.isin(columns.id_hash, hashes) & (columns.alive != 0)).tolist()
    return {columns.ids[ordinal]: ordinal for ordinal in found}


def _read(doc: int, stored: TableProject) -> tuple[str, ...]:
    records = stored.records(doc, full=False)
    if not records[0]:
        raise Outdated
    return stored.decoded(records).supersedes
