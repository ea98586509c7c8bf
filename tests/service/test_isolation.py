"""Projects never see each other, through the socket."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import grpc
import pytest

from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import explain_pb2 as explain
from hummock_client.v1 import recall_pb2 as recall
from tests.service.calls import ask, contents, failure, learn, reads
from tests.service.inputs import note
from tests.service.running import Stubs


@pytest.mark.long
def test_equal_ids_and_texts_of_two_projects_never_mix(service: Stubs, project: str) -> None:
    """S0-06, S1-06."""
    names = [f"{project}-{number}" for number in range(5)]
    for name in names:
        learn(service, name, note("the same words", id="same"), note(f"canary of {name}", id="canary"))
    for name in names:
        assert set(contents(ask(service, name, "canary of the same words"))) == {"the same words", f"canary of {name}"}
    service.memory.DeleteMemories(project=names[0], ids=["same", "canary"])
    assert contents(ask(service, names[0], "canary")) == []
    assert len(contents(ask(service, names[1], "canary"))) == 2


def test_a_text_that_one_project_deletes_is_still_known_to_another(service: Stubs, project: str) -> None:
    """S0-06. The first memories of two projects have the same number, so that a key without the project is one key."""
    names = [f"{project}-{number}" for number in range(2)]
    ids = [learn(service, name, note("the same words")).results[0].id for name in names]
    service.memory.DeleteMemories(project=names[0], ids=ids[:1])
    assert learn(service, names[1], note("the same words")).results[0].duplicate_of == ids[1]
    assert not learn(service, names[0], note("the same words")).results[0].duplicate_of


def test_an_unknown_project_is_not_found_by_whatever_reads_it(service: Stubs, project: str) -> None:
    """X4."""
    side = context.TurnSide(text="q")
    turn = {"project": project, "recall": {"query_text": "anything"}}
    calls: list[Callable[[], object]] = [
        *reads(service, project),
        partial(service.context.RenderTurn, render=turn),
        partial(service.context.LearnTurn, project=project, session_id="s", user=side, assistant=side),
        partial(service.memory.DeleteMemories, project=project, ids=["x"]),
    ]
    for call in calls:
        refused = failure(call)
        assert (refused.code, refused.reason) == (grpc.StatusCode.NOT_FOUND, "PROJECT_NOT_FOUND"), call
        assert refused.metadata == {"project": project}


def test_a_missing_project_is_empty_where_it_may_be_and_is_not_made_by_reading(service: Stubs, project: str) -> None:
    """X4."""
    assert contents(ask(service, project, "anything", allow_missing=True)) == []
    selection = context.MemorySelection(ids=["x"])
    rendered = service.context.Render(project=project, memories=selection, allow_missing=True)
    assert (rendered.text, list(rendered.missing_ids)) == ("", ["x"])
    listed = service.memory.ListMemories(project=project, allow_missing=True)
    assert not listed.memories
    assert not service.session.ListSessions(project=project, allow_missing=True).sessions
    with pytest.raises(grpc.RpcError, match="does not exist"):
        service.project.GetProject(project=project)


def test_a_foreign_id_is_as_unknown_as_any_to_whatever_takes_ids(service: Stubs, project: str) -> None:
    """S0-06."""
    learn(service, f"{project}-other", note("not yours", id="theirs"))
    learn(service, project, note("mine", id="mine"))
    ids = ["theirs", "nobody"]
    rendered = service.context.Render(
        project=project, memories=context.MemorySelection(ids=[*ids, "mine"]), read_ids=ids
    )
    assert list(rendered.missing_ids) == ids
    assert "not yours" not in rendered.text
    read = service.memory.BatchGetMemories(project=project, ids=ids)
    assert (list(read.missing_ids), len(read.memories)) == (ids, 0)
    deleted = service.memory.DeleteMemories(project=project, ids=ids)
    assert (list(deleted.missing_ids), deleted.deleted_count) == (ids, 0)
    question = recall.RecallRequest(project=project, query_text="not yours")
    explained = [service.context.Explain(recall=question, memory_id=one) for one in ids]
    assert (explained[0], explained[0].outcome) == (explained[1], explain.EXPLAIN_OUTCOME_NOT_FOUND)
    assert contents(ask(service, f"{project}-other", "not yours")) == ["not yours"]
