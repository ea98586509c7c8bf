"""Why a recall brought back a given memory, or did not, as values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from msgspec import Struct

from hummock.core.recall import Correction, Degradation, RecallQuery


class LossStage(IntEnum):
    """Stages at which a recall may lose a memory, in their order.

    SUPERSEDED and WINDOW stand behind FILTER, WRITER_CAP behind RANK.
    """

    QUERY = 1
    GROUP = 2
    FILTER = 3
    CANDIDATES = 4
    ECHO = 5
    MIN_SIMILARITY = 6
    DUPLICATE = 7
    RANK = 8
    NEAR_TWIN = 9
    DIVERSITY = 10
    WINDOW = 11
    SUPERSEDED = 12
    WRITER_CAP = 13


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainQuery:
    """A recall, and the memory that is asked about."""

    recall: RecallQuery
    memory_id: str


class Numbers(Struct, frozen=True, kw_only=True):
    """Scores of one memory at the stages of a recall; 0 where a stage did not reach it, ranks count from 1.

    Attributes:
        cosine: Of its best chunk, in [-1, 1].
        similarity: The same calibrated, in [-1, 1].
        keyword_score: BM25.
        matched_terms: Terms of the query that it holds, as the query writes them.
        corrections: Words of the query that it holds only as they may be meant; none for one that is no candidate.
        late_interaction_score: Max-sim of the token vectors, in [-1, 1].
        cross_encoder_score: In [0, 1].
        time_match: In [0, 1].
        age_days: Not below 0.
        decay: Factor of age, in [0, 1].
        joined: The paths' joined score, in [0, 1].
        relevance: What candidates are ordered by, in [0, 1]; of one that was left out, what it would have been.
        evidence: What the words that it shares with the query say for it; from 1 on it needs no similarity,
            unless it is code under CODE, of which it lowers the similarity that is asked.
        score: What a hit shows, in [0, 1].
        verdict: Factor of what was said of it, in [0.6, 1.1].
        helpful_count: Voices that said so of its text.
        wrong_count: Likewise.
        vector_rank: By cosine, among those that pass the filter and itself.
        keyword_rank: By words, among them.
        relevance_rank: Among the candidates that are left.
        place: In the order in which hits are picked, if the list were long enough.
        searched: Memories that pass the filter.
        pool: Candidates a path.
        top_k: Hits that its group has room for.
    """

    cosine: float = 0.0
    similarity: float = 0.0
    keyword_score: float = 0.0
    matched_terms: tuple[str, ...] = ()
    corrections: tuple[Correction, ...] = ()
    late_interaction_score: float = 0.0
    cross_encoder_score: float = 0.0
    time_match: float = 0.0
    age_days: float = 0.0
    decay: float = 0.0
    joined: float = 0.0
    relevance: float = 0.0
    evidence: float = 0.0
    score: float = 0.0
    verdict: float = 0.0
    helpful_count: int = 0
    wrong_count: int = 0
    vector_rank: int = 0
    keyword_rank: int = 0
    relevance_rank: int = 0
    place: int = 0
    searched: int = 0
    pool: int = 0
    top_k: int = 0


class Verdict(Struct, frozen=True, kw_only=True):
    """Result of one recall for a memory of its project.

    Attributes:
        stage: Where it was lost; None when it is a hit.
        group: "main", "code" or "domains"; empty where no group takes it.
        failed: Of FILTER, the fields of Filter that it does not meet.
        others: The memories that it had to give way to; of NEAR_TWIN and DIVERSITY one, of DUPLICATE every newer copy,
            of SUPERSEDED all that replace it.
        value: The number that decided; of a hit its rank.
        threshold: What it was held against; of a hit the room in its group.
        numbers: None where it was lost before any memory was looked at.
        degraded: What the recall could not do.
    """

    stage: LossStage | None
    group: str = ""
    failed: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    value: float = 0.0
    threshold: float = 0.0
    numbers: Numbers | None = None
    degraded: tuple[Degradation, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One field of a recall's request, by its path, and its new value as text; empty where it is cleared."""

    field: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """A recall that brings the memory back.

    Attributes:
        changes: What differs from the recall that was asked about.
        recall: With these changes.
        rank: The memory's rank in its group, from 1.
    """

    changes: tuple[Change, ...]
    recall: RecallQuery
    rank: int


class Explained(Struct, frozen=True, kw_only=True):
    """The answer.

    Attributes:
        verdict: What happened; None when the project has no such memory.
        sentence: The same, for people.
        remedy: What helps, if anything.
        project_settings: The paths of what the project said where the request did not.
    """

    verdict: Verdict | None
    sentence: str
    remedy: Remedy | None = None
    project_settings: tuple[str, ...] = ()
