"""Why a recall brought back a given memory, or did not, as values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from msgspec import Struct

from hummock.core.recall import Correction, Degradation, RecallQuery


class LossStage(IntEnum):
    """Stages at which a recall may lose a memory, in their order.

    SUPERSEDED and WINDOW come after FILTER, WRITER_CAP after RANK.
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
    """Scores of one memory at the stages of a recall, as in `Hit`; 0 if a stage did not reach it, ranks count from 1.

    Attributes:
        cosine: Of its best chunk.
        corrections: As in `Hit`; empty if it is no candidate.
        joined: The paths' joined score, in [0, 1].
        relevance: Sort key of candidates, in [0, 1]; for an excluded one the value that it would have had.
        evidence: Evidence of words shared with the query; from 1 it needs no similarity, except for code under CODE,
            where it lowers the required similarity.
        vector_rank: Rank by cosine, among those that pass the filter and itself; `keyword_rank` by words, among them.
        relevance_rank: Rank among the remaining candidates.
        place: Place in the order in which hits are picked, in a list of unlimited length.
        searched: Memories that pass the filter.
        pool: Candidates per path.
        top_k: Largest number of hits of its group.
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
        stage: Stage that lost it; None if it is a hit.
        group: "main", "code" or "domains"; empty if no group takes it.
        failed: For FILTER, the fields of Filter that it does not meet.
        others: The memories preferred to it: one for NEAR_TWIN and DIVERSITY, every newer copy for DUPLICATE, all that
            replace it for SUPERSEDED.
        value: The number that decided; for a hit its rank.
        threshold: The limit for `value`; for a hit the room in its group.
        numbers: None if it was lost before any memory was scored.
        degraded: Stages of the recall that failed or were left out.
        graph_recall: Proven recall of the graph that searched its group by vector; None where none did.
    """

    stage: LossStage | None
    group: str = ""
    failed: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    value: float = 0.0
    threshold: float = 0.0
    numbers: Numbers | None = None
    degraded: tuple[Degradation, ...] = ()
    graph_recall: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Path of a field in a recall's request, and its new value as text; empty if it is cleared."""

    field: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """Changes to the recall that was asked about, the recall with them, and the memory's rank in its group, from 1."""

    changes: tuple[Change, ...]
    recall: RecallQuery
    rank: int


class Explained(Struct, frozen=True, kw_only=True):
    """The explanation of a recall for one memory; `sentence` says the verdict in words.

    `verdict` is None if the project has no such memory. `project_settings` are paths of the request's fields that the
    project's settings filled in.
    """

    verdict: Verdict | None
    sentence: str
    remedy: Remedy | None = None
    project_settings: tuple[str, ...] = ()
