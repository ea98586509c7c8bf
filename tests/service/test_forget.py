"""Memories that are forgotten, with a receipt, or deleted by a filter, through the socket."""

from __future__ import annotations

import uuid
from typing import Any

import grpc
import pytest

from hummock.memories.forget import digest_of
from hummock_client import Client
from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import memory_pb2 as pb
from hummock_client.v1 import memory_service_pb2 as memory
from hummock_client.v1 import recall_pb2 as recall
from tests.service.calls import ask, contents, failure, learn, memory_ids
from tests.service.inputs import fragment, note
from tests.service.running import Stubs

SECRET = "the harbour code is 4711"


def forget(service: Stubs, project: str, **asked: Any) -> memory.ForgetResponse:
    return service.memory.Forget(project=project, **asked)


def log(service: Stubs, project: str) -> str:
    """Text of the whole learning log."""
    return str(service.learning.ListLearningEvents(project=project, page_size=1000))


def require_replay(service: Stubs, project: str) -> None:
    replayed = service.learning.ReplayLearning(project=project)
    assert replayed.matches
    assert replayed.digest == replayed.replayed_digest


def turn_of(project: str, turn: int, text: str) -> context.RenderTurnRequest:
    """The prompt of a turn of the session, with what the text refers to."""
    asked = recall.RecallRequest(query_text=text, preset=recall.PRESET_CODEX)
    render = context.RenderRequest(project=project, recall=asked, form=context.RENDER_FORM_MEMORIES)
    return context.RenderTurnRequest(scope="s", turn=turn, render=render)


@pytest.fixture
def lived_in(service: Stubs, project: str) -> str:
    """Memories of a session and others, a conversation, and an entry with keywords that was used and judged."""
    entry = pb.Memory(id="core", kind=pb.MEMORY_KIND_ENTRY, title="潮汐木芯", content="退潮时发光的心材")
    other = pb.Memory(id="pier", kind=pb.MEMORY_KIND_ENTRY, title="栈桥", content="木头做的长桥")
    learn(
        service,
        project,
        entry,
        other,
        note(SECRET, id="code", session_id="s", tags=["secret"]),
        note("the lamp on pier 7 was lit", id="lamp"),
        fragment("src/Repay.kt", "repay", "fun repay() = 1"),
    )
    service.learning.UpdateLearningSettings(project=project, enabled=True, request_id=str(uuid.uuid4()))
    service.session.CreateSession(project=project, id="s")
    for text in (SECRET, "thank you"):
        service.session.AppendMessage(project=project, session_id="s", role=context.PROMPT_ROLE_USER, content=text)
    for turn, text in enumerate((SECRET, "潮汐木芯在哪里"), start=1):
        service.context.RenderTurn(turn_of(project, turn, text))
        service.learning.ObserveTurn(project=project, scope="s", turn=turn, user_text=text, used_memory_ids=["core"])
    service.context.Feedback(
        project=project,
        query_text="where does 潮汐木芯 grow",
        verdicts=[context.FeedbackVerdict(memory_id="core", judgement=context.JUDGEMENT_HELPFUL)],
    )
    require_replay(service, project)
    return project


def test_a_memory_that_is_forgotten_is_nowhere_and_the_log_still_replays(service: Stubs, lived_in: str) -> None:
    """X7, I5, I7."""
    assert "core" in log(service, lived_in)
    receipt = forget(service, lived_in, ids=["core"])
    assert (receipt.memory_count, receipt.remaining_count) == (1, 0)
    assert receipt.event_count > 0
    assert receipt.ids_digest == digest_of(["core"])
    assert "core" not in memory_ids(service, lived_in)
    assert "退潮时发光的心材" not in contents(ask(service, lived_in, "潮汐木芯"))
    assert "core" not in log(service, lived_in)
    assert "grow" not in log(service, lived_in)
    require_replay(service, lived_in)
    learn(service, lived_in, pb.Memory(id="core", kind=pb.MEMORY_KIND_ENTRY, title="芯", content="新的"))
    require_replay(service, lived_in)


