"""Projects never see each other, through the socket."""

from __future__ import annotations

from typing import Any, cast

import grpc
import pytest

from hummock_client.errors import FailedCall, call_error
from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import explain_pb2 as explain
from hummock_client.v1 import learning_service_pb2 as learning
from hummock_client.v1 import memory_service_pb2 as memory
from hummock_client.v1 import project_service_pb2 as projects
from hummock_client.v1 import recall_pb2 as recall
from hummock_client.v1 import session_service_pb2 as sessions
from tests.service.calls import ask, contents, learn
from tests.service.inputs import note
from tests.service.running import Stubs


def test_equal_ids_and_texts_of_two_projects_never_mix(service: Stubs, project: str) -> None:
    """S0-06, S1-06."""
    names = [f"{project}-{number}" for number in range(5)]
    for name in names:
        learn(service, name, note("the same words", id="same"), note(f"canary of {name}", id="canary"))
    for name in names:
        assert set(contents(ask(service, name, "canary of the same words"))) == {"the same words", f"canary of {name}"}
    service.memory.DeleteMemories(memory.DeleteMemoriesRequest(project=names[0], ids=["same", "canary"]))
    assert contents(ask(service, names[0], "canary")) == []
    assert len(contents(ask(service, names[1], "canary"))) == 2


def test_a_text_that_one_project_deletes_is_still_known_to_another(service: Stubs, project: str) -> None:
    """S0-06. The first memories of two projects have the same number, so that a key without the project is one key."""
    names = [f"{project}-{number}" for number in range(2)]
    ids = [learn(service, name, note("the same words")).results[0].id for name in names]
    service.memory.DeleteMemories(memory.DeleteMemoriesRequest(project=names[0], ids=ids[:1]))
    assert learn(service, names[1], note("the same words")).results[0].duplicate_of == ids[1]
    assert not learn(service, names[0], note("the same words")).results[0].duplicate_of


def test_an_unknown_project_is_not_found_by_whatever_reads_it(service: Stubs, project: str) -> None:
    """X4."""
    side = context.TurnSide(text="q")
    recall_it = recall.RecallRequest(project=project, query_text="anything")
    calls: list[tuple[Any, Any]] = [
        (service.context.Recall, recall_it),
        (service.context.Render, context.RenderRequest(project=project, recall=recall_it)),
        (service.context.RenderTurn, context.RenderTurnRequest(render={"project": project, "recall": recall_it})),  # type: ignore[arg-type]
        (service.context.Search, context.SearchRequest(project=project, query_text="anything")),
        (service.context.Explain, explain.ExplainRequest(recall=recall_it, memory_id="x")),
        (
            service.context.LearnTurn,
            context.LearnTurnRequest(project=project, session_id="s", user=side, assistant=side),
        ),
        (service.memory.GetMemory, memory.GetMemoryRequest(project=project, id="x")),
        (service.memory.BatchGetMemories, memory.BatchGetMemoriesRequest(project=project, ids=["x"])),
        (service.memory.ListMemories, memory.ListMemoriesRequest(project=project)),
        (service.memory.DeleteMemories, memory.DeleteMemoriesRequest(project=project, ids=["x"])),
        (service.session.ListSessions, sessions.ListSessionsRequest(project=project)),
        (service.session.GetSession, sessions.GetSessionRequest(project=project, id="s")),
        (service.session.ListMessages, sessions.ListMessagesRequest(project=project, session_id="s")),
        (service.project.GetProject, projects.GetProjectRequest(project=project)),
        (service.project.GetProjectSettings, projects.GetProjectSettingsRequest(project=project)),
        (service.learning.GetLearningState, learning.GetLearningStateRequest(project=project)),
        (service.learning.ReplayLearning, learning.ReplayLearningRequest(project=project)),
        (service.learning.ListLearningEvents, learning.ListLearningEventsRequest(project=project)),
    ]
    for call, request in calls:
        with pytest.raises(grpc.RpcError) as refused:
            call(request)
        error = call_error(cast(FailedCall, refused.value))
        assert (error.code, error.reason) == (grpc.StatusCode.NOT_FOUND, "PROJECT_NOT_FOUND"), request
        assert error.metadata == {"project": project}
    for watch in (
        service.memory.WatchMemories(memory.WatchMemoriesRequest(project=project)),
        service.session.WatchMessages(sessions.WatchMessagesRequest(project=project, session_id="s")),
        service.project.WatchProject(projects.WatchProjectRequest(project=project)),
        service.learning.WatchLearningState(learning.WatchLearningStateRequest(project=project)),
    ):
        with pytest.raises(grpc.RpcError, match=project):
            next(watch)


def test_a_missing_project_is_empty_where_it_may_be_and_is_not_made_by_reading(service: Stubs, project: str) -> None:
    """X4."""
    assert contents(ask(service, project, "anything", allow_missing=True)) == []
    selection = context.MemorySelection(ids=["x"])
    rendered = service.context.Render(context.RenderRequest(project=project, memories=selection, allow_missing=True))
    assert (rendered.text, list(rendered.missing_ids)) == ("", ["x"])
    listed = service.memory.ListMemories(memory.ListMemoriesRequest(project=project, allow_missing=True))
    assert not listed.memories
    assert not service.session.ListSessions(sessions.ListSessionsRequest(project=project, allow_missing=True)).sessions
    with pytest.raises(grpc.RpcError, match="does not exist"):
        service.project.GetProject(projects.GetProjectRequest(project=project))


def test_a_foreign_id_answers_as_a_missing_one(service: Stubs, project: str) -> None:
    learn(service, f"{project}-other", note("not yours", id="theirs"))
    learn(service, project, note("mine", id="mine"))
    answers = []
    for memory_id in ("theirs", "nobody"):
        with pytest.raises(grpc.RpcError) as error:
            service.memory.GetMemory(memory.GetMemoryRequest(project=project, id=memory_id))
        answers.append((error.value.code(), str(error.value.details()).replace(memory_id, "ID")))
    assert answers[0] == answers[1]


def test_a_foreign_id_is_as_unknown_as_any_to_whatever_takes_ids(service: Stubs, project: str) -> None:
    """S0-06."""
    learn(service, f"{project}-other", note("not yours", id="theirs"))
    learn(service, project, note("mine", id="mine"))
    ids = ["theirs", "nobody"]
    rendered = service.context.Render(
        context.RenderRequest(project=project, memories=context.MemorySelection(ids=[*ids, "mine"]), read_ids=ids)
    )
    assert list(rendered.missing_ids) == ids
    assert "not yours" not in rendered.text
    read = service.memory.BatchGetMemories(memory.BatchGetMemoriesRequest(project=project, ids=ids))
    assert (list(read.missing_ids), len(read.memories)) == (ids, 0)
    deleted = service.memory.DeleteMemories(memory.DeleteMemoriesRequest(project=project, ids=ids))
    assert (list(deleted.missing_ids), deleted.deleted_count) == (ids, 0)
    question = recall.RecallRequest(project=project, query_text="not yours")
    explained = [service.context.Explain(explain.ExplainRequest(recall=question, memory_id=one)) for one in ids]
    assert explained[0] == explained[1]
    assert explained[0].outcome == explain.EXPLAIN_OUTCOME_NOT_FOUND
    assert contents(ask(service, f"{project}-other", "not yours")) == ["not yours"]
