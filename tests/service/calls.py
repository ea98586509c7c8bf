"""Short forms of calls."""

from __future__ import annotations

from typing import Any

from hummock.v1 import context_service_pb2 as context
from hummock.v1 import memory_pb2 as pb
from hummock.v1 import project_service_pb2 as project_pb
from hummock.v1 import recall_pb2 as recall
from tests.service.running import Stubs


def learn(service: Stubs, project: str, *memories: pb.MemoryInput, request_id: str = "") -> context.LearnResponse:
    return service.context.Learn(context.LearnRequest(project=project, memories=memories, request_id=request_id))


def ask(service: Stubs, project: str, text: str, **options: Any) -> recall.RecallResponse:
    return service.context.Recall(recall.RecallRequest(project=project, query_text=text, **options))


def await_vectors(service: Stubs, project: str) -> None:
    """Returns when no memory of a project waits for its vectors."""
    for reply in service.project.Watch(project_pb.ProjectServiceWatchRequest(project=project)):
        if not reply.pending_count:
            return


def chat(service: Stubs, project: str, text: str, **options: Any) -> list[str]:
    """Contents of the hits of the chat preset, best first."""
    return contents(ask(service, project, text, preset=recall.PRESET_CHAT, **options))


def contents(response: recall.RecallResponse) -> list[str]:
    return [hit.memory.payload.content for hit in response.hits]