def test_a_session_goes_with_its_messages_its_memories_and_its_turns(service: Stubs, lived_in: str) -> None:
    """X7, I7. It may be named twice."""
    where = pb.MemoryFilter(session_ids=["s", "s"])
    counted = forget(service, lived_in, filter=where, with_sessions=True, dry_run=True)
    receipt = forget(service, lived_in, filter=where, with_sessions=True)
    assert (receipt.memory_count, receipt.session_count, receipt.message_count) == (1, 1, 2)
    assert counted.event_count == receipt.event_count > 0
    assert receipt.ids_digest == digest_of(["code", "s"])
    with pytest.raises(grpc.RpcError):
        service.session.ListMessages(project=lived_in, session_id="s")
    assert "4711" not in log(service, lived_in)
    assert '"s"' not in log(service, lived_in)
    assert "潮汐木芯在哪里" not in log(service, lived_in)
    require_replay(service, lived_in)


def test_what_holds_a_text_goes_and_the_log_no_longer_quotes_it(service: Stubs, lived_in: str) -> None:
    """X7."""
    receipt = forget(service, lived_in, contains="HARBOUR code")
    assert receipt.memory_count == 1
    assert memory_ids(service, lived_in).count("code") == 0
    assert "4711" not in log(service, lived_in)
    assert "潮汐木芯在哪里" in log(service, lived_in)
    require_replay(service, lived_in)


@pytest.mark.parametrize(
    ("asked", "gone"),
    [
        ({"filter": pb.MemoryFilter(tags=["secret"])}, ["code"]),
        ({"filter": pb.MemoryFilter(tags=["secret"]), "ids": ["lamp"]}, []),
        ({"filter": pb.MemoryFilter(kinds=[pb.MEMORY_KIND_NOTE]), "ids": ["lamp", "core"]}, ["lamp"]),
        ({"contains": "pier", "ids": ["lamp", "core"]}, ["lamp"]),
        ({"contains": "pier", "filter": pb.MemoryFilter(tags=["secret"])}, []),
    ],
)
def test_conditions_combine_and_a_dry_run_counts_alike(
    service: Stubs, lived_in: str, asked: dict[str, Any], gone: list[str]
) -> None:
    before = memory_ids(service, lived_in)
    counted = forget(service, lived_in, dry_run=True, **asked)
    assert memory_ids(service, lived_in) == before
    assert counted.ids_digest == ""
    receipt = forget(service, lived_in, **asked)
    assert receipt.memory_count == counted.memory_count == len(gone)
    assert sorted(set(before) - set(memory_ids(service, lived_in))) == gone


def test_a_repeat_has_the_first_receipt_and_no_effect(service: Stubs, lived_in: str) -> None:
    request_id = str(uuid.uuid4())
    first = forget(service, lived_in, contains="pier", request_id=request_id)
    learn(service, lived_in, note("another pier", id="new"))
    assert forget(service, lived_in, contains="pier", request_id=request_id) == first
    assert "new" in memory_ids(service, lived_in)


@pytest.mark.timed
def test_who_watches_is_told(service: Stubs, lived_in: str) -> None:
    stream = service.memory.WatchMemories(project=lived_in)
    next(stream)
    forget(service, lived_in, ids=["lamp"])
    told = next(stream).events.events
    assert [(event.id, event.change) for event in told] == [("lamp", memory.MEMORY_EVENT_TYPE_DELETED)]
    stream.cancel()


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({}, ""),
        ({"filter": pb.MemoryFilter()}, ""),
        ({"ids": ["a"], "with_sessions": True}, "with_sessions"),
        ({"contains": "x" * 257}, "contains"),
    ],
)
def test_what_is_not_said_well_is_refused(service: Stubs, lived_in: str, asked: dict[str, Any], field: str) -> None:
    before = memory_ids(service, lived_in)
    refused = failure(forget, service, lived_in, **asked)
    assert refused.code is grpc.StatusCode.INVALID_ARGUMENT
    assert list(refused.violations) == [field]
    assert memory_ids(service, lived_in) == before


