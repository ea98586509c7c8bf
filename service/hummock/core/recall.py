"""Queries and answers of a recall or a search, as values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import tzinfo
from enum import IntEnum, IntFlag

from msgspec import Struct
from msgspec.structs import astuple

from hummock.core.candidates import FoundBy, SessionWindow
from hummock.core.errors import InvalidRequest
from hummock.core.memory import Filter, Memory, MemoryKind, Origin, QueryVector
from hummock.core.time_zone import zone_of

MAX_QUERY_CHARACTERS = 8192
MAX_TOP_K = 200
MAX_CONTEXT_WINDOW = 10
CAPPED = 10
SECONDS_A_DAY = 86_400.0
"""Number of first hits of a group to which a plan's `writer_cap` applies."""


class Preset(IntEnum):
    """A set of defaults for one kind of caller."""

    CHAT = 1
    CODE = 2
    AGENT = 3
    CODEX = 4


class RecallPath(IntEnum):
    """One way of finding candidates."""

    VECTOR = 1
    KEYWORD = 2
    DOMAIN = 3


class KeywordMode(IntEnum):
    """Mode of the keyword path."""

    TERMS = 1
    SUBSTRING = 2


class DecayMode(IntEnum):
    """Decay of a score with age."""

    OFF = 1
    EXPONENTIAL = 2
    TRUE_HALF_LIFE = 3


class MmrRelevance(IntEnum):
    """The relevance that maximal marginal relevance weighs against likeness.

    SCORE is the joined score; likeness counts up to halfway to near-twins. SIMILARITY is the cosine with the query, as
    the document writes it; likeness counts in full.
    """

    SCORE = 1
    SIMILARITY = 2


class CrossEncoding(IntEnum):
    """Whether candidates are read together with the query by a cross-encoder, as far as the time allows.

    AUTO reads the best few of a group, ON all that can be returned.
    """

    OFF = 1
    AUTO = 2
    ON = 3


class IntentMode(IntEnum):
    """Source of the user's intent, if the caller does not give it: the words of the query, or a language model.

    If that fails or is late, the words count.
    """

    LEXICAL = 1
    LLM = 2


class Wanted(IntFlag):
    """Kinds of answers that a question wants, as bits. FROM_ASSISTANT is an earlier answer of the model."""

    NOTHING = 0
    WHEN = 1
    FROM_ASSISTANT = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Decay:
    """Decay of scores with age; `half_life_days` is above 0.

    `floor`, in [0, 1], is the share of a score that no age takes away: a factor of floor + (1 - floor)·exp(...).
    """

    mode: DecayMode = DecayMode.OFF
    half_life_days: float = 14.0
    floor: float = 0.0
    exempt_origins: frozenset[Origin] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeInterval:
    """A time that a query names, from `start` to `end`, exclusive, in Unix seconds; either may be infinite.

    Attributes:
        phrase: The words for it; empty if the caller gave the interval.
        is_vague: Whether the words are vague ("recently"), so that it weighs less.
        is_counted: Whether it is counted from an event, so that times just outside do not match.
    """

    start: float
    end: float
    phrase: str = ""
    is_vague: bool = False
    is_counted: bool = False

    def __post_init__(self) -> None:
        if not self.start < self.end:
            raise InvalidRequest("intent.times", f"ends at {self.end}, which is not after its start {self.start}")


class Intent(Struct, frozen=True, kw_only=True):
    """The user's intent, as far as it is known; `times` are the times that it names."""

    domains: tuple[str, ...] = ()
    action: str = ""
    keywords: tuple[str, ...] = ()
    times: tuple[TimeInterval, ...] = ()


