"""How the service is, as a value."""

from __future__ import annotations

from dataclasses import dataclass

from hummock.core.embedding import EmbeddingSpace


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreStatus:
    """How full a store is. Bytes of the directory in use and allowed; bytes of the indexes in memory."""

    directory: str
    used_bytes: int
    quota_bytes: int
    project_count: int
    loaded_project_count: int
    loaded_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnerStatus:
    """How keywords are learnt since the service began.

    Attributes:
        model: The language model's name; empty where there is none, and the counts of it are 0.
        requests: Sent to it, repeated ones included.
        replies: Of these, those that were answered with something usable.
        prompt_tokens: That it counted in questions, if it counts.
        completion_tokens: That it counted in answers.
        waiting_turns: Turns that are to be learnt from.
        dropped_turns: Turns that never were, because newer ones came first.
    """

    model: str = ""
    requests: int = 0
    replies: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    waiting_turns: int = 0
    dropped_turns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceStatus:
    """What runs, on what, and how full it is; `advice` says what could be better, empty when there is nothing."""

    version: str
    uptime_s: float
    space: EmbeddingSpace
    advice: str
    store: StoreStatus
    learner: LearnerStatus
