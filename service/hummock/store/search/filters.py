"""Selection of a view's memories: by a filter, by a window of session turns, by substrings of their texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from hummock.core import facets
from hummock.core.candidates import SessionWindow
from hummock.core.memory import CodeFragment, DomainKnowledge, Filter, LearningRecord, Memory, MemoryKind, Origin
from hummock.store.limits import MAX_SUBSTRING_BYTES
from hummock.store.tables.reads import TableProject
from hummock.store.tables.recent import Records
from hummock.store.tables.row_codec import id_hash
from hummock.store.views.postings import NO_TERM
from hummock.store.views.view import ProjectView

_EVERY_KIND = frozenset(MemoryKind)
_EVERY_ORIGIN = frozenset(Origin)

Flags = NDArray[np.uint8]


def passing(view: ProjectView, where: Filter, stored: TableProject) -> Flags:
    """(memories,) uint8, 1 for every present memory that passes; read-only."""
    known = view.kept_flags.of(where)
    return view.kept_flags.keep(where, _passing(view, where, stored)) if known is None else known


def _passing(view: ProjectView, where: Filter, stored: TableProject) -> Flags:
    columns = view.columns
    allowed = columns.alive.copy()
    if where.kinds and where.kinds != _EVERY_KIND:
        allowed &= _any_of(columns.kind, where.kinds)
    if where.origins and where.origins != _EVERY_ORIGIN:
        allowed &= _any_of(columns.origin, where.origins)
    if where.pinned:
        allowed &= columns.pinned
    if where.created_after is not None:
        allowed &= columns.create_time >= where.created_after
    if where.created_before is not None:
        allowed &= columns.create_time < where.created_before
    if where.event_after is not None or where.event_before is not None:
        allowed &= _told_within(view, where)
    for tag in where.tags:
        allowed &= holding(view, [facets.tag(tag)], stored)
    for name, value in where.metadata:
        allowed &= holding(view, [facets.metadata(name, value)], stored)
    if where.paths:
        allowed &= _at(view, where.paths, stored)
    for facet, names in (
        (facets.session, where.session_ids),
        (facets.speaker, where.speakers),
        (facets.writer, where.writers),
    ):
        if names:
            allowed &= holding(view, [facet(name) for name in names], stored)
    _exclude(view, where.excluded_ids, allowed)
    return allowed


def _told_within(view: ProjectView, where: Filter) -> Flags:
    start = -np.inf if where.event_after is None else where.event_after
    end = np.inf if where.event_before is None else where.event_before
    out = np.zeros(len(view.columns), np.uint8)
    out[view.event_times.between(view.columns, start, end)] = 1
    return out


def _at(view: ProjectView, paths: Sequence[str], stored: TableProject) -> Flags:
    out = holding(view, [facets.path(name) for name in paths if not facets.is_folder(name)], stored)
    for folder in filter(facets.is_folder, paths):
        numbers = stored.numbers_behind(facets.below(folder)).values()
        view.postings.mark_any(np.fromiter(numbers, np.uint32, len(numbers)), out)
    return out


def failed_conditions(view: ProjectView, where: Filter, stored: TableProject, ordinal: int) -> tuple[str, ...]:
    """Names of the filter's fields whose conditions a memory does not meet."""
    none = Filter()
    alone = {name: replace(none, **{name: getattr(where, name)}) for name in Filter.__struct_fields__}
    return tuple(
        name for name, condition in alone.items() if condition != none and not passing(view, condition, stored)[ordinal]
    )


def superseded_by(view: ProjectView, stored: TableProject, ordinal: int) -> tuple[str, ...]:
    """Ids of the memories that replace a memory, in the order of their writes."""
    superseded = view.superseded(stored)
    return () if superseded is None else tuple(view.columns.ids[one] for one in superseded.by.get(ordinal, ()))


def holding(view: ProjectView, terms: Sequence[str], stored: TableProject) -> Flags:
    """(memories,) uint8, 1 for every memory that contains any of the terms, removed or not."""
    numbers = view.kept_terms.numbers(terms, stored.term_numbers)
    return marked(view, numbers[numbers != NO_TERM].tolist())


def marked(view: ProjectView, numbers: Iterable[int]) -> Flags:
    """(memories,) uint8, 1 for every memory that contains a term of these numbers, removed or not."""
    out = np.zeros(len(view.columns), np.uint8)
    for number in numbers:
        view.postings.mark(number, out)
    return out


def _any_of(column: NDArray[np.uint8], values: Iterable[int]) -> NDArray[np.bool_]:
    # A few comparisons take a tenth of the time of one gather.
    out = np.zeros(len(column), np.bool_)
    for value in values:
        out |= column == value
    return out


def _exclude(view: ProjectView, excluded_ids: Sequence[str], allowed: Flags) -> None:
    if not excluded_ids:
        return
    hashes = np.array([id_hash(memory_id) for memory_id in excluded_ids], np.uint64)
    excluded = frozenset(excluded_ids)
    for ordinal in np.flatnonzero(np.isin(view.columns.id_hash, hashes)):
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

    def left_out(self, allowed: Flags) -> tuple[Flags, int]:
        """The flags without these memories, and the number of them that were set."""
        passing = int(np.count_nonzero(allowed[self.ordinals]))
        if passing:
            allowed = allowed.copy()
            allowed[self.ordinals] = 0
        return allowed, passing

    def turn_of(self, ordinal: int) -> int:
        """Number of turns since the memory's own, counting it; 0 for a memory not among these."""
        return int(self.turns_ago[self.ordinals == ordinal].sum())


