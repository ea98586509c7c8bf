"""Requests to a project's learning and their replies, as values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum, auto

from hummock.core.learning import Injection, KeywordsSet, LearningSettings, LearningState, Profile, Verdict
from hummock.core.memory import WriteCommand


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryState:
    """An entry and all that is known of its learning; `profile` is None when it was never analysed."""

    memory_id: str
    title: str
    profile: Profile | None
    injection: Injection


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningPage:
    """Some entries of a project, in write order, and the turn for which their injections are decided.

    `next_after` is the position of the next page; None on the last page.
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
class LearningCommand(WriteCommand):
    """A change of how a project learns; `enabled` of None leaves it on or off."""

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
    """Effect that other settings, in their current form, would have had over all decided turns.

    `injected_count` are the actual injections. `differing` are the first of the turns with a different prompt.
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
class ObserveCommand(WriteCommand):
    """A turn as reported by its caller.

    Attributes:
        scope: A session's id, or empty for the project itself.
        turn: Its number in the scope, at most MAX_TURN.
        assistant_text: The answer; empty if there was none.
        used_ids: Memories that the answer is based on, according to the caller; they may not exist.
    """

    scope: str
    turn: int
    user_text: str
    assistant_text: str
    used_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedbackCommand(WriteCommand):
    """Feedback with a verdict or a note."""

    query_text: str
    verdicts: tuple[Verdict, ...]
    note: str
    session_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedbackNoted:
    """Feedback that is kept: how many verdicts, and the ids that the project does not have."""

    seq: int
    recorded: int
    unknown_ids: tuple[str, ...]


class ScanScope(Enum):
    """Entries that a scan reads: those without a keyword, all, or those that the caller names."""

    UNLEARNED = auto()
    ALL = auto()
    CHOSEN = auto()


class EntryOutcome(IntEnum):
    """Result of a scan for one entry. The numbers are the contract's, as for `ScanEnd`.

    FAILED says that the learner failed and nothing was counted, GONE that it was removed or is no entry any more.
    """

    LEARNT = 1
    NOTHING_NEW = 2
    FAILED = 3
    GONE = 4


class ScanEnd(IntEnum):
    """Why a scan is over: all was read, there is no learner, or learning is off.

    FAILING: The learner failed repeatedly; a new scan continues with the remaining entries.
    """

    DONE = 1
    NO_LEARNER = 2
    OFF = 3
    FAILING = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryLearnt:
    """New keywords and hints that a scan found for an entry.

    `reason` says why the learner failed, without any text of others; else it is empty.
    """

    memory_id: str
    outcome: EntryOutcome
    keywords: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanProgress:
    """Progress of a scan: entries to read, as far as known, and those read since the last look, in order.

    `end` is why it ended, None while it runs; `reason` says it in words.
    """

    total: int
    learnt: tuple[EntryLearnt, ...]
    end: ScanEnd | None
    reason: str = ""