class RecallQuery(Struct, frozen=True, kw_only=True):
    """A recall request; None means the preset's default.

    Attributes:
        late_interaction: Whether it ranks; None means if the vector and the keyword path are joined.
        cross_encoding: Whether a cross-encoder ranks; None means the service's setting if those paths are joined.
        time_words: Whether times named in the text count; None means if those paths are joined.
        context_window: Number of neighbours to return before and after each hit.
        session_id: The current session; empty for none.
        window_turns: Number of the session's last turns to leave out; ignored without a session.
        echo_window_s: Turns equal to the text are left out up to this age; None means at any age.
        intent_mode: Source of the intent if `intent` is unset; None means the service's setting.
        as_of: The "now" of ages and of time words in Unix seconds; None means the clock's.
        min_seq: Writes that the project must have accepted.
        time_zone: Time zone of its words for days: an IANA name or an offset; empty means UTC.
        allow_stale: Whether the last known state may be used if the store cannot be reached.
        include_superseded: Whether replaced memories may answer as well.
        full: Whether hits contain their payload.
        before: Earlier questions that the text depends on, newest first. If there are none, they are looked up in the
            session.
        until_s: When the caller stops waiting, on the clock's monotonic scale; None means never. It is last, since it
            is no part of the question and ignored when queries are compared.
    """

    project: str
    text: str
    vector: QueryVector | None = None
    preset: Preset = Preset.AGENT
    top_k: int | None = None
    candidates: int | None = None
    min_similarity: float | None = None
    filter: Filter = Filter()
    paths: frozenset[RecallPath] = frozenset(RecallPath)
    decay_mode: DecayMode | None = None
    half_life_days: float | None = None
    decay_floor: float | None = None
    decay_exempt_origins: frozenset[Origin] = frozenset()
    relevance_weight: float | None = None
    near_twin_bar: float | None = None
    writer_cap: int | None = None
    mmr_relevance: MmrRelevance | None = None
    late_interaction: bool | None = None
    cross_encoding: CrossEncoding | None = None
    time_words: bool | None = None
    context_window: int = 0
    keyword_mode: KeywordMode = KeywordMode.TERMS
    code_top_k: int | None = None
    domain_top_k: int | None = None
    intent: Intent | None = None
    intent_mode: IntentMode | None = None
    as_of: float | None = None
    min_seq: int = 0
    allow_stale: bool = False
    include_superseded: bool = False
    full: bool = True
    session_id: str = ""
    window_turns: int | None = None
    echo_window_s: float | None = None
    time_zone: str = ""
    before: tuple[str, ...] = ()
    until_s: float | None = None

    @property
    def zone(self) -> tzinfo:
        """The zone of `time_zone`. Raises: InvalidRequest, where that was not checked."""
        return zone_of(self.time_zone)

    def __post_init__(self) -> None:
        if not self.text.strip():
            raise InvalidRequest("query_text", "is empty; say what to recall for")
        if len(self.text) > MAX_QUERY_CHARACTERS:
            raise InvalidRequest("query_text", f"has {len(self.text)} characters; the limit is {MAX_QUERY_CHARACTERS}")
        if self.top_k is not None and not 1 <= self.top_k <= MAX_TOP_K:
            raise InvalidRequest("top_k", f"is {self.top_k}; it must be 1 to {MAX_TOP_K}")
        if not 0 <= self.context_window <= MAX_CONTEXT_WINDOW:
            raise InvalidRequest("context_window", f"is {self.context_window}; it must be 0 to {MAX_CONTEXT_WINDOW}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RecallQuery) and astuple(self)[:-1] == astuple(other)[:-1]

    def __hash__(self) -> int:
        return hash(astuple(self)[:-1])


class GroupPlan(Struct, frozen=True, kw_only=True):
    """One group of hits: its kinds, size and paths."""

    name: str
    kinds: frozenset[MemoryKind]
    top_k: int
    paths: frozenset[RecallPath]
    pool: int
    with_key_files: bool = False


class Plan(Struct, frozen=True, kw_only=True):
    """A recall with every default filled in.

    Attributes:
        min_similarity: Calibrated, in [-1, 1]; -1 keeps everything.
        code_bar: Least combined evidence for a fragment in the group of code; None applies only the minimum similarity.
        min_of_best: Minimum similarity of a candidate far more similar than all others in every group.
        relevance_weight: λ of maximal marginal relevance; 1 ignores difference.
        near_twin_bar: Cosine from which two memories of one name are near-twins; above 1 switches near-twins off.
        writer_cap: Most unvouched memories of one writer among the first `CAPPED` hits of a group; from `CAPPED` on
            there is no limit.
        late_interaction: Whether token vectors affect the order.
        neighbours: Whether sentences gain from their neighbours in the session.
        substrings: Strings that the keyword path searches in the texts; empty if it searches terms.
        time_share: Share of the time match in the order, in [0, 1].
        window: Turns that are left out; None for none.
        as_of: Unix seconds. `echo_window_s` and `include_superseded` are as in `RecallQuery`.
    """

    preset: Preset
    groups: tuple[GroupPlan, ...]
    filter: Filter
    min_similarity: float
    code_bar: float | None
    min_of_best: float
    decay: Decay
    relevance_weight: float
    near_twin_bar: float
    writer_cap: int
    mmr_relevance: MmrRelevance
    late_interaction: bool
    neighbours: bool
    substrings: tuple[str, ...]
    times: tuple[TimeInterval, ...]
    intent: Intent
    as_of: float
    time_share: float = 0.0
    include_superseded: bool = False
    wanted: Wanted = Wanted.NOTHING
    window: SessionWindow | None = None
    echo_window_s: float | None = None


class Correction(Struct, frozen=True, kw_only=True):
    """A word of a query that no memory holds, and the word of a hit that replaces it, each as written."""

    asked: str
    meant: str


class Hit(Struct, frozen=True, kw_only=True):
    """A recalled memory with its scores.

    Attributes:
        score: In [0, 1]; larger is better.
        similarity: Calibrated, in [-1, 1]; 0 without a vector.
        cosine: In [-1, 1]; 0 without a vector.
        keyword_score: BM25; 0 if no term matched.
        cross_encoder_score: How well it answers the query, in [0, 1]; 0 if the cross-encoder did not read it.
        late_interaction_score: Max-sim of the token vectors, in [-1, 1]; 0 if late interaction did not score it.
        matched_terms: Terms of the query that it holds, as written in the query.
        age_days: At as_of, not below 0.
        decay: Factor in [0, 1] by which age lowered the score.
        near_twin: True if a better hit is another version of it.
        over_writer_cap: True if a less relevant hit precedes it because of the writer cap.
        time_match: How well its time matches the query's, in [0, 1].
        corrections: Words of the query that it holds only in corrected form.
        verdict: Feedback factor of the score, in [0.6, 1.1].
        helpful_count: Number of voices that judged its text helpful; `wrong_count` likewise.
        before: Neighbours before it in its session or file, in order; as many as requested, if they exist; so `after`.
        superseded_by: Ids of the memories that replace it, if the query includes replaced ones.
        likely_replaced_by: Id of a newer note that tells a change and is much like it; empty if there is none.
    """

    memory: Memory
    score: float
    similarity: float
    cosine: float
    keyword_score: float
    late_interaction_score: float
    found_by: FoundBy
    matched_terms: tuple[str, ...]
    age_days: float
    decay: float
    near_twin: bool
    cross_encoder_score: float = 0.0
    time_match: float = 0.0
    corrections: tuple[Correction, ...] = ()
    verdict: float = 1.0
    helpful_count: int = 0
    wrong_count: int = 0
    before: tuple[Memory, ...] = ()
    after: tuple[Memory, ...] = ()
    superseded_by: tuple[str, ...] = ()
    over_writer_cap: bool = False
    likely_replaced_by: str = ""


def ages_days(create_times: Sequence[float], as_of: float) -> list[float]:
    """Ages of memories in days at a moment, not below 0; all times in Unix seconds."""
    return [max(0.0, (as_of - time) / SECONDS_A_DAY) for time in create_times]


class StageTime(Struct, frozen=True, kw_only=True):
    """Duration of one stage."""

    stage: str
    elapsed_s: float


class GroupCount(Struct, frozen=True, kw_only=True):
    """Counts of one group's candidates, found and left out, and their similarities.

    `graph_recall` is the proven recall of the graph that found the nearest by vector; None where a scan or sign bits
    did.
    `least_cosine`, `mean_cosine` and `greatest_cosine` are of the candidates that have a vector, None where none has;
    `origins` counts all candidates.
    """

    name: str
    searched: int = 0
    vector: int = 0
    keyword: int = 0
    domain: int = 0
    echo: int = 0
    duplicate: int = 0
    below_min_similarity: int = 0
    returned: int = 0
    in_window: int = 0
    pending: int = 0
    least_cosine: float | None = None
    mean_cosine: float | None = None
    greatest_cosine: float | None = None
    origins: tuple[tuple[Origin, int], ...] = ()
    over_writer_cap: int = 0
    graph_recall: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Degradation:
    """Something that a recall had to leave out; `reason` is stable, `message` is for people."""

    path: str
    reason: str
    message: str


class GlossedTerm(Struct, frozen=True, kw_only=True):
    """A term of a query with its words in another language, the likeliest first."""

    term: str
    words: tuple[str, ...]


class Receipt(Struct, frozen=True, kw_only=True):
    """Stages of a recall, their durations, and counts of excluded candidates.

    `cross_encoded` counts the candidates that the cross-encoder read. `cached` means that an equal recall's answer was
    used: `stages` and `elapsed_s` are those of the look-up, all else describes the recall that computed it.
    `project_settings` are paths of the fields that the project's settings filled in. `min_similarity`, `min_of_best`
    and `min_cosine`, the cosine of the former, are None if no minimum similarity applied. `gloss` is the translated
    query, by the glossary of `gloss_version`.
    """

    preset: Preset
    stages: tuple[StageTime, ...]
    groups: tuple[GroupCount, ...]
    emb_space: str
    as_of: float
    vector_weight: float
    late_interaction_weight: float
    elapsed_s: float
    cross_encoded: int = 0
    cached: bool = False
    times: tuple[TimeInterval, ...] = ()
    project_settings: tuple[str, ...] = ()
    gloss: tuple[GlossedTerm, ...] = ()
    gloss_version: str = ""
    min_similarity: float | None = None
    min_of_best: float | None = None
    min_cosine: float | None = None


class NothingKnown(Struct, frozen=True, kw_only=True):
    """Nothing stored answers a query.

    Attributes:
        confidence: Estimated probability of that, in [0, 1].
        nearest_id: The nearest memory; empty if there is none, as is `nearest_title`.
        reason: Why that is not enough, for people.
    """

    confidence: float
    nearest_id: str
    nearest_title: str
    reason: str


class Recalled(Struct, frozen=True, kw_only=True):
    """The answer to a recall: hits of each group, best first.

    `nothing_known` is None if one of them may answer, or if that cannot be told. `together_with` are the earlier
    questions that the text was also asked together with, newest first.
    """

    hits: tuple[Hit, ...]
    code_fragments: tuple[Hit, ...]
    domains: tuple[Hit, ...]
    intent: Intent
    receipt: Receipt
    degraded: tuple[Degradation, ...]
    seq: int
    content_seq: int
    nothing_known: NothingKnown | None = None
    together_with: tuple[str, ...] = ()
