"""The columns of a view: one value per memory, and the indexes of session turns and of times of events."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import ArrayLike, NDArray

from hummock.core.candidates import MemoryColumns, dtypes_of
from hummock.core.memory import MemoryKind, Origin
from hummock.store.growing import Growing
from hummock.store.tables.row_codec import TokenSign
from hummock_kernels.gather import Memories
from hummock_kernels.turns import FREE, add_turns, neighbours

_FEWEST_SLOTS = 64
_FEWEST_BEHIND = 4096
_BEHIND_ONE_IN = 16
"""Memories newer than the index are scanned; above this number and this share of all, the index is rebuilt."""
_IS_TURN = np.isin(np.arange(256), (Origin.USER_INPUT, Origin.AI_OUTPUT)).astype(np.uint8)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TurnIndex:
    """Hash table of the session turns of a view's columns, shared by older and newer columns."""

    slots: NDArray[np.int32]  # Power-of-two length, at most half occupied.
    taken: NDArray[np.int64]  # (1,) int64, number of occupied slots.

    @classmethod
    def of(cls, session: NDArray[np.uint64], session_position: NDArray[np.int32]) -> TurnIndex:
        """A table of all turns, with room for as many again."""
        turns = int(np.count_nonzero(session_position >= 0))
        slots = np.full(max(_FEWEST_SLOTS, 1 << (4 * turns).bit_length()), FREE, np.int32)
        return cls(slots=slots, taken=np.array([add_turns(slots, session, session_position, 0)], np.int64))

    def extended(self, session: NDArray[np.uint64], session_position: NDArray[np.int32], first: int) -> TurnIndex:
        """The table with the turns from ordinal `first` on; only that of the newest columns may be extended."""
        added = int(np.count_nonzero(session_position[first:] >= 0))
        if not added:
            return self
        if 2 * (int(self.taken[0]) + added) > len(self.slots):
            return TurnIndex.of(session, session_position)
        self.taken[0] += add_turns(self.slots, session, session_position, first)
        return self

    @property
    def has_any(self) -> bool:
        """Whether the table has any turn."""
        return bool(self.taken[0])

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.slots.nbytes


