"""A memory that another replaces, through the socket."""

from __future__ import annotations

from typing import cast

import grpc
import pytest

from hummock_client.errors import FailedCall, call_error
from hummock_client.streaming import import_messages
from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import explain_pb2
from hummock_client.v1 import memory_service_pb2 as pb
from hummock_client.v1 import project_service_pb2 as projects
from hummock_client.v1 import recall_pb2 as recall
from tests.service.calls import ask, await_vectors, learn
from tests.service.inputs import note
from tests.service.running import Stubs

QUERY = "how deep is the harbour"
OLD = "the harbour is five metres deep"
NEW = "the harbour is nine metres deep since it was dredged"


def recalled(service: Stubs, project: str) -> list[str]:
    return [hit.memory.id for hit in ask(service, project, QUERY).hits]


def test_a_replaced_memory_is_not_recalled_and_can_be_read(service: Stubs, project: str) -> None:
    """1.1-17, 1.1-1: a recall of before is not answered from the cache."""
    learn(service, project, note(OLD, id="old"))
    assert recalled(service, project) == ["old"]
    learn(service, project, note(NEW, id="new", supersedes=["old"]))
    assert recalled(service, project) == ["new"]
    got = service.memory.GetMemory(pb.GetMemoryRequest(project=project, id="old")).memory
    assert (got.content, list(got.superseded_by)) == (OLD, ["new"])
    listed = service.memory.ListMemories(pb.ListMemoriesRequest(project=project)).memories
    assert {one.id: list(one.superseded_by) for one in listed} == {"old": ["new"], "new": []}
    batch = service.memory.BatchGetMemories(pb.BatchGetMemoriesRequest(project=project, ids=["new", "old"])).memories
    assert [list(one.superseded_by) for one in batch] == [[], ["new"]]


def test_removing_what_replaced_it_brings_it_back(service: Stubs, project: str) -> None:
    """1.1-17."""
    learn(service, project, note(NEW, id="new", supersedes=["old"]), note(OLD, id="old"))
    assert recalled(service, project) == ["new"]
    service.memory.DeleteMemories(pb.DeleteMemoriesRequest(project=project, ids=["new"]))
    assert recalled(service, project) == ["old"]


def test_an_update_that_names_it_replaces_it(service: Stubs, project: str) -> None:
    """1.1-17."""
    learn(service, project, note(NEW, id="new"), note(OLD, id="old"))
    assert set(recalled(service, project)) == {"new", "old"}
    changed = pb.UpdateMemoryRequest(project=project)
    changed.memory.id = "new"
    changed.memory.supersedes.append("old")
    changed.update_mask.paths.append("supersedes")
    service.memory.UpdateMemory(changed)
    assert recalled(service, project) == ["new"]


def test_explain_says_by_what_it_is_replaced(service: Stubs, project: str) -> None:
    """1.1-17."""
    learn(service, project, note(OLD, id="old"), note(NEW, id="new", supersedes=["old"]))
    asked = recall.RecallRequest(project=project, query_text=QUERY)
    told = service.context.Explain(explain_pb2.ExplainRequest(recall=asked, memory_id="old"))
    assert (told.outcome, told.stage) == (explain_pb2.EXPLAIN_OUTCOME_LOST, explain_pb2.LOSS_STAGE_SUPERSEDED)
    assert told.other_id == "new"
    assert told.sentence.startswith("It is superseded by new.")
    assert [(change.field, change.value) for change in told.changes] == [("include_superseded", "true")]
    asked.include_superseded = True
    told = service.context.Explain(explain_pb2.ExplainRequest(recall=asked, memory_id="old"))
    assert told.outcome == explain_pb2.EXPLAIN_OUTCOME_RECALLED


def test_who_asks_for_replaced_memories_is_told_by_which(service: Stubs, project: str) -> None:
    """1.1-17, 1.1-1: an answer without them is none to who asks for them."""
    learn(service, project, note(OLD, id="old"), note(NEW, id="new", supersedes=["old"]))
    assert recalled(service, project) == ["new"]
    asked = recall.RecallRequest(project=project, query_text=QUERY, include_superseded=True)
    hits = service.context.Recall(asked).hits
    assert {hit.memory.id: list(hit.memory.superseded_by) for hit in hits} == {"old": ["new"], "new": []}
    assert recalled(service, project) == ["new"]


def test_no_prompt_holds_what_was_replaced(service: Stubs, project: str) -> None:
    """1.1-17."""
    learn(service, project, note(OLD, id="old"), note(NEW, id="new", supersedes=["old"]))
    asked = recall.RecallRequest(query_text=QUERY)
    rendered = service.context.Render(context.RenderRequest(project=project, recall=asked))
    assert (NEW in rendered.text, OLD in rendered.text) == (True, False)
    asked.include_superseded = True
    with pytest.raises(grpc.RpcError) as caught:
        service.context.Render(context.RenderRequest(project=project, recall=asked))
    error = call_error(cast(FailedCall, caught.value))
    assert (error.reason, error.metadata["field"]) == ("INVALID_REQUEST", "recall.include_superseded")


def test_what_moved_to_another_project_replaces_there(service: Stubs, project: str) -> None:
    """S1-06, S1-07."""
    learn(service, project, note(OLD, id="old"), note(NEW, id="new", supersedes=["old"]))
    request = projects.ExportProjectRequest(project=project)
    records = [record for message in service.project.ExportProject(request, timeout=60) for record in message.records]
    moved = f"{project}-moved"
    list(service.project.ImportProject(import_messages(moved, enumerate(records, start=1)), timeout=60))
    await_vectors(service, moved)
    assert recalled(service, moved) == ["new"]