_NONE = LastTurns(ordinals=np.empty(0, np.int64), turns_ago=np.empty(0, np.int64))


def last_turns(view: ProjectView, window: SessionWindow | None, stored: TableProject) -> LastTurns:
    """The memories in a window of a session's last turns.

    A turn begins with each memory of origin USER_INPUT; only USER_INPUT and AI_OUTPUT belong to turns.
    """
    if window is None:
        return _NONE
    columns = view.columns
    said = np.flatnonzero(holding(view, [facets.session(window.session_id)], stored) & columns.alive)
    origins = columns.origin[said]
    said = said[(origins == Origin.USER_INPUT) | (origins == Origin.AI_OUTPUT)]
    positions = columns.session_position[said]
    users = np.sort(positions[columns.origin[said] == Origin.USER_INPUT])
    turns_ago = 1 + len(users) - np.searchsorted(users, positions, side="right")
    is_inside = turns_ago <= window.turns
    return LastTurns(ordinals=said[is_inside], turns_ago=turns_ago[is_inside])


class SubstringScan:
    """Searches texts for substrings until enough are found or the byte limit is reached.

    Case is ignored for A to Z only.
    """

    def __init__(
        self,
        substrings: Sequence[str],
        read: Callable[[int], Records],
        decoded: Callable[[Records], Memory],
        byte_limit: int,
    ) -> None:
        """Create a scan for at most 32 strings. `read` returns empty records for a removed document."""
        self._wanted = [_folded(text.encode()) for text in substrings]
        self._read = read
        self._decoded = decoded
        self._left = byte_limit
        self._known: dict[int, int] = {}

    @property
    def is_cut(self) -> bool:
        """Whether the byte limit left texts unread."""
        return self._left < 0

    def first(self, docs: Sequence[int], limit: int) -> list[int]:
        """The first documents that contain any of the strings, in order, at most `limit`."""
        found: list[int] = []
        for doc in docs:
            if len(found) >= limit or self.is_cut:
                break
            if self.held(doc):
                found.append(doc)
        return found

    def held(self, doc: int) -> int:
        """Bit mask of the strings that the document contains; 0 beyond the byte limit."""
        if doc not in self._known and not self.is_cut:
            self._known[doc] = self._look(doc)
        return self._known.get(doc, 0)

    def _look(self, doc: int) -> int:
        records = self._read(doc)
        self._left -= sum(map(len, records))
        # The records contain more than is searched, but without a match in them decoding is unnecessary.
        if self.is_cut or not self._bits(_folded(record) for record in records):
            return 0
        return self._bits(_folded(text.encode()) for text in _searched(self._decoded(records)))

    def _bits(self, texts: Iterator[bytes]) -> int:
        bits = 0
        for text in texts:
            for place, wanted in enumerate(self._wanted):
                if wanted in text:
                    bits |= 1 << place
        return bits


def scan_for(substrings: Sequence[str], stored: TableProject) -> SubstringScan:
    """A scan of a project's texts with the byte limit of one group."""
    return SubstringScan(substrings, partial(stored.records, full=True), stored.decoded, MAX_SUBSTRING_BYTES)


def holds_name(stored: TableProject, doc: int, name: str) -> bool:
    """Whether a document's text contains a name exactly, and not as part of a longer one."""
    records = stored.records(doc, full=True)
    if not any(name.encode() in record for record in records):
        return False
    whole = re.compile(rf"(?<![A-Za-z0-9_]){re.escape(name)}(?![A-Za-z0-9_])")
    return any(whole.search(text) for text in _searched(stored.decoded(records)))


def _folded(text: bytes) -> bytes:
    """UTF-8 with A to Z in lower case; no other character contains these bytes."""
    return text.lower()


def _searched(memory: Memory) -> Iterator[str]:
    """Texts of a memory that are searched: not its raw text, files, id or session."""
    yield from (memory.index.title, *memory.index.tags)
    if memory.payload is None:
        return
    yield memory.payload.content
    match memory.payload.detail:
        case LearningRecord(question=question, answer=answer):
            yield from (question, answer)
        case DomainKnowledge(domain=domain, aliases=aliases, summary=summary):
            yield from (domain, *aliases, summary)
        case CodeFragment(path=path, symbol=symbol):
            yield from (path, symbol)
        case None:
            pass


def page_of(
    docs: NDArray[np.int64], after: int, limit: int, *, newest_first: bool, scan: SubstringScan | None
) -> tuple[list[int], int | None]:
    """The documents of a page, and the position after which the next page begins; None if there is none.

    Args:
        docs: Documents that pass the filter, ascending.
        after: End of the previous page; 0 for the first.
        limit: At least 1.
        newest_first: Whether the page is in descending order.
        scan: Selects texts by substring; the page ends early at its byte limit.
    """
    if newest_first:
        ordered = docs[: np.searchsorted(docs, after) if after else None][::-1]
    else:
        ordered = docs[np.searchsorted(docs, after, side="right") :]
    if scan is None:
        found = ordered[: limit + 1].tolist()
        return found[:limit], found[limit - 1] if len(found) > limit else None
    return _holding(ordered, after, limit, scan)


def _holding(ordered: NDArray[np.int64], after: int, limit: int, scan: SubstringScan) -> tuple[list[int], int | None]:
    found: list[int] = []
    read = after
    for doc in map(int, ordered):
        is_held = bool(scan.held(doc))
        if scan.is_cut or (is_held and len(found) == limit):
            return found, read
        if is_held:
            found.append(doc)
        read = doc
    return found, None
