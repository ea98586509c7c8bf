"""Requests for an explanation."""

from __future__ import annotations

from hummock.core.explain import ExplainQuery
from hummock.rpc.parse import values
from hummock.rpc.parse.recall import recall_query
from hummock.v1 import explain_pb2 as pb


def explain_query(request: pb.ExplainRequest) -> ExplainQuery:
    """A recall, checked like one that came alone, and a memory."""
    return ExplainQuery(
        recall=recall_query(request.recall, "recall."),
        memory_id=values.identifier("memory_id", request.memory_id),
    )
