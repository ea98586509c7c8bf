"""What somebody says of a recall's memories, as values."""

from __future__ import annotations

from dataclasses import dataclass

from hummock.core.learning_events import Verdict

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
