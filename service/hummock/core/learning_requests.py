"""Requests to a project's learning and their replies, as values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum, auto

from hummock.core.learning import Injection, KeywordsSet, LearningSettings, LearningState, Profile, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryState:
    """An entry and all that is known of its learning; `profile` is None when it was never analysed."""

    memory_id: str
    title: str
    profile: Profile | None
    injection: Injection


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningPage:
    """Some entries of a project, in the order of their writes.

    Attributes:
        turn: For which the injections are decided.
        next_after: Asks for the entries behind these; None on the last page.
    """

    state: LearningState
    turn: int
    entries: tuple[EntryState, ...]
    next_after: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsChanges:
    """Numbers of the loop to change; None leaves one as it is."""

    high_above: int | None = None
    mid_above: int | None = None
    mid_cooldown_turns: int | None = None
    low_cooldown_turns: int | None = None
    min_similarity: float | None = None
    candidates: int | None = None
    analysis_cooldown_turns: int | None = None
    keyword_target: int | None = None
    cold_start_pause_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningCommand:
    """A change of how a project learns; `enabled` of None leaves it on or off."""

    project: str
    request_id: str
    fingerprint: bytes
    enabled: bool | None
    changes: SettingsChanges
    keywords: tuple[KeywordsSet, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningUpdated:
    """Settings of a project's learning after a change.

    Attributes:
        missed_turns: Those that came while learning was off, if this change switched it on; else 0.
        cold_start: Whether this change switched it on, and entries without keywords are now read.
        cold_start_skipped: Why they are not, for people, if this change switched it on; else empty.
    """

    seq: int
    state: LearningState
    missed_turns: int
    cold_start: bool = False
    cold_start_skipped: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkedTurn:
    """A turn that would have had another prompt; `event` is the number of its event."""

    event: int
    scope: str
    turn: int
    added_ids: tuple[str, ...]
    removed_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fork:
    """Effect that other settings would have had.

    Attributes:
        settings: Those of the fork, as they would be now.
        turn_count: Turns that were decided.
        injected_count: Injections that there were.
        forked_injected_count: Injections that there would have been.
        differing_count: Turns that would have had another prompt.
        differing: The first of these.
    """

    settings: LearningSettings
    turn_count: int
    injected_count: int
    forked_injected_count: int
    differing_count: int
    differing: tuple[ForkedTurn, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """Result of a replay: the digests of the state in use and of that computed from the events."""

    events: int
    digest: str
    replayed_digest: str
    fork: Fork | None

    @property
    def matches(self) -> bool:
        """Whether the state is what the events give."""
        return self.digest == self.replayed_digest


@dataclass(frozen=True, slots=True, kw_only=True)
class ObserveCommand:
    """A turn as its caller tells of it.

    Attributes:
        scope: A session's id, or empty for the project itself.
        turn: Its number in the scope, at most MAX_TURN.
        user_text: What the user said.
        assistant_text: The answer; empty when there was none.
        used_ids: Memories that the answer rests on, as the caller says; they may not exist.
        request_id: UUID; empty when repeats are turns of their own.
        fingerprint: Hash of the request but for its id.
    """

    project: str
    scope: str
    turn: int
    user_text: str
    assistant_text: str
    used_ids: tuple[str, ...]
    request_id: str
    fingerprint: bytes


MAX_VERDICTS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedbackCommand:
    """Feedback as it was sent; `fingerprint` is a hash of it without its request_id. It has a verdict or a note."""

    project: str
    request_id: str
    query_text: str
    verdicts: tuple[Verdict, ...]
    note: str
    session_id: str
    fingerprint: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedbackNoted:
    """Feedback that is kept: how many verdicts, and the ids that the project does not have."""

    seq: int
    recorded: int
    unknown_ids: tuple[str, ...]


class ScanScope(Enum):
    """Entries that a scan reads."""

    UNLEARNED = auto()
    """Those without a keyword."""
    ALL = auto()
    """All of them."""
    CHOSEN = auto()
    """Those that the caller names."""


class EntryOutcome(IntEnum):
    """Result of a scan for one entry. The numbers are the contract's, as for `ScanEnd`."""

    LEARNT = 1
    """The entry has new keywords."""
    NOTHING_NEW = 2
    """The entry was read, and no new keyword was found."""
    FAILED = 3
    """The learner failed; nothing was counted."""
    GONE = 4
    """The entry was removed from the project, or is no entry any more."""


class ScanEnd(IntEnum):
    """Why a scan is over."""

    DONE = 1
    """All entries were read."""
    NO_LEARNER = 2
    """There is no learner, so nothing was read."""
    OFF = 3
    """Learning is off."""
    FAILING = 4
    """The learner failed again and again; asking again goes on with the entries that are left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryLearnt:
    """Keywords that a scan found for an entry.

    Attributes:
        keywords: Those that are new.
        hints: The same of hints.
        reason: Why the learner failed, without what it was asked or said; else empty.
    """

    memory_id: str
    outcome: EntryOutcome
    keywords: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanProgress:
    """Progress of a scan.

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
