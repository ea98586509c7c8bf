"""Scans: entries read one by one for keywords, without a turn."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum, auto


class ScanScope(Enum):
    """Which entries are read."""

    UNLEARNED = auto()
    """Those without a keyword."""
    ALL = auto()
    """All of them."""
    CHOSEN = auto()
    """Those that the caller names."""


class EntryOutcome(IntEnum):
    """What became of an entry. The contract has the same numbers, and for `ScanEnd`."""

    LEARNT = 1
    """It has new keywords."""
    NOTHING_NEW = 2
    """It was read, and no new keyword was found."""
    FAILED = 3
    """The learner failed; nothing was counted."""
    GONE = 4
    """It is no entry of the project any more."""


class ScanEnd(IntEnum):
    """Why a scan is over."""

    DONE = 1
    """All entries were read."""
    NO_LEARNER = 2
    """There is nobody who could learn, so that nothing was read."""
    OFF = 3
    """Learning is off."""
    FAILING = 4
    """The learner failed again and again; asking again goes on with the entries that are left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryLearnt:
    """What a scan made of an entry.

    Attributes:
        keywords: Those that are new.
        reason: Why the learner failed, without what it was asked or said; else empty.
    """

    memory_id: str
    outcome: EntryOutcome
    keywords: tuple[str, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanProgress:
    """How far a scan is.

    Attributes:
        total: Entries that it reads, as far as it knows by now.
        learnt: Those that it has read since one looked last, in order.
        end: Why it is over; None while it runs.
        reason: For people; empty unless it is over.
    """

    total: int
    learnt: tuple[EntryLearnt, ...]
    end: ScanEnd | None
    reason: str = ""
