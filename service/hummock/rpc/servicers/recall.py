"""Recall alone, which more than one kind of process answers."""

from __future__ import annotations

from collections.abc import Callable

from hummock.core.recall import Recalled, RecallQuery
from hummock.rpc.parse.recall import recall_query
from hummock.rpc.present import recall as present
from hummock.v1 import recall_pb2


def recall_response(
    recall: Callable[[RecallQuery], Recalled], request: recall_pb2.RecallRequest
) -> recall_pb2.RecallResponse:
    """Finds the memories that bear on a query."""
    return present.recall_response(recall(recall_query(request)))
