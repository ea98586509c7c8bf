"""Projects never see each other, through the socket."""

from __future__ import annotations

import grpc
import pytest

from hummock.v1 import context_service_pb2 as context
from hummock.v1 import memory_service_pb2 as memory
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
