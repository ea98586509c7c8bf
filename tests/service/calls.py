"""Short forms of calls."""

from __future__ import annotations

from typing import Any

from hummock_client import requests
from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import memory_pb2 as pb
from hummock_client.v1 import project_service_pb2 as project_pb
from hummock_client.v1 import recall_pb2 as recall
from tests.service.running import Stubs


def learn(service: Stubs, project: str, *memories: pb.Memory, request_id: str = "") -> context.LearnResponse:
    return service.context.Learn(context.LearnRequest(project=project, memories=memories, request_id=request_id))


def ask(service: Stubs, project: str, text: str, **options: Any) -> recall.RecallResponse:
    return service.context.Recall(recall_request(project, text, **options))


def recall_request(project: str, text: str, **options: Any) -> recall.RecallRequest:
    """A recall as clients ask for it, its tuning among the options."""
    return requests.recall(project, text, options)  # type: ignore[arg-type] # by name


def await_vectors(service: Stubs, project: str) -> None:
    """Returns when no memory of a project waits for its vectors."""
    for reply in service.project.WatchProject(project_pb.WatchProjectRequest(project=project)):
        if not reply.pending_count:
            return


def chat(service: Stubs, project: str, text: str, **options: Any) -> list[str]:
    """Contents of the hits of the chat preset, best first."""
    return contents(ask(service, project, text, preset=recall.PRESET_CHAT, **options))


def contents(response: recall.RecallResponse) -> list[str]:
    return [hit.memory.content for hit in response.hits]


def stages(receipt: recall.Receipt) -> list[str]:
    """Names of the stages that ran."""
    return [recall.RecallStage.Name(one.stage).removeprefix("RECALL_STAGE_").lower() for one in receipt.stages]


def degraded(answer: recall.RecallResponse | context.RenderResponse) -> list[tuple[str, str]]:
    """Parts that were left out, with their reasons."""
    return [
        (
            recall.DegradedPart.Name(one.part).removeprefix("DEGRADED_PART_").lower(),
            recall.DegradationReason.Name(one.reason).removeprefix("DEGRADATION_REASON_"),
        )
        for one in answer.degraded
    ]
