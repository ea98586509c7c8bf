"""Values of learning: profiles of entries, events and decisions.

In the store states, profiles and events are arrays of their fields: a new field goes to the end and has a default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from hummock.core.errors import InvalidRequest

NEVER = -999
"""Turn number of something that never happened: long enough ago for every cooldown."""

MAX_TURN = 2**32 - 1
MAX_COOLDOWN_TURNS = 1_000_000
MAX_FREQUENCY_BOUND = 1_000_000
MAX_CANDIDATES = 50
MAX_KEYWORDS = 64
"""Most keywords of a memory, learnt and set together; more are left out."""
MAX_KEYWORD_CHARACTERS = 32
MAX_VOICES = 32
"""Most voices that count for a memory; a new one replaces the oldest."""
MAX_PAUSE_S = 3600.0
_FREQUENCIES: Final[Mapping[str, tuple[float, float]]] = {
    "mid_above": (0, MAX_FREQUENCY_BOUND),
    "high_above": (0, MAX_FREQUENCY_BOUND),
}
_OTHER_BOUNDS: Final[Mapping[str, tuple[float, float]]] = {
    "mid_cooldown_turns": (0, MAX_COOLDOWN_TURNS),
    "low_cooldown_turns": (0, MAX_COOLDOWN_TURNS),
    "min_similarity": (0.0, 1.0),
    "candidates": (1, MAX_CANDIDATES),
    "analysis_cooldown_turns": (0, MAX_COOLDOWN_TURNS),
    "keyword_target": (1, MAX_KEYWORDS),
    "cold_start_pause_s": (0.0, MAX_PAUSE_S),
}
"""The least and the most of each number."""


class LearningSettings(Struct, frozen=True, kw_only=True):
    """Parameters of the learning loop.

    Attributes:
        high_above: An entry that was referenced more often than this is injected in every turn.
        mid_above: An entry referenced more often than this, but not above `high_above`, cools down for
            `mid_cooldown_turns` after it was sent; the others for `low_cooldown_turns`.
        min_similarity: In [0, 1]; an entry at least this similar to the user's words is referenced.
        candidates: Entries that one turn's analysis reads.
        analysis_cooldown_turns: Turns for which an analysed entry gives way to others.
        keyword_target: Number of keywords from which an entry counts as learnt.
        cold_start_pause_s: Seconds between two entries of a cold start.
    """

    high_above: int = 10
    mid_above: int = 3
    mid_cooldown_turns: int = 3
    low_cooldown_turns: int = 10
    min_similarity: float = 0.6
    candidates: int = 5
    analysis_cooldown_turns: int = 20
    keyword_target: int = 10
    cold_start_pause_s: float = 0.5

    def __post_init__(self) -> None:
        self._require_within(_FREQUENCIES)
        if self.high_above < self.mid_above:
            raise InvalidRequest("high_above", f"is {self.high_above}, below mid_above {self.mid_above}")
        self._require_within(_OTHER_BOUNDS)

    def _require_within(self, bounds: Mapping[str, tuple[float, float]]) -> None:
        for name, (least, most) in bounds.items():
            value = getattr(self, name)
            # Not "<" and ">": NaN must be refused.
            if not least <= value <= most:
                raise InvalidRequest(name, f"is {value}; it must be {least} to {most}")


class FeedbackCounts(Struct, frozen=True, kw_only=True):
    """Counts of feedback on a memory, by verdict."""

    helpful: int = 0
    not_helpful: int = 0
    wrong: int = 0


class LearningState(Struct, frozen=True, kw_only=True):
    """Learning state of a whole project.

    Attributes:
        enabled: Whether entries are injected by use. If off, all are injected, and nothing is counted or learnt.
        turns: Turns of the project over all scopes: the clock of analyses. With one scope it is that scope's newest
            turn.
        missed_turns: Those of them that came while learning was off, since it was last on.
        events: Number of the newest event.
        keywords_event: Number of the newest event that changed a keyword; 0 when none did.
    """

    enabled: bool = False
    settings: LearningSettings = LearningSettings()
    turns: int = 0
    missed_turns: int = 0
    events: int = 0
    keywords_event: int = 0
    feedback: FeedbackCounts = FeedbackCounts()


def next_turn(last: int | None) -> int:
    """Return the turn after a scope's newest, at most MAX_TURN; None means that the scope has had none."""
    return 0 if last is None else min(last + 1, MAX_TURN)


