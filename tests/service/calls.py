"""Short forms of calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from typing import Any

import grpc
import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from typer.testing import CliRunner, Result

from hummock.cli.main import app
from hummock_client import requests
from hummock_client.streaming import import_messages
from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import explain_pb2
from hummock_client.v1 import memory_pb2 as pb
from hummock_client.v1 import memory_service_pb2 as memory
from hummock_client.v1 import project_service_pb2 as project_pb
from hummock_client.v1 import recall_pb2 as recall
from hummock_client.v1.transfer_pb2 import TransferRecord
from tests.rpc.edge import Refusal, refusal_of
from tests.service.running import Stubs


def learn(service: Stubs, project: str, *memories: pb.Memory, **options: Any) -> context.LearnResponse:
    return service.context.Learn(project=project, memories=memories, **options)


def ask(service: Stubs, project: str, text: str, **options: Any) -> recall.RecallResponse:
    return service.context.Recall(recall_request(project, text, **options))


def edit(service: Stubs, project: str, changed: pb.Memory, *paths: str) -> memory.UpdateMemoryResponse:
    """Changes the fields of a memory that the paths name."""
    return service.memory.UpdateMemory(project=project, memory=changed, update_mask={"paths": paths})


def memory_ids(service: Stubs, project: str, **asked: Any) -> list[str]:
    """Ids of a list's first page."""
    return [one.id for one in service.memory.ListMemories(project=project, **asked).memories]


def pages(call: Callable[..., Any], **asked: Any) -> list[Any]:
    """All replies of a call that lists."""
    found: list[Any] = []
    while not found or found[-1].next_page_token:
        token = found[-1].next_page_token if found else ""
        found.append(call(page_token=token, **asked))
    return found


def render(service: Stubs, project: str, text: str, **more: Any) -> context.RenderResponse:
    """The rendering of a recall that asks for nothing but a text."""
    return service.context.Render(project=project, recall=recall.RecallRequest(query_text=text), **more)


def change_settings(
    service: Stubs, project: str, *paths: str, request_id: str = "", **groups: Any
) -> project_pb.UpdateProjectSettingsResponse:
    """Sets the settings that the paths name."""
    mask = {"paths": paths}
    return service.project.UpdateProjectSettings(
        project=project, request_id=request_id, settings=groups, update_mask=mask
    )


def explain(service: Stubs, project: str, text: str, memory_id: str, **options: Any) -> explain_pb2.ExplainResponse:
    return service.context.Explain(recall=recall_request(project, text, **options), memory_id=memory_id)


def hummock(service: Stubs, *arguments: str, stdin: bytes | None = None) -> Result:
    """The outcome of a command that calls the service."""
    return CliRunner().invoke(app, [*arguments, "--target", service.target], input=stdin)


def stamp(moment: datetime) -> Timestamp:
    time = Timestamp()
    time.FromDatetime(moment)
    return time


def recall_request(project: str, text: str, **options: Any) -> recall.RecallRequest:
    """A recall as clients ask for it, its tuning among the options."""
    return requests.recall(project, text, options)  # type: ignore[arg-type] # by name


def await_vectors(service: Stubs, project: str) -> None:
    """Returns when no memory of a project waits for its vectors."""
    for reply in service.project.WatchProject(project=project):
        if not reply.pending_count:
            return


def chat(service: Stubs, project: str, text: str, **options: Any) -> list[str]:
    """Contents of the hits of the chat preset, best first."""
    return contents(ask(service, project, text, preset=recall.PRESET_CHAT, **options))


def contents(response: recall.RecallResponse) -> list[str]:
    return [hit.memory.content for hit in response.hits]


def failure(call: Callable[..., object], *arguments: Any, **options: Any) -> Refusal:
    """The status with which a call fails."""
    with pytest.raises(grpc.RpcError) as caught:
        call(*arguments, **options)
    return refusal_of(caught.value)


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


def reads(service: Stubs, project: str) -> list[Callable[[], object]]:
    """A call of each method that reads from a project; of a watch its first message."""
    ask_it = recall.RecallRequest(project=project, query_text="lamp")
    watches = (
        partial(service.project.WatchProject, project=project),
        partial(service.memory.WatchMemories, project=project),
        partial(service.session.WatchMessages, project=project, session_id="s"),
        partial(service.learning.WatchLearningState, project=project),
    )
    return [
        partial(service.context.Recall, ask_it),
        partial(service.context.Render, project=project, recall=ask_it),
        partial(service.context.Search, project=project, query_text="lamp"),
        partial(service.context.Explain, recall=ask_it, memory_id="lamp"),
        partial(service.memory.GetMemory, project=project, id="lamp"),
        partial(service.memory.BatchGetMemories, project=project, ids=["lamp"]),
        partial(service.memory.ListMemories, project=project),
        partial(service.session.GetSession, project=project, id="s"),
        partial(service.session.ListSessions, project=project),
        partial(service.session.ListMessages, project=project, session_id="s"),
        partial(service.project.GetProject, project=project),
        partial(service.project.GetProjectSettings, project=project),
        partial(service.learning.GetLearningState, project=project),
        partial(service.learning.ReplayLearning, project=project),
        partial(service.learning.ListLearningEvents, project=project),
        lambda: list(service.project.ExportProject(project=project)),
        *(partial(_first, watch) for watch in watches),
    ]


def export(service: Stubs, project: str, *, with_vectors: bool = False) -> list[TransferRecord]:
    messages = service.project.ExportProject(project=project, with_vectors=with_vectors, timeout=60)
    return [record for message in messages for record in message.records]


def take_in(service: Stubs, project: str, records: Iterable[TransferRecord]) -> list[project_pb.ImportProjectResponse]:
    return list(service.project.ImportProject(import_messages(project, enumerate(records, start=1)), timeout=60))


@contextmanager
def watching(service: Stubs, project: str, **asked: Any) -> Iterator[Iterator[memory.WatchMemoriesResponse]]:
    """The messages of a watch after its start."""
    call = service.memory.WatchMemories(project=project, allow_missing=True, **asked, timeout=60)
    try:
        start = next(call)
        assert (start.WhichOneof("news"), start.seq) == ("start", asked.get("after_seq", start.seq))
        yield call
    finally:
        call.cancel()


def told(news: memory.WatchMemoriesResponse) -> list[tuple[int, str]]:
    return [(event.change, event.id) for event in news.events.events]


def _first(watch: Callable[[], Any]) -> object:
    call = watch()
    try:
        return next(call)
    finally:
        call.cancel()
