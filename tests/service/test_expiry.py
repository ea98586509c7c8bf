"""Memories that end, through the socket."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import cast

import grpc
import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from hummock.wiring import service as wiring
from hummock_client.errors import FailedCall, call_error
from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import memory_pb2 as pb
from hummock_client.v1 import memory_service_pb2 as memory
from tests.fakes import FakeClock
from tests.service.calls import ask, learn
from tests.service.inputs import note
from tests.service.running import Stubs, in_thread, settings
from tests.service.test_transfer import export, take_in
from tests.service.test_watch import edit, told, watching

NOW = 1_700_000_000


def at(seconds: int) -> Timestamp:
    return Timestamp(seconds=NOW + seconds)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    """The service's, in place of the machine's."""
    made = FakeClock(NOW)
    monkeypatch.setattr(wiring, "SystemClock", lambda: made)
    return made


@pytest.fixture
def timely(tmp_path: Path, models_dir: Path, model: str, clock: FakeClock) -> Iterator[Stubs]:
    """A service by that clock."""
    with in_thread(settings(tmp_path, models_dir, model)) as stubs:
        yield stubs


def found(service: Stubs) -> list[str]:
    """Ids that a recall gives, whatever as_of says."""
    answers = [
        sorted(hit.memory.id for hit in ask(service, "p", "lamp on the pier", min_similarity=0, **more).hits)
        for more in ({}, {"as_of": at(-100)}, {})
    ]
    assert answers[0] == answers[1] == answers[2]
    return answers[0]


def test_no_call_brings_it_back_from_its_time_on(timely: Stubs, clock: FakeClock) -> None:
    """S4-40."""
    learn(
        timely, "p", note("the lamp on pier one", id="one", expire_time=at(60)), note("the lamp on pier two", id="two")
    )
    got = timely.memory.GetMemory(memory.GetMemoryRequest(project="p", id="one", view=pb.MEMORY_VIEW_INDEX)).memory
    assert got.expire_time == at(60)
    assert found(timely) == ["one", "two"]
    with watching(timely, "p") as news:
        clock.move(60)
        assert found(timely) == ["two"]
        listed = timely.memory.ListMemories(memory.ListMemoriesRequest(project="p")).memories
        assert [one.id for one in listed] == ["two"]
        with pytest.raises(grpc.RpcError) as error:
            timely.memory.GetMemory(memory.GetMemoryRequest(project="p", id="one"))
        assert call_error(cast("FailedCall", error.value)).reason == "MEMORY_NOT_FOUND"
        read = timely.memory.BatchGetMemories(memory.BatchGetMemoriesRequest(project="p", ids=["one", "two"]))
        assert list(read.missing_ids) == ["one"]
        selection = context.MemorySelection(ids=["one"])
        rendered = timely.context.Render(context.RenderRequest(project="p", memories=selection))
        assert list(rendered.missing_ids) == ["one"]
        assert told(next(news)) == [(memory.MEMORY_EVENT_TYPE_DELETED, "one")]
    assert found(timely) == ["two"]


def test_its_time_moves_with_it_and_is_changed(timely: Stubs, clock: FakeClock) -> None:
    learn(
        timely, "p", note("the lamp on pier one", id="one", expire_time=at(60)), note("the lamp on pier two", id="two")
    )
    records = export(timely, "p")
    take_in(timely, "moved", records)
    request = memory.GetMemoryRequest(project="moved", id="one")
    assert timely.memory.GetMemory(request).memory.expire_time == at(60)
    (again,) = take_in(timely, "moved", records)
    assert (again.created_count, again.updated_count, again.unchanged_count) == (0, 0, 2)
    edit(timely, "p", pb.Memory(id="one"), "expire_time")
    clock.move(60)
    assert found(timely) == ["one", "two"]
    (late,) = take_in(timely, "late", records)
    assert (late.created_count, len(late.failures)) == (1, 0)


def test_a_time_that_has_passed_is_refused(timely: Stubs) -> None:
    with pytest.raises(grpc.RpcError) as error:
        learn(timely, "p", note("x", expire_time=at(0)))
    refused = call_error(cast("FailedCall", error.value))
    assert (refused.code, refused.field_violations[0].field) == (
        grpc.StatusCode.INVALID_ARGUMENT,
        "memories[0].expire_time",
    )
    learn(timely, "p", note("x", id="x"))
    with pytest.raises(grpc.RpcError) as error:
        edit(timely, "p", pb.Memory(id="x", expire_time=at(-1)), "expire_time")
    assert call_error(cast("FailedCall", error.value)).field_violations[0].field == "memory.expire_time"