class Usage(Struct, frozen=True, kw_only=True):
    """Usage of a memory in a scope.

    Attributes:
        frequency: Turns whose words referred to it. A turn rendered again counts once.
        last_sent_turn: The turn in which it was last sent, or NEVER.
        counted_turn: The turn that `frequency` counted last, or NEVER.
    """

    frequency: int = 0
    last_sent_turn: int = NEVER
    counted_turn: int = NEVER


class Judgement(IntEnum):
    """Judgement on a memory as an answer to a query."""

    HELPFUL = 1
    NOT_HELPFUL = 2
    WRONG = 3


class Voice(Struct, array_like=True, frozen=True, kw_only=True):
    """The last judgement of one voice on a memory, HELPFUL or WRONG.

    `speaker` is a 64-bit hash of the session or query that the voice belongs to, `text` 64 bits of the content hash of
    the judged memory.
    """

    speaker: int
    text: int
    judgement: Judgement


class Profile(Struct, array_like=True, frozen=True, kw_only=True):
    """Everything learnt of a memory.

    Attributes:
        keywords: Words for it that its text does not hold, oldest first, without duplicates. A text with one refers to
            the memory.
        hints: Possible keywords, in the same form. A recall finds the memory by them, but they are no references.
        voices: The last judgement of each voice, newest last; at most MAX_VOICES.
        last_analyzed_turn: On the clock of `LearningState.turns`, or NEVER.
        miss_count: Analyses without a new word since the last one that found any.
    """

    keywords: tuple[str, ...] = ()
    last_analyzed_turn: int = NEVER
    miss_count: int = 0
    hints: tuple[str, ...] = ()
    voices: tuple[Voice, ...] = ()

    @property
    def was_learnt(self) -> bool:
        """Whether there is more than feedback."""
        return self != Profile(voices=self.voices)

    @property
    def words(self) -> tuple[str, ...]:
        """All words by which a recall finds it."""
        return (*self.keywords, *self.hints)

    def verdicts_on(self, text: int) -> tuple[int, int]:
        """Count the HELPFUL and WRONG voices on this text, given by 64 bits of its hash."""
        said = [voice.judgement for voice in self.voices if voice.text == text]
        return said.count(Judgement.HELPFUL), said.count(Judgement.WRONG)


class LearningChanges(Struct, frozen=True, kw_only=True):
    """Changes made by an event; everything else stays.

    Attributes:
        state: The complete state, changed or not.
        turns: The newest turn by scope.
        usage: By scope and memory id.
        forgotten: Ids of memories whose profile and usage in all scopes are removed.
        forgotten_scopes: Scopes whose turn and usage are removed.
    """

    state: LearningState
    turns: Mapping[str, int] = {}
    usage: Mapping[tuple[str, str], Usage] = {}
    profiles: Mapping[str, Profile] = {}
    forgotten: tuple[str, ...] = ()
    forgotten_scopes: tuple[str, ...] = ()


def forgetting(state: LearningState, memory_ids: tuple[str, ...], scopes: tuple[str, ...] = ()) -> LearningChanges:
    """Changes for removed memories. Here, because the store applies them whenever it removes one."""
    number = state.events + 1
    return LearningChanges(
        state=replace(state, events=number, keywords_event=number), forgotten=memory_ids, forgotten_scopes=scopes
    )


class Entry(Struct, frozen=True, kw_only=True):
    """An entry with the names by which a user's text refers to it."""

    memory_id: str
    title: str
    keywords: tuple[str, ...] = ()


class Reference(Struct, frozen=True, kw_only=True):
    """A link from a user's words to the entry they refer to; `similarity` is in [0, 1]."""

    memory_id: str
    similarity: float


class InjectionStatus(IntEnum):
    """Status of an entry in a turn."""

    INJECTING = 1
    COOLING_DOWN = 2
    IDLE = 3


class Injection(Struct, frozen=True, kw_only=True):
    """A row of the injection table.

    Attributes:
        usage: Includes this turn's reference, but not that it was sent in this turn.
        probability: 1 if it is injected, else the elapsed share of its cooldown, in [0, 1).
        reason: In words, for people.
        forced: Whether this turn's words refer to it.
    """

    memory_id: str
    usage: Usage
    probability: float
    status: InjectionStatus
    reason: str
    forced: bool = False

    @property
    def injected(self) -> bool:
        """Whether it is part of the turn's prompt, as far as the budget allows."""
        return self.status is InjectionStatus.INJECTING


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnDecision:
    """Decisions for a turn.

    Attributes:
        enabled: Whether learning is on. Off, every entry is part of the prompt and nothing was decided.
        injections: The table, as `learn.decide` orders it, with the first of the rows that wait; empty while it is off.
        dropped_count: Entries that belong into the prompt and that the budget has no room for.
    """

    enabled: bool
    injections: tuple[Injection, ...] = ()
    dropped_count: int = 0