TESTS = pb.MemoryFilter(metadata={"env": "test"})


def delete(service: Stubs, project: str, **asked: Any) -> memory.DeleteMemoriesResponse:
    return service.memory.DeleteMemories(project=project, **asked)


@pytest.fixture
def mixed(service: Stubs, project: str) -> str:
    learn(
        service,
        project,
        note("one", id="a", metadata={"env": "test"}),
        note("two", id="b", metadata={"env": "prod"}),
        note("three", id="c", metadata={"env": "test"}, tags=["keep"]),
    )
    return project


def test_what_passes_goes_and_nothing_else(service: Stubs, mixed: str) -> None:
    """S4-40, S0-06."""
    learn(service, f"{mixed}-other", note("one", id="a", metadata={"env": "test"}))
    counted = delete(service, mixed, filter=TESTS, dry_run=True)
    assert (counted.deleted_count, counted.remaining_count) == (2, 0)
    assert memory_ids(service, mixed) == ["a", "b", "c"]
    deleted = delete(service, mixed, filter=TESTS)
    assert (deleted.deleted_count, deleted.remaining_count, list(deleted.missing_ids)) == (2, 0, [])
    assert deleted.seq == counted.seq + 1
    assert memory_ids(service, mixed) == ["b"]
    assert memory_ids(service, f"{mixed}-other") == ["a"]
    assert delete(service, mixed, filter=TESTS).deleted_count == 0


def test_a_repeated_deletion_has_the_first_answer(service: Stubs, mixed: str) -> None:
    request_id = str(uuid.uuid4())
    first = delete(service, mixed, filter=TESTS, request_id=request_id)
    learn(service, mixed, note("four", id="d", metadata={"env": "test"}))
    assert delete(service, mixed, filter=TESTS, request_id=request_id) == first
    assert memory_ids(service, mixed) == ["b", "d"]


@pytest.mark.long
def test_many_go_in_bounded_writes(service: Stubs, project: str) -> None:
    vectorless = [note(f"row {number}", id=f"m{number}", tags=["row"]) for number in range(1030)]
    client = Client(service.target)
    for start in range(0, len(vectorless), 515):
        client.learn(project, vectorless[start : start + 512], embedding=context.EMBEDDING_MODE_DEFERRED)
        client.learn(project, vectorless[start + 512 : start + 515], embedding=context.EMBEDDING_MODE_DEFERRED)
    where = pb.MemoryFilter(tags=["row"], excluded_ids=["m7"])
    first = delete(service, project, filter=where)
    assert (first.deleted_count, first.remaining_count) == (512, 517)
    assert client.delete_where(project, where, dry_run=True) == 517
    assert client.delete_where(project, where) == 517
    assert memory_ids(service, project) == ["m7"]
    client.close()


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({}, "ids"),
        ({"ids": ["a"], "dry_run": True}, "dry_run"),
        ({"ids": ["a"], "filter": TESTS}, "ids"),
        ({"filter": pb.MemoryFilter()}, "filter"),
        ({"filter": pb.MemoryFilter(), "dry_run": True}, "filter"),
        ({"filter": pb.MemoryFilter(tags=["x" * 129])}, "filter.tags[0]"),
    ],
)
def test_a_deletion_that_is_not_said_well_is_refused(
    service: Stubs, mixed: str, asked: dict[str, Any], field: str
) -> None:
    refused = failure(delete, service, mixed, **asked)
    assert refused.code is grpc.StatusCode.INVALID_ARGUMENT
    assert next(iter(refused.violations)) == field
    assert memory_ids(service, mixed) == ["a", "b", "c"]