class Columns(MemoryColumns, frozen=True, kw_only=True, eq=False):
    """Columns of a view; row i of each belongs to the memory of ordinal i.

    Columns that change are copied: `helpful` and `wrong`, `alive`, and the vector columns when vectors come later.
    """

    chunk_start: NDArray[np.int64]  # First vector row of the memory.
    alive: NDArray[np.uint8]  # 0 once the memory is removed.
    grown: dict[str, Growing[Any]]  # All columns with their spare room.
    turns: TurnIndex  # Finds neighbours in a session.
    ids: list[str]  # Memory ids; longer than the view once a newer view exists.
    by_sign: NDArray[np.int64]  # (kinds, signs) int64, their number by kind and `TokenSign`.
    live: int = 0  # Number of memories not removed.
    live_length: int = 0  # Sum of their lengths.
    live_pinned: int = 0  # Number of those that are pinned.
    has_verdicts: bool = False  # Whether any memory ever had a verdict.
    has_writers: bool = False  # Whether memories ever differed in `writer`; no writer counts as one.
    # Lower bound on the expiry times of present memories, Unix seconds; infinite if none expires.
    first_expiry: float = math.inf

    @classmethod
    def empty(cls) -> Columns:
        """Columns without memories."""
        grown = {name: Growing.of(np.empty(0, dtype)) for name, dtype in COLUMNS.items()}
        turns = TurnIndex.of(np.empty(0, np.uint64), np.empty(0, np.int32))
        return cls(**values_of(grown), grown=grown, turns=turns, ids=[], by_sign=np.zeros(_BY_SIGN, np.int64))

    def extended(self, rows: NDArray[np.void], ids: Sequence[str], first_row: int) -> Columns:
        """The columns with newer memories; `first_row` is their first vector row."""
        chunk_count = rows["chunk_count"].astype(np.int64)
        chunk_start = first_row + np.cumsum(chunk_count) - chunk_count
        given = {"chunk_start": chunk_start, "alive": np.ones(len(rows), np.uint8)}
        grown = {
            name: column.extended(given[name] if name in given else rows[name]) for name, column in self.grown.items()
        }
        # An aborted attempt may have left ids after ours.
        del self.ids[len(self) :]
        self.ids.extend(ids)
        return self._with(
            grown,
            turns=self.turns.extended(grown["session"].values, grown["session_position"].values, len(self)),
            live=self.live + len(rows),
            live_length=self.live_length + int(rows["length"].sum(dtype=np.int64)),
            live_pinned=self.live_pinned + int(np.count_nonzero(rows["pinned"])),
            by_sign=self.by_sign + _by_sign(rows["kind"], rows["token_sign"], chunk_count),
            has_verdicts=self.has_verdicts or bool((rows["helpful"] | rows["wrong"]).any()),
            has_writers=self.has_writers or _differ(self.writer[:1], rows["writer"]),
            first_expiry=min(self.first_expiry, _first(rows["expire_time"])),
        )

    @property
    def memories(self) -> Memories:
        """The columns that candidates have, for `hummock_kernels.gather`."""
        return Memories(
            alive=self.alive,
            doc=self.doc,
            create_time=self.create_time,
            event_time=self.event_time,
            text_hash=self.text_hash,
            apart=self.apart,
            session=self.session,
            session_position=self.session_position,
            kind=self.kind,
            origin=self.origin,
            traits=self.traits,
            name_hash=self.name_hash,
            speaker=self.speaker,
            file=self.file,
            is_turn=_IS_TURN,
        )

    def voices(self, ordinals: NDArray[np.int64]) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        """Numbers of helpful and of wrong verdicts on these memories; (0,) each if there never were any."""
        if not self.has_verdicts:
            return self.helpful[:0], self.wrong[:0]
        return self.helpful[ordinals], self.wrong[ordinals]

    def judged(self, ordinals: NDArray[np.int64], rows: NDArray[np.void]) -> Columns:
        """The columns with the verdicts of these rows for existing memories."""
        verdicts = {name: self._copied(name, ordinals, rows[name]) for name in ("helpful", "wrong")}
        return self._with(verdicts, has_verdicts=True)

    def embedded(self, ordinals: NDArray[np.int64], rows: NDArray[np.void], first_row: int) -> Columns:
        """The columns with vectors for memories that had none; these begin at `first_row`, in the order of `rows`."""
        added = rows["chunk_count"].astype(np.int64)
        changed = {
            "chunk_count": self._copied("chunk_count", ordinals, added),
            "chunk_start": self._copied("chunk_start", ordinals, first_row + np.cumsum(added) - added),
            "token_sign": self._copied("token_sign", ordinals, rows["token_sign"]),
        }
        by_sign = _by_sign(self.kind[ordinals], rows["token_sign"], added)
        return self._with(changed, by_sign=self.by_sign - self._signs(ordinals) + by_sign)

    def without(self, ordinals: NDArray[np.int64]) -> Columns:
        """The columns with these memories removed; each is alive and occurs once."""
        return self._with(
            {"alive": self._copied("alive", ordinals, 0)},
            live=self.live - len(ordinals),
            live_length=self.live_length - int(self.length[ordinals].sum(dtype=np.float64)),
            live_pinned=self.live_pinned - int(np.count_nonzero(self.pinned[ordinals])),
            by_sign=self.by_sign - self._signs(ordinals),
        )

    @property
    def pending(self) -> int:
        """Number of present memories without vectors yet."""
        return int(self.by_sign[:, TokenSign.PENDING].sum())

    def expiring(self) -> NDArray[np.int64]:
        """Ordinals of the present memories with an expiry time."""
        found: NDArray[np.int64] = np.flatnonzero((self.expire_time > 0) & (self.alive != 0))
        return found

    def compacted(self) -> Columns:
        """The columns without removed memories; ordinals change."""
        kept = np.flatnonzero(self.alive)
        taken = {name: column.taken(kept) for name, column in self.grown.items()}
        count = taken["chunk_count"].values.astype(np.int64)
        taken["chunk_start"].values[:] = np.cumsum(count) - count
        turns = TurnIndex.of(taken["session"].values, taken["session_position"].values)
        return self._with(taken, turns=turns, ids=[self.ids[ordinal] for ordinal in kept])

    def ordinals(self, docs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Ordinals of these documents, ascending; missing and removed ones are left out."""
        own = self.doc
        at = np.searchsorted(own, docs)
        at = np.unique(at[at < len(own)])
        present = np.isin(own[at], docs) & (self.alive[at] != 0)
        found: NDArray[np.int64] = at[present]
        return found

    def neighbours(self, ordinals: NDArray[np.int64]) -> NDArray[np.int64]:
        """(n,) ordinals -> (n, 2), the memories before and after each in its session; -1 where there is none."""
        session, position = self.session, self.session_position
        return neighbours(self.turns.slots, session, position, self.alive, ordinals)

    @property
    def nbytes(self) -> int:
        """Bytes held, ids estimated."""
        return sum([column.values.nbytes for column in self.grown.values()]) + self.turns.nbytes + 128 * len(self)

    def _signs(self, ordinals: NDArray[np.int64]) -> NDArray[np.int64]:
        return _by_sign(self.kind[ordinals], self.token_sign[ordinals], self.chunk_count[ordinals])

    def _copied(self, name: str, ordinals: NDArray[np.int64], values: ArrayLike) -> Growing[Any]:
        copy = getattr(self, name).copy()
        copy[ordinals] = values
        return Growing.of(copy)

    def _with(self, grown: dict[str, Growing[Any]], **changed: Any) -> Columns:
        return replace(self, **values_of(grown), grown=self.grown | grown, **changed)


COLUMNS = {name: dtype for name, dtype in dtypes_of(Columns).items() if name != "by_sign"}
"""Dtypes of a view's columns: those of a stored row, and `chunk_start` and `alive`."""


def values_of(grown: dict[str, Growing[Any]]) -> dict[str, Any]:
    """The visible part of each column."""
    return {name: column.values for name, column in grown.items()}


def _differ(first: NDArray[np.uint32], writers: NDArray[np.uint32]) -> bool:
    """Whether the writers differ from each other, or from the first memory's writer, (0,) or (1,)."""
    return bool((writers != (first if len(first) else writers[:1])).any())


def _first(expire_times: NDArray[np.float64]) -> float:
    return float(expire_times[expire_times > 0].min(initial=math.inf))


_BY_SIGN = (max(MemoryKind) + 1, max(TokenSign) + 1)


def _by_sign(kind: NDArray[Any], token_sign: NDArray[Any], chunk_count: NDArray[Any]) -> NDArray[np.int64]:
    """Number of memories by kind and sign, shape `_BY_SIGN`."""
    counts: NDArray[np.int64] = np.zeros(_BY_SIGN, np.int64)
    np.add.at(counts, (kind, _signs(token_sign, chunk_count)), 1)
    return counts


def _signs(token_sign: NDArray[Any], chunk_count: NDArray[Any]) -> NDArray[np.uint8]:
    return np.where(chunk_count == 0, np.uint8(TokenSign.PENDING), token_sign)


def event_times(columns: Columns, first: int = 0) -> NDArray[np.float64]:
    """Event time of each memory from ordinal `first` on, Unix seconds; else a turn's creation time, or NaN."""
    event_time = columns.event_time[first:]
    is_untold = np.isnan(event_time) & (columns.session[first:] != 0)
    return np.where(is_untold, columns.create_time[first:], event_time)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Order:
    """Index of the memories with a time among the first `size`."""

    times: NDArray[np.float64]  # (m,) float64, ascending.
    ordinals: NDArray[np.int32]  # (m,) int32 of the same memories.
    size: int  # Number of memories indexed; higher ordinals are not included.


_NO_ORDER = _Order(times=np.empty(0, np.float64), ordinals=np.empty(0, np.int32), size=0)


class EventTimes:
    """Finds memories by the times of their events. Shared by the views of one lineage.

    The index is built when a query first names a time, and again when too many memories are newer. Thread-safe: it
    is replaced atomically, and the ordinals of a lineage are stable.
    """

    __slots__ = ("_order",)

    def __init__(self) -> None:
        self._order = _NO_ORDER

    def between(self, columns: Columns, start: float, end: float) -> NDArray[np.int64]:
        """Ordinals with times from `start` to `end`, exclusive, Unix seconds or infinite; removed ones too."""
        order = self._of(columns)
        first, last = np.searchsorted(order.times, (start, end))
        found = order.ordinals[first:last].astype(np.int64)
        if order.size >= len(columns):
            return found[found < len(columns)]
        newer = event_times(columns, order.size)
        return np.concatenate([found, order.size + np.flatnonzero((newer >= start) & (newer < end))])

    def _of(self, columns: Columns) -> _Order:
        order = self._order
        behind = len(columns) - order.size
        if behind > max(_FEWEST_BEHIND, len(columns) // _BEHIND_ONE_IN):
            times = event_times(columns)
            ordinals = np.flatnonzero(~np.isnan(times)).astype(np.int32)
            places = np.argsort(times[ordinals], kind="stable")
            order = _Order(times=times[ordinals][places], ordinals=ordinals[places], size=len(columns))
            self._order = order
        return order
