"""The caller's own facts of memories, through the socket."""

from __future__ import annotations

import pytest

from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import memory_pb2 as pb
from hummock_client.v1 import memory_service_pb2 as memory
from hummock_client.v1 import recall_pb2 as recall
from tests.service.calls import ask, edit, failure, learn, recall_request
from tests.service.inputs import note
from tests.service.running import Stubs
from tests.service.test_transfer import export, take_in
from tests.service.test_watch import told, watching


@pytest.fixture
def lamps(service: Stubs, project: str) -> str:
    learn(
        service,
        project,
        note("the lamp on pier one", id="one", metadata={"env": "prod", "部门": "风控"}),
        note("the lamp on pier two", id="two", metadata={"env": "test"}),
        note("the lamp on pier three", id="three"),
    )
    return project


def listed(service: Stubs, project: str, **facts: str) -> list[str]:
    return [
        one.id for one in service.memory.ListMemories(project=project, filter=pb.MemoryFilter(metadata=facts)).memories
    ]


def test_it_is_given_back_and_asked_for(service: Stubs, lamps: str) -> None:
    """S0-06, S4-41."""
    got = service.memory.GetMemory(project=lamps, id="one", view=pb.MEMORY_VIEW_INDEX).memory
    assert dict(got.metadata) == {"env": "prod", "部门": "风控"}
    assert listed(service, lamps) == ["one", "two", "three"]
    assert listed(service, lamps, env="prod") == ["one"]
    assert listed(service, lamps, env="prod", 部门="风控") == ["one"]
    assert listed(service, lamps, env="Prod") == []
    assert listed(service, lamps, env="prod", 部门="运营") == []
    assert listed(service, lamps, env="") == []
    found = ask(service, lamps, "lamp on the pier", filter=pb.MemoryFilter(metadata={"env": "test"}))
    assert [hit.memory.id for hit in found.hits] == ["two"]
    assert dict(found.hits[0].memory.metadata) == {"env": "test"}


def test_it_is_no_text(service: Stubs, lamps: str) -> None:
    """Neither its names nor its values are searched, and no prompt shows them."""
    for word in ("prod", "env", "风控"):
        question = recall_request(lamps, word, paths=[recall.RECALL_PATH_KEYWORD])
        assert not service.context.Recall(question).hits
        assert not service.memory.ListMemories(project=lamps, contains=word).memories
    selection = context.MemorySelection(ids=["one"])
    rendered = service.context.Render(project=lamps, memories=selection)
    assert "lamp" in rendered.text
    assert "prod" not in rendered.text


@pytest.mark.timed
def test_an_edit_replaces_all_of_it_and_leaves_the_rest(service: Stubs, lamps: str) -> None:
    with watching(service, lamps, filter=pb.MemoryFilter(metadata={"env": "prod"})) as news:
        edit(service, lamps, pb.Memory(id="two", metadata={"env": "prod"}), "metadata")
        assert told(next(news)) == [(memory.MEMORY_EVENT_TYPE_UPDATED, "two")]
        edit(service, lamps, pb.Memory(id="one", metadata={"owner": "Lin"}), "metadata")
        assert told(next(news)) == [(memory.MEMORY_EVENT_TYPE_DELETED, "one")]
    assert listed(service, lamps, env="prod") == ["two"]
    got = service.memory.GetMemory(project=lamps, id="one").memory
    assert (got.content, dict(got.metadata)) == ("the lamp on pier one", {"owner": "Lin"})
    edit(service, lamps, pb.Memory(id="one"), "metadata")
    got = service.memory.GetMemory(project=lamps, id="one").memory
    assert not got.metadata


def test_other_metadata_makes_it_another_write(service: Stubs, lamps: str) -> None:
    same = note("the lamp on pier two", id="two", metadata={"env": "test"})
    assert learn(service, lamps, same).results[0].status == context.LEARN_STATUS_UNCHANGED
    other = note("the lamp on pier two", id="two", metadata={"env": "stage"})
    assert learn(service, lamps, other).results[0].status == context.LEARN_STATUS_UPDATED
    assert listed(service, lamps, env="stage") == ["two"]


def test_it_moves_with_its_memory(service: Stubs, lamps: str) -> None:
    records = export(service, lamps)
    moved = f"{lamps}-moved"
    take_in(service, moved, records)
    assert listed(service, moved, env="prod") == ["one"]
    (again,) = take_in(service, moved, records)
    assert (again.created_count, again.updated_count, again.unchanged_count) == (0, 0, 3)


def test_explain_names_it_and_what_would_help(service: Stubs, lamps: str) -> None:
    question = recall_request(lamps, "lamp on pier one", filter=pb.MemoryFilter(metadata={"env": "test"}))
    explained = service.context.Explain(recall=question, memory_id="one")
    assert list(explained.failed_conditions) == ["metadata"]
    assert not explained.changed_recall.filter.metadata


@pytest.mark.parametrize(
    ("metadata", "field"),
    [
        ({"n" * 65: "v"}, "memories[0].metadata[" + "n" * 65 + "]"),
        ({"n": "v" * 513}, "memories[0].metadata[n]"),
        ({str(number): "" for number in range(33)}, "memories[0].metadata"),
        ({"a\nb": "v"}, "memories[0].metadata"),
    ],
)
def test_what_is_above_a_limit_is_named(service: Stubs, project: str, metadata: dict[str, str], field: str) -> None:
    assert list(failure(learn, service, project, note("x", metadata=metadata)).violations) == [field]


def test_a_mask_of_it_is_checked_alone(service: Stubs, lamps: str) -> None:
    refused = failure(edit, service, lamps, pb.Memory(id="one", metadata={"n": "v" * 513}), "metadata")
    assert list(refused.violations) == ["memory.metadata[n]"]
