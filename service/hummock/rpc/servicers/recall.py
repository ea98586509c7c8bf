"""Recall alone, which more than one kind of process answers."""

from __future__ import annotations

from hummock.rpc.parse.recall import recall_query
from hummock.rpc.present import recall as present
from hummock.rpc.rest import Rest
from hummock.rpc.use_cases import Recall
from hummock.v1 import recall_pb2


def recall_response(recall: Recall, request: recall_pb2.RecallRequest) -> recall_pb2.RecallResponse | Rest:
    """Finds the memories that bear on a query: at once, or on a worker."""
    query = recall_query(request)
    recalled = recall.at_once(query)
    if recalled is None:
        return Rest(lambda: present.recall_response(recall(query)))
    return present.recall_response(recalled)
