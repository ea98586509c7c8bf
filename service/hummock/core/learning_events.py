"""What happens to a project's learning. The state is what folding all events gives; none of them is ever changed.

Numbers of enums are those of the contract and of the store.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from hummock.core.learning import LearningSettings


class Learner(IntEnum):
    """Who learns keywords."""

    LLM = 1
    OFFLINE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnObserved:
    """A turn is over.

    Attributes:
        scope: A session's id, or empty for the project itself.
        turn: Counts within the scope; the caller's number.
        user_text: What the user said.
        assistant_hash: `text_hash` of the answer; empty when there was none. Its text is not kept.
        used_ids: Memories that the answer rests on, as the caller says.
    """

    scope: str
    turn: int
    user_text: str
    assistant_hash: bytes = b""
    used_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KeywordUpdate:
    """Keywords that were found for a memory; those that it has already count as none."""

    memory_id: str
    keywords: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeywordsLearned:
    """The learner has run (`ContextLinkerRan`).

    Attributes:
        turn: `LearningState.turns` of the turn that it ran for.
        updates: What it found.
        analyzed_ids: All that it read, whether it found something or not.
    """

    learner: Learner
    turn: int
    updates: tuple[KeywordUpdate, ...]
    analyzed_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Injected:
    """A prompt was rendered for a turn, and counted. While learning is off it holds no ids.

    Attributes:
        request_id: Of the rendering; empty when its caller gave none.
        referenced_ids: Entries that the user's words refer to, each once.
        injected_ids: Entries that were decided on, each once; the referenced ones are among them.
        dropped_ids: Of these, those that the budget had no room for, so that they were not sent.
    """

    scope: str
    turn: int
    request_id: str = ""
    referenced_ids: tuple[str, ...] = ()
    injected_ids: tuple[str, ...] = ()
    dropped_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KeywordsSet:
    """Someone has written a memory's keywords by hand; they replace those that it had."""

    memory_id: str
    keywords: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Switched:
    """Learning was switched on or off."""

    enabled: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsChanged:
    """The numbers of the loop were changed; all of them as they are now."""

    settings: LearningSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """Memories were removed, and with them what was learnt of them."""

    memory_ids: tuple[str, ...]


class Judgement(IntEnum):
    """What somebody thinks of a memory that a query was answered with."""

    HELPFUL = 1
    NOT_HELPFUL = 2
    WRONG = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a memory was for a query."""

    memory_id: str
    judgement: Judgement


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedbackGiven:
    """Someone has said what was of use for a query, perhaps with a word about it."""

    query_text: str
    verdicts: tuple[Verdict, ...]
    note: str = ""
    session_id: str = ""


LearningEvent = (
    TurnObserved | KeywordsLearned | Injected | KeywordsSet | Switched | SettingsChanged | Forgotten | FeedbackGiven
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedEvent:
    """An event with its number in the project, from 1 on without gaps, and its time in Unix seconds."""

    number: int
    time: float
    event: LearningEvent
