"""Which memories of a view pass a filter, and which turns are too recent to be recalled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import lmdb
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from hummock.core import facets
from hummock.core.candidates import SessionWindow
from hummock.core.memory import Filter, MemoryKind, Origin
from hummock.store.lmdb import keys
from hummock.store.lmdb.environment import Tables
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
    alone = {name: replace(none, **{name: getattr(where, name)}) for name in Filter.__struct_fields__}
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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LastTurns:
    """The memories of some turns.

    Attributes:
        ordinals: (n,) int64.
        turns_ago: (n,) int64, 1 for the last turn.
    """

    ordinals: NDArray[np.int64]
    turns_ago: NDArray[np.int64]

    def leave_out(self, allowed: Flags) -> int:
        """Clears the flags of these memories; how many of them were set."""
        passing = int(np.count_nonzero(allowed[self.ordinals]))
        allowed[self.ordinals] = 0
        return passing

    def turn_of(self, ordinal: int) -> int:
        """How many turns ago it was said; 0 of a memory that is none of these."""
        return int(self.turns_ago[self.ordinals == ordinal].sum())


_NONE = LastTurns(ordinals=np.empty(0, np.int64), turns_ago=np.empty(0, np.int64))


def last_turns(view: ProjectView, window: SessionWindow | None, numbers_of: TermNumbers) -> LastTurns:
    """What was said in a window. A turn begins with each memory of origin USER_INPUT; other origins are in none."""
    if window is None:
        return _NONE
    columns = view.columns
    said = np.flatnonzero(holding(view, [facets.session(window.session_id)], numbers_of) & columns.alive.values)
    origins = columns.origin.values[said]
    said = said[(origins == Origin.USER_INPUT) | (origins == Origin.AI_OUTPUT)]
    positions = columns.session_position.values[said]
    users = np.sort(positions[columns.origin.values[said] == Origin.USER_INPUT])
    turns_ago = 1 + len(users) - np.searchsorted(users, positions, side="right")
    is_inside = turns_ago <= window.turns
    return LastTurns(ordinals=said[is_inside], turns_ago=turns_ago[is_inside])


MOST_TERMS = 32_768
"""Of all projects together: some 6 MB."""


class Dictionary:
    """Terms' numbers by project. A term's number never changes, so any transaction, and any time, will do for any view.

    Safe to call from several threads: what two of them look up is the same, and one that is counted twice goes earlier.
    """

    def __init__(self, tables: Tables, most_terms: int = MOST_TERMS) -> None:
        """Keeps at most so many, and some of each thread; then it begins again."""
        self._tables = tables
        self._most_terms = most_terms
        self._known: dict[int, dict[str, int]] = {}
        self._held = 0

    def of(self, txn: lmdb.Transaction[bytes], project: int) -> TermNumbers:
        """A project's, by its number; what is not known yet is read, what nothing has ever held is asked for again."""
        known = self._known.setdefault(project, {})

        def numbers_of(terms: Sequence[str]) -> list[int | None]:
            found = [known.get(term) for term in terms]
            return [
                self._read(txn, project, term) if number is None else number
                for term, number in zip(terms, found, strict=True)
            ]

        return numbers_of

    def _read(self, txn: lmdb.Transaction[bytes], project: int, term: str) -> int | None:
        value = txn.get(keys.name_key(project, term), db=self._tables.term)
        if value is None:
            return None
        number = int.from_bytes(value, "little")
        if self._held >= self._most_terms:
            self._known, self._held = {}, 0
        self._known.setdefault(project, {})[term] = number
        self._held += 1
        return number
