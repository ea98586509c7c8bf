"""What is asked of a project's learning and what is answered, as values."""

from __future__ import annotations

from dataclasses import dataclass

from hummock.core.learning import Injection, LearningSettings, LearningState, Profile
from hummock.core.learning_events import KeywordsSet


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
    """How a project learns after a change.

    Attributes:
        missed_turns: Those that came while learning was off, if this change switched it on; else 0.
        cold_start: Whether this change switched it on, and entries without keywords are now read.
    """

    seq: int
    state: LearningState
    missed_turns: int
    cold_start: bool = False


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
    """What other numbers would have done.

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
    """What a replay came to: the digests of the state in use and of that which the events give."""

    events: int
    digest: str
    replayed_digest: str
    fork: Fork | None

    @property
    def matches(self) -> bool:
        """Whether the state is what the events give."""
        return self.digest == self.replayed_digest
