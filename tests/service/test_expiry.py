"""Memories that end by their own time, or by what their project keeps, through the socket."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import grpc
import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from hummock.wiring import service as wiring
from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import memory_pb2 as pb
from hummock_client.v1 import memory_service_pb2 as memory
from tests.fakes import FakeClock
from tests.service.calls import ask, change_settings, edit, failure, learn
from tests.service.inputs import note
from tests.service.running import Stubs, in_thread, settings
from tests.service.test_transfer import export, take_in
from tests.service.test_watch import told, watching

pytestmark = pytest.mark.timed

CLOCK = FakeClock(1_700_000_000)
"""The service's, in place of the machine's."""


def at(seconds: int) -> Timestamp:
    return Timestamp(seconds=int(CLOCK.now()) + seconds)


@pytest.fixture(scope="module")
def timely(tmp_path_factory: pytest.TempPathFactory, models_dir: Path, model: str) -> Iterator[Stubs]:
    """A service by that clock."""
    with ExitStack() as stack:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(wiring, "SystemClock", lambda: CLOCK)
            chosen = settings(tmp_path_factory.mktemp("data"), models_dir, model)
            stubs = stack.enter_context(in_thread(chosen))
        yield stubs


@pytest.fixture
def piers(timely: Stubs, project: str) -> str:
    """A project with two memories, one of which ends in a minute."""
    one, two = (note(f"the lamp on pier {name}", id=name) for name in ("one", "two"))
    one.expire_time.CopyFrom(at(60))
    learn(timely, project, one, two)
    return project


def found(service: Stubs, project: str) -> list[str]:
    """Ids that a recall gives, whatever as_of says."""
    answers = [
        sorted(hit.memory.id for hit in ask(service, project, "lamp on the pier", min_similarity=0, **more).hits)
        for more in ({}, {"as_of": at(-100)}, {})
    ]
    assert answers[0] == answers[1] == answers[2]
    return answers[0]


def test_no_call_brings_it_back_from_its_time_on(timely: Stubs, piers: str) -> None:
    """S4-40."""
    got = timely.memory.GetMemory(project=piers, id="one", view=pb.MEMORY_VIEW_INDEX).memory
    assert got.expire_time == at(60)
    assert found(timely, piers) == ["one", "two"]
    with watching(timely, piers) as news:
        CLOCK.move(60)
        assert found(timely, piers) == ["two"]
        listed = timely.memory.ListMemories(project=piers).memories
        assert [one.id for one in listed] == ["two"]
        assert failure(timely.memory.GetMemory, project=piers, id="one").reason == "MEMORY_NOT_FOUND"
        read = timely.memory.BatchGetMemories(project=piers, ids=["one", "two"])
        assert list(read.missing_ids) == ["one"]
        selection = context.MemorySelection(ids=["one"])
        rendered = timely.context.Render(project=piers, memories=selection)
        assert list(rendered.missing_ids) == ["one"]
        assert told(next(news)) == [(memory.MEMORY_EVENT_TYPE_DELETED, "one")]
    assert found(timely, piers) == ["two"]


def test_its_time_moves_with_it_and_is_changed(timely: Stubs, piers: str) -> None:
    records = export(timely, piers)
    take_in(timely, f"{piers}-moved", records)
    assert timely.memory.GetMemory(project=f"{piers}-moved", id="one").memory.expire_time == at(60)
    (again,) = take_in(timely, f"{piers}-moved", records)
    assert (again.created_count, again.updated_count, again.unchanged_count) == (0, 0, 2)
    edit(timely, piers, pb.Memory(id="one"), "expire_time")
    CLOCK.move(60)
    assert found(timely, piers) == ["one", "two"]
    (late,) = take_in(timely, f"{piers}-late", records)
    assert (late.created_count, len(late.failures)) == (1, 0)


def test_a_time_that_has_passed_is_refused(timely: Stubs, project: str) -> None:
    refused = failure(learn, timely, project, note("x", expire_time=at(0)))
    assert (refused.code, list(refused.violations)) == (grpc.StatusCode.INVALID_ARGUMENT, ["memories[0].expire_time"])
    learn(timely, project, note("x", id="x"))
    refused = failure(edit, timely, project, pb.Memory(id="x", expire_time=at(-1)), "expire_time")
    assert list(refused.violations) == ["memory.expire_time"]


@pytest.mark.parametrize(
    "values", [{"max_age_days": 0}, {"max_age_days": 40_000}, {"max_memories": 0}, {"max_bytes": 0}]
)
def test_what_would_keep_nothing_is_refused(service: Stubs, project: str, values: dict[str, float]) -> None:
    learn(service, project, note("the lamp on pier one", id="one"))
    refused = failure(change_settings, service, project, "retention", retention=values)
    assert refused.code is grpc.StatusCode.INVALID_ARGUMENT
