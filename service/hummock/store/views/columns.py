"""The columns of a view: one value a memory, and where it stands in its session."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hummock.core.memory import MemoryKind, Origin
from hummock.store.views.growing import Growing
from hummock.store.views.row_codec import ROW, TokenSign
from hummock.text.traits import Trait
from hummock_kernels.turns import FREE, add_turns, neighbours

_FEWEST_SLOTS = 64
_DAY_S = 86_400


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TurnIndex:
    """A hash table of the turns of some columns; older columns share it with newer ones.

    Attributes:
        slots: A power of two of them, at most half of them taken.
        taken: (1,) int64, how many are.
    """

    slots: NDArray[np.int32]
    taken: NDArray[np.int64]

    @classmethod
    def of(cls, session: NDArray[np.uint64], session_position: NDArray[np.int32]) -> TurnIndex:
        """A table of all turns, with room for as many again."""
        turns = int(np.count_nonzero(session_position >= 0))
        slots = np.full(max(_FEWEST_SLOTS, 1 << (4 * turns).bit_length()), FREE, np.int32)
        return cls(slots=slots, taken=np.array([add_turns(slots, session, session_position, 0)], np.int64))

    def extended(self, session: NDArray[np.uint64], session_position: NDArray[np.int32], first: int) -> TurnIndex:
        """With the turns from ordinal `first` on; only the table of the newest columns is extended."""
        added = int(np.count_nonzero(session_position[first:] >= 0))
        if not added:
            return self
        if 2 * (int(self.taken[0]) + added) > len(self.slots):
            return TurnIndex.of(session, session_position)
        self.taken[0] += add_turns(self.slots, session, session_position, first)
        return self

    @property
    def has_any(self) -> bool:
        """Whether there is any turn at all."""
        return bool(self.taken[0])

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.slots.nbytes


COLUMNS: dict[str, Any] = {name: ROW[name] for name in ROW.names or ()} | {
    "length": np.float32,
    "chunk_start": np.int64,
    "chunk_count": np.int32,
    "alive": np.uint8,
}
"""The types of a view's columns: those of a row, and of what is counted from rows."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Columns:
    """Row i of every column is the memory of ordinal i.

    Attributes:
        doc: int64, ascending.
        kind: uint8.
        origin: uint8.
        create_time: float64 Unix seconds.
        update_time: float64 Unix seconds.
        event_time: float64 Unix seconds, NaN when not known.
        text_hash: uint64, the echo of `text.likeness.likeness`.
        id_hash: uint64 of the memory's id.
        length: float32, terms with repetitions.
        session: uint64 of the session's id, 0 without one.
        session_position: int32, -1 without a session.
        traits: uint8, `text.traits.Trait` of what was said.
        name_hash: uint64 of the name that its versions share, 0 without one.
        supersedes: uint8, 1 where it says that it replaces others.
        speaker: uint32 of the speaker's name, 0 without one.
        file: uint32 of the path of code, 0 of all else.
        helpful: uint8, voices that said so of its text. Copied, like those of `wrong`, when it changes.
        wrong: uint8, likewise.
        expire_time: float64 Unix seconds, 0 where it never ends.
        token_sign: uint8, `TokenSign`. Copied when vectors come later.
        writer: uint32 of who wrote what nobody vouches for, 0 of all else.
        apart: uint32, what it keeps apart.
        chunk_start: int64, its first vector row.
        chunk_count: int32; 0 while it waits for its vectors. Both are copied when vectors come later.
        alive: uint8, 0 when removed since. Copied when it changes: a byte of each memory.
        turns: Finds neighbours in a session.
        ids: Memory ids; longer than the view when a newer one has been made.
        live: Memories that are not removed.
        live_length: Sum of their lengths.
        by_sign: (kinds, signs) int64, how many of them are of each kind and each `TokenSign`.
        has_verdicts: Whether anything was ever said of one of the memories.
        has_writers: Whether what a `writer` wrote ever stood beside what another one did, or none.
        first_expiry: No memory that is there ends before that, in Unix seconds; infinite where none ends.
    """

    doc: Growing[np.int64]
    kind: Growing[np.uint8]
    origin: Growing[np.uint8]
    create_time: Growing[np.float64]
    update_time: Growing[np.float64]
    event_time: Growing[np.float64]
    text_hash: Growing[np.uint64]
    id_hash: Growing[np.uint64]
    length: Growing[np.float32]
    session: Growing[np.uint64]
    session_position: Growing[np.int32]
    traits: Growing[np.uint8]
    name_hash: Growing[np.uint64]
    supersedes: Growing[np.uint8]
    speaker: Growing[np.uint32]
    file: Growing[np.uint32]
    helpful: Growing[np.uint8]
    wrong: Growing[np.uint8]
    expire_time: Growing[np.float64]
    token_sign: Growing[np.uint8]
    writer: Growing[np.uint32]
    apart: Growing[np.uint32]
    chunk_start: Growing[np.int64]
    chunk_count: Growing[np.int32]
    alive: Growing[np.uint8]
    turns: TurnIndex
    ids: list[str]
    by_sign: NDArray[np.int64]
    live: int = 0
    live_length: int = 0
    has_verdicts: bool = False
    has_writers: bool = False
    first_expiry: float = math.inf

    @classmethod
    def empty(cls) -> Columns:
        """No memories."""
        columns: dict[str, Any] = {name: Growing.of(np.empty(0, dtype)) for name, dtype in COLUMNS.items()}
        turns = TurnIndex.of(np.empty(0, np.uint64), np.empty(0, np.int32))
        return cls(**columns, turns=turns, ids=[], by_sign=np.zeros(_BY_SIGN, np.int64))

    def __len__(self) -> int:
        return self.doc.size

    def extended(self, rows: NDArray[np.void], ids: Sequence[str], first_row: int) -> Columns:
        """With newer memories; `first_row` is the place of their first vector row."""
        chunk_count = rows["chunk_count"].astype(np.int64)
        chunk_start = first_row + np.cumsum(chunk_count) - chunk_count
        given = {"chunk_start": chunk_start, "alive": np.ones(len(rows), np.uint8)}
        grown: dict[str, Any] = {
            name: column.extended(given[name] if name in given else rows[name]) for name, column in self._columns()
        }
        # An aborted attempt may have left ids behind ours.
        del self.ids[len(self) :]
        self.ids.extend(ids)
        return replace(
            self,
            **grown,
            turns=self.turns.extended(grown["session"].values, grown["session_position"].values, len(self)),
            live=self.live + len(rows),
            live_length=self.live_length + int(rows["length"].sum(dtype=np.int64)),
            by_sign=self.by_sign + _by_sign(rows["kind"], rows["token_sign"], chunk_count),
            has_verdicts=self.has_verdicts or bool((rows["helpful"] | rows["wrong"]).any()),
            has_writers=self.has_writers or _differ(self.writer.values[:1], rows["writer"]),
            first_expiry=min(self.first_expiry, _first(rows["expire_time"])),
        )

    def copy_hash(self, ordinals: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Equal for copies, of which one is shown: of one text, one speaker and one owner.

        What tells of an event is of its day too; what was said in a conversation is said again on other days.
        """
        time, origin = self.event_time.values[ordinals], self.origin.values[ordinals]
        tells = ~np.isnan(time) & (origin != Origin.USER_INPUT) & (origin != Origin.AI_OUTPUT)
        day = np.where(tells, np.floor(time / _DAY_S), 0).astype(np.int64).view(np.uint64)
        apart = self.apart.values[ordinals].astype(np.uint64) << np.uint64(32)
        return self.text_hash.values[ordinals] ^ apart ^ self.speaker.values[ordinals] ^ (day << np.uint64(24))

    def judged(self, ordinals: NDArray[np.int64], rows: NDArray[np.void]) -> Columns:
        """With the verdicts of these rows on memories that are there."""
        helpful, wrong = self.helpful.values.copy(), self.wrong.values.copy()
        helpful[ordinals], wrong[ordinals] = rows["helpful"], rows["wrong"]
        return replace(self, helpful=Growing.of(helpful), wrong=Growing.of(wrong), has_verdicts=True)

    def embedded(self, ordinals: NDArray[np.int64], rows: NDArray[np.void], first_row: int) -> Columns:
        """With vectors for these memories, which had none; they begin at `first_row`, in the order of their rows."""
        count, start = self.chunk_count.values.copy(), self.chunk_start.values.copy()
        sign = self.token_sign.values.copy()
        added = rows["chunk_count"].astype(np.int64)
        count[ordinals] = added
        start[ordinals] = first_row + np.cumsum(added) - added
        sign[ordinals] = rows["token_sign"]
        longer = replace(
            self, chunk_count=Growing.of(count), chunk_start=Growing.of(start), token_sign=Growing.of(sign)
        )
        return replace(longer, by_sign=self.by_sign - self._signs(ordinals) + longer._signs(ordinals))

    def without(self, ordinals: NDArray[np.int64]) -> Columns:
        """With these memories removed; each is alive and occurs once."""
        alive = self.alive.values.copy()
        alive[ordinals] = 0
        removed_length = int(self.length.values[ordinals].sum(dtype=np.float64))
        return replace(
            self,
            alive=Growing.of(alive),
            live=self.live - len(ordinals),
            live_length=self.live_length - removed_length,
            by_sign=self.by_sign - self._signs(ordinals),
        )

    @property
    def pending(self) -> int:
        """Number of present memories without vectors yet."""
        return int(self.by_sign[:, TokenSign.PENDING].sum())

    def signs(self, ordinals: NDArray[np.int64]) -> NDArray[np.uint8]:
        """(n,) ordinals -> (n,), the `TokenSign` of each."""
        return _signs(self.token_sign.values[ordinals], self.chunk_count.values[ordinals])

    def expiring(self) -> NDArray[np.int64]:
        """Ordinals of the memories that are there and end some time."""
        found: NDArray[np.int64] = np.flatnonzero((self.expire_time.values > 0) & (self.alive.values != 0))
        return found

    def compacted(self) -> Columns:
        """The memories that are not removed, in new places."""
        kept = np.flatnonzero(self.alive.values)
        taken: dict[str, Any] = {name: column.taken(kept) for name, column in self._columns()}
        count = taken["chunk_count"].values.astype(np.int64)
        taken["chunk_start"].values[:] = np.cumsum(count) - count
        turns = TurnIndex.of(taken["session"].values, taken["session_position"].values)
        return replace(self, **taken, turns=turns, ids=[self.ids[ordinal] for ordinal in kept])

    def ordinals(self, docs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Places of these documents, ascending; those that are not there or removed are left out."""
        own = self.doc.values
        at = np.searchsorted(own, docs)
        at = np.unique(at[at < len(own)])
        present = np.isin(own[at], docs) & (self.alive.values[at] != 0)
        found: NDArray[np.int64] = at[present]
        return found

    def neighbours(self, ordinals: NDArray[np.int64]) -> NDArray[np.int64]:
        """(n,) ordinals -> (n, 2), the memories before and after each in its session; -1 where there is none."""
        session, position = self.session.values, self.session_position.values
        return neighbours(self.turns.slots, session, position, self.alive.values, ordinals)

    def asks(self, ordinals: NDArray[np.int64]) -> NDArray[np.bool_]:
        """(n,) ordinals -> (n,), whether each asks something."""
        asks: NDArray[np.bool_] = self.traits.values[ordinals] & np.uint8(Trait.ASKS | Trait.ASKS_WITHIN) != 0
        return asks

    @property
    def nbytes(self) -> int:
        """Bytes held, ids estimated."""
        return sum(column.nbytes for _, column in self._columns()) + self.turns.nbytes + 128 * len(self)

    def _signs(self, ordinals: NDArray[np.int64]) -> NDArray[np.int64]:
        """Numbers of these memories by kind and sign."""
        return _by_sign(self.kind.values[ordinals], self.token_sign.values[ordinals], self.chunk_count.values[ordinals])

    def _columns(self) -> list[tuple[str, Growing[Any]]]:
        return [(name, getattr(self, name)) for name in COLUMNS]


def _differ(first: NDArray[np.uint32], writers: NDArray[np.uint32]) -> bool:
    """Whether these are not all one, or not that of the first memory, (0,) or (1,)."""
    return bool((writers != (first if len(first) else writers[:1])).any())


def _first(expire_times: NDArray[np.float64]) -> float:
    """The earliest of these times; infinite where there is none."""
    return float(expire_times[expire_times > 0].min(initial=math.inf))


_BY_SIGN = (max(MemoryKind) + 1, max(TokenSign) + 1)


def _by_sign(kind: NDArray[Any], token_sign: NDArray[Any], chunk_count: NDArray[Any]) -> NDArray[np.int64]:
    """Numbers of some memories by kind and sign, `_BY_SIGN`."""
    counts: NDArray[np.int64] = np.zeros(_BY_SIGN, np.int64)
    np.add.at(counts, (kind, _signs(token_sign, chunk_count)), 1)
    return counts


def _signs(token_sign: NDArray[Any], chunk_count: NDArray[Any]) -> NDArray[np.uint8]:
    return np.where(chunk_count == 0, np.uint8(TokenSign.PENDING), token_sign)
