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
    """Some entries of a project, in write order.

    Attributes:
        turn: Turn for which the injections are decided.
        next_after: Position of the next page; None on the last page.
    """

    state: LearningState
    turn: int
    entries: tuple[EntryState, ...]
    next_after: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsChanges:
    """Changes of learning settings; None leaves a setting unchanged."""

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
        missed_turns: Turns that came while learning was off, if this change switched it on; else 0.
        cold_start: Whether this change switched it on and entries without keywords are now read.
        cold_start_skipped: Why they are not, in words, if this change switched it on; else empty.
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
        settings: Current settings of the fork.
        turn_count: Number of decided turns.
        injected_count: Actual injections.
        forked_injected_count: Injections with the fork's settings.
        differing_count: Turns with a different prompt.
        differing: The first of these turns.
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
        """Whether the state in use equals the replayed one."""
        return self.digest == self.replayed_digest


@dataclass(frozen=True, slots=True, kw_only=True)
class ObserveCommand:
    """A turn as reported by its caller.

    Attributes:
        scope: A session's id, or empty for the project itself.
        turn: Its number in the scope, at most MAX_TURN.
        user_text: The user's text.
        assistant_text: The answer; empty if there was none.
        used_ids: Memories that the answer is based on, according to the caller; they may not exist.
        request_id: UUID; empty if repeats count as separate turns.
        fingerprint: Hash of the request without its id.
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
    """Feedback with a verdict or a note; `fingerprint` is a hash of the request without its request_id."""

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
    """Entries without a keyword."""
    ALL = auto()
    """All of them."""
    CHOSEN = auto()
    """Entries that the caller names."""


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
    """The learner failed repeatedly; a new scan continues with the remaining entries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryLearnt:
    """Keywords that a scan found for an entry.

    Attributes:
        keywords: New keywords.
        hints: New hints.
        reason: Why the learner failed, without any text of others; else empty.
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
        total: Entries to read, as far as known.
        learnt: Entries read since the last look, in order.
        end: Why it ended; None while it runs.
        reason: The same in words; empty while it runs.
    """

    total: int
    learnt: tuple[EntryLearnt, ...]
    end: ScanEnd | None
    reason: str = ""
