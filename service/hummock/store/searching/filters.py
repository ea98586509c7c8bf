"""Which memories of a view pass a filter."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, replace

import numpy as np
from numpy.typing import NDArray

from hummock.core import facets
from hummock.core.memory import Filter, MemoryKind, Origin
from hummock.store.views.columns import id_hash
from hummock.store.views.view import ProjectView

_EVERY_KIND = frozenset(MemoryKind)
_EVERY_ORIGIN = frozenset(Origin)

Flags = NDArray[np.uint8]
TermNumbers = Callable[[Sequence[str]], list[int | None]]
"""Terms' numbers in the project, in order; None for what nothing has ever held."""


def passing(view: ProjectView, where: Filter, numbers_of: TermNumbers) -> Flags:
    """(memories,) uint8, 1 for every memory that is there and passes."""
    columns = view.columns
    allowed = columns.alive.values.copy()
    if where.kinds and where.kinds != _EVERY_KIND:
        allowed &= _any_of(columns.kind.values, where.kinds)
    if where.origins and where.origins != _EVERY_ORIGIN:
        allowed &= _any_of(columns.origin.values, where.origins)
    if where.created_after is not None:
        allowed &= columns.create_time.values >= where.created_after
    if where.created_before is not None:
        allowed &= columns.create_time.values < where.created_before
    for tag in where.tags:
        allowed &= holding(view, [facets.tag(tag)], numbers_of)
    for facet, names in (
        (facets.session, where.session_ids),
        (facets.path, where.paths),
        (facets.speaker, where.speakers),
    ):
        if names:
            allowed &= holding(view, [facet(name) for name in names], numbers_of)
    _exclude(view, where.excluded_ids, allowed)
    return allowed


def failed_conditions(view: ProjectView, where: Filter, numbers_of: TermNumbers, ordinal: int) -> tuple[str, ...]:
    """Names of the fields whose condition a memory does not meet."""
    none = Filter()
    alone = {field.name: replace(none, **{field.name: getattr(where, field.name)}) for field in fields(Filter)}
    return tuple(
        name
        for name, condition in alone.items()
        if condition != none and not passing(view, condition, numbers_of)[ordinal]
    )


def holding(view: ProjectView, terms: Sequence[str], numbers_of: TermNumbers) -> Flags:
    """(memories,) uint8, 1 for every memory that holds any of the terms, removed or not."""
    return marked(view, (number for number in numbers_of(terms) if number is not None))


def marked(view: ProjectView, numbers: Iterable[int]) -> Flags:
    """(memories,) uint8, 1 for every memory that holds a term of these numbers, removed or not."""
    out = np.zeros(len(view.columns), np.uint8)
    for number in numbers:
        view.postings.mark(number, out)
    return out


def _any_of(column: NDArray[np.uint8], values: Iterable[int]) -> NDArray[np.bool_]:
    # A few comparisons are a tenth of one gather.
    out = np.zeros(len(column), np.bool_)
    for value in values:
        out |= column == value
    return out


def _exclude(view: ProjectView, excluded_ids: Sequence[str], allowed: Flags) -> None:
    if not excluded_ids:
        return
    hashes = np.array([id_hash(memory_id) for memory_id in excluded_ids], np.uint64)
    excluded = frozenset(excluded_ids)
    for ordinal in np.flatnonzero(np.isin(view.columns.id_hash.values, hashes)):
        if view.columns.ids[ordinal] in excluded:
            allowed[ordinal] = 0
