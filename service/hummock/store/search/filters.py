"""Which memories of a view pass: by a filter, by the turns of a session, by what stands in their texts."""

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
from hummock.store.views.postings import NO_TERM
from hummock.store.views.row_codec import id_hash
from hummock.store.views.stored import Records, StoredProject
from hummock.store.views.view import ProjectView

_EVERY_KIND = frozenset(MemoryKind)
_EVERY_ORIGIN = frozenset(Origin)

Flags = NDArray[np.uint8]


def passing(view: ProjectView, where: Filter, stored: StoredProject) -> Flags:
    """(memories,) uint8, 1 for every memory that is there and passes; not to be written to."""
    known = view.kept_flags.of(where)
    return view.kept_flags.keep(where, _passing(view, where, stored)) if known is None else known


def _passing(view: ProjectView, where: Filter, stored: StoredProject) -> Flags:
    columns = view.columns
    allowed = columns.alive.copy()
    if where.kinds and where.kinds != _EVERY_KIND:
        allowed &= _any_of(columns.kind, where.kinds)
    if where.origins and where.origins != _EVERY_ORIGIN:
        allowed &= _any_of(columns.origin, where.origins)
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
    for facet, names in (
        (facets.session, where.session_ids),
        (facets.path, where.paths),
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
    out[view.told_times.between(view.columns, start, end)] = 1
    return out


def failed_conditions(view: ProjectView, where: Filter, stored: StoredProject, ordinal: int) -> tuple[str, ...]:
    """Names of the fields whose condition a memory does not meet."""
    none = Filter()
    alone = {name: replace(none, **{name: getattr(where, name)}) for name in Filter.__struct_fields__}
    return tuple(
        name for name, condition in alone.items() if condition != none and not passing(view, condition, stored)[ordinal]
    )


def superseded_by(view: ProjectView, stored: StoredProject, ordinal: int) -> tuple[str, ...]:
    """Ids of the memories that replace a memory, in the order of their writes."""
    superseded = view.superseded(stored)
    return () if superseded is None else tuple(view.columns.ids[one] for one in superseded.by.get(ordinal, ()))


def holding(view: ProjectView, terms: Sequence[str], stored: StoredProject) -> Flags:
    """(memories,) uint8, 1 for every memory that holds any of the terms, removed or not."""
    numbers = view.kept_terms.numbers(terms, stored.term_numbers)
    return marked(view, numbers[numbers != NO_TERM].tolist())


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
        """The flags without those of these memories, and how many of them were set."""
        passing = int(np.count_nonzero(allowed[self.ordinals]))
        if passing:
            allowed = allowed.copy()
            allowed[self.ordinals] = 0
        return allowed, passing

    def turn_of(self, ordinal: int) -> int:
        """How many turns ago it was said; 0 of a memory that is none of these."""
        return int(self.turns_ago[self.ordinals == ordinal].sum())


_NONE = LastTurns(ordinals=np.empty(0, np.int64), turns_ago=np.empty(0, np.int64))


def last_turns(view: ProjectView, window: SessionWindow | None, stored: StoredProject) -> LastTurns:
    """What was said in a window. A turn begins with each memory of origin USER_INPUT; other origins are in none."""
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
    """Reads texts until enough of them are found, or too much was read.

    Letters of A to Z are the same in either case; else the strings must stand in the text as they are.
    """

    def __init__(
        self,
        substrings: Sequence[str],
        read: Callable[[int], Records],
        decoded: Callable[[Records], Memory],
        byte_limit: int,
    ) -> None:
        """Looks for at most 32 strings. What `read` gives of a document that was removed since is empty."""
        self._wanted = [_folded(text.encode()) for text in substrings]
        self._read = read
        self._decoded = decoded
        self._left = byte_limit
        self._known: dict[int, int] = {}

    @property
    def is_cut(self) -> bool:
        """Whether there were texts that could not be read within the limit."""
        return self._left < 0

    def first(self, docs: Sequence[int], limit: int) -> list[int]:
        """The first of these documents that hold any of the strings, in order."""
        found: list[int] = []
        for doc in docs:
            if len(found) >= limit or self.is_cut:
                break
            if self.held(doc):
                found.append(doc)
        return found

    def held(self, doc: int) -> int:
        """Bit i is set when the document holds string i; 0 for what is beyond the limit."""
        if doc not in self._known and not self.is_cut:
            self._known[doc] = self._look(doc)
        return self._known.get(doc, 0)

    def _look(self, doc: int) -> int:
        records = self._read(doc)
        self._left -= sum(map(len, records))
        # The records hold more than is searched; but what they do not hold need not be decoded.
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


def scan_for(substrings: Sequence[str], stored: StoredProject) -> SubstringScan:
    """A scan of a project's texts, as far as a group may read them."""
    return SubstringScan(substrings, partial(stored.records, full=True), stored.decoded, MAX_SUBSTRING_BYTES)


def holds_name(stored: StoredProject, doc: int, name: str) -> bool:
    """Whether a document's text holds a name as it is written, and not as a part of a longer one."""
    records = stored.records(doc, full=True)
    if not any(name.encode() in record for record in records):
        return False
    whole = re.compile(rf"(?<![A-Za-z0-9_]){re.escape(name)}(?![A-Za-z0-9_])")
    return any(whole.search(text) for text in _searched(stored.decoded(records)))


def _folded(text: bytes) -> bytes:
    """UTF-8 with A to Z in small letters; no other character has bytes of theirs."""
    return text.lower()


def _searched(memory: Memory) -> Iterator[str]:
    """What a memory is found by: not its raw text, its files, its id or its session."""
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
    """The documents of a page, and behind which document the next one begins; None when there is no next one.

    Args:
        docs: Those that pass the filter, ascending.
        after: Where the page before ended; 0 for the first.
        limit: At least 1.
        newest_first: Whether the page goes down.
        scan: Tells which texts hold what is looked for; when it has read enough, the page ends early.
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