LEARNER_RULE = 2
"""Version of the learners. Before (1), words of one turn could become keywords without a language model."""


class Learner(IntEnum):
    """Kind of learner for keywords."""

    LLM = 1
    OFFLINE = 2


class TurnObserved(Struct, frozen=True, kw_only=True):
    """A turn is over.

    Attributes:
        scope: A session's id, or empty for the project itself.
        turn: The caller's number, counted within the scope.
        assistant_hash: `text_hash` of the answer; empty if there was none. Its text is not kept.
        used_ids: Memories that the answer is based on, according to the caller.
    """

    scope: str
    turn: int
    user_text: str
    assistant_hash: bytes = b""
    used_ids: tuple[str, ...] = ()


class KeywordUpdate(Struct, array_like=True, frozen=True, kw_only=True):
    """Keywords and hints found for a memory; known ones do not count."""

    memory_id: str
    keywords: tuple[str, ...]
    hints: tuple[str, ...] = ()

    @property
    def has_words(self) -> bool:
        """Whether anything was found."""
        return bool(self.keywords or self.hints)


class KeywordsLearned(Struct, frozen=True, kw_only=True):
    """The learner has run (`ContextLinkerRan`).

    Attributes:
        turn: `LearningState.turns` of the turn that it ran for.
        analyzed_ids: All entries that it read, with or without findings.
        rule: Version of its rules; findings of earlier versions stay valid.
    """

    learner: Learner
    turn: int
    updates: tuple[KeywordUpdate, ...]
    analyzed_ids: tuple[str, ...]
    rule: int = 1


class Injected(Struct, frozen=True, kw_only=True):
    """A prompt was rendered for a turn, and counted. While learning is off it holds no ids.

    Attributes:
        referenced_ids: Entries that the user's words refer to, each once.
        injected_ids: Entries that were chosen, each once, including the referenced ones.
        dropped_ids: Those of them that did not fit the budget and were not sent.
        counted_ids: Referenced ones that the same turn had counted already before it was rendered again.
    """

    scope: str
    turn: int
    request_id: str = ""
    referenced_ids: tuple[str, ...] = ()
    injected_ids: tuple[str, ...] = ()
    dropped_ids: tuple[str, ...] = ()
    counted_ids: tuple[str, ...] = ()


class KeywordsSet(Struct, frozen=True, kw_only=True):
    """A memory's keywords were set by hand; they replace the earlier ones."""

    memory_id: str
    keywords: tuple[str, ...]


class Switched(Struct, frozen=True, kw_only=True):
    """Learning was switched on or off."""

    enabled: bool


class SettingsChanged(Struct, frozen=True, kw_only=True):
    """The numbers of the loop were changed; all of them as they are now."""

    settings: LearningSettings


class Forgotten(Struct, frozen=True, kw_only=True):
    """Memories were removed with their profiles, and scopes with their turns and usage."""

    memory_ids: tuple[str, ...]
    scopes: tuple[str, ...] = ()


class Verdict(Struct, array_like=True, frozen=True, kw_only=True):
    """Verdict on a memory as an answer to a query.

    Attributes:
        text: 64 bits of the content hash of the memory as it was judged; 0 where that was not noted.
    """

    memory_id: str
    judgement: Judgement
    text: int = 0


class FeedbackGiven(Struct, frozen=True, kw_only=True):
    """Feedback on the memories recalled for a query, optionally with a note.

    Attributes:
        voice: 64-bit id of the voice; 0 in logs from before feedback affected ranking.
    """

    query_text: str
    verdicts: tuple[Verdict, ...]
    note: str = ""
    session_id: str = ""
    voice: int = 0


LearningEvent = (
    TurnObserved | KeywordsLearned | Injected | KeywordsSet | Switched | SettingsChanged | Forgotten | FeedbackGiven
)


class LoggedEvent(Struct, frozen=True, kw_only=True):
    """An event with its number in the project, from 1 on without gaps, and its time in Unix seconds."""

    number: int
    time: float
    event: LearningEvent
