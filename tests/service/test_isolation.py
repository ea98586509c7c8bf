"""Projects never see each other, through the socket."""

from __future__ import annotations

import grpc
import pytest

from hummock.v1 import context_service_pb2 as context
from hummock.v1 import explain_pb2 as explain
from hummock.v1 import memory_service_pb2 as memory
from hummock.v1 import recall_pb2 as recall
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
    service.memory.Delete(memory.MemoryServiceDeleteRequest(project=names[0], ids=["same", "canary"]))
    assert contents(ask(service, names[0], "canary")) == []
    assert len(contents(ask(service, names[1], "canary"))) == 2


def test_an_unknown_project_is_empty_and_is_not_made_by_reading(service: Stubs, project: str) -> None:
    assert contents(ask(service, project, "anything")) == []
    rendered = service.context.Render(
        context.RenderRequest(project=project, memories=context.MemorySelection(ids=["x"]))
    )
    assert (rendered.text, list(rendered.missing_ids)) == ("", ["x"])
    service.memory.Delete(memory.MemoryServiceDeleteRequest(project=project, ids=["x"]))
    assert ask(service, project, "anything").seq == 0


def test_a_foreign_id_answers_as_a_missing_one(service: Stubs, project: str) -> None:
    learn(service, f"{project}-other", note("not yours", id="theirs"))
    learn(service, project, note("mine", id="mine"))
    answers = []
    for memory_id in ("theirs", "nobody"):
        with pytest.raises(grpc.RpcError) as error:
            service.memory.Get(memory.MemoryServiceGetRequest(project=project, id=memory_id))
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
    read = service.memory.BatchGet(memory.MemoryServiceBatchGetRequest(project=project, ids=ids))
    assert (list(read.missing_ids), len(read.memories)) == (ids, 0)
    deleted = service.memory.Delete(memory.MemoryServiceDeleteRequest(project=project, ids=ids))
    assert (list(deleted.missing_ids), deleted.deleted_count) == (ids, 0)
    question = recall.RecallRequest(project=project, query_text="not yours")
    explained = [service.context.Explain(explain.ExplainRequest(recall=question, memory_id=one)) for one in ids]
    assert explained[0] == explained[1]
    assert explained[0].outcome == explain.EXPLAIN_OUTCOME_NOT_FOUND
    assert contents(ask(service, f"{project}-other", "not yours")) == ["not yours"]
