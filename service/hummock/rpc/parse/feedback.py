"""Requests with feedback."""

from __future__ import annotations

from hummock.core.errors import InvalidRequest
from hummock.core.feedback import FeedbackCommand
from hummock.core.learning_events import Judgement, Verdict
from hummock.rpc.parse import values
from hummock.v1 import context_service_pb2 as pb


def feedback_command(request: pb.FeedbackRequest) -> FeedbackCommand:
    """Feedback. Raises: InvalidRequest."""
    if not request.verdicts and not request.note.strip():
        raise InvalidRequest("verdicts", "is empty, and so is note; say one of them")
    judged: set[str] = set()
    for place, verdict in enumerate(request.verdicts):
        if verdict.memory_id in judged:
            raise InvalidRequest(f"verdicts[{place}].memory_id", "has a verdict already")
        judged.add(values.identifier(f"verdicts[{place}].memory_id", verdict.memory_id))
    return FeedbackCommand(
        project=values.project_name("project", request.project),
        request_id=values.request_id(request.request_id),
        query_text=request.query_text,
        verdicts=tuple(
            Verdict(memory_id=one.memory_id, judgement=Judgement(one.judgement)) for one in request.verdicts
        ),
        note=request.note,
        session_id=values.identifier("session_id", request.session_id),
        fingerprint=values.fingerprint(request),
    )
