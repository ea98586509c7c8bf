"""Memories that go by a filter, through the socket."""

from __future__ import annotations

import uuid
from typing import Any, cast

import grpc
import pytest

from hummock_client import Client
from hummock_client.errors import FailedCall, call_error
from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import memory_pb2 as pb
from hummock_client.v1 import memory_service_pb2 as memory
from tests.service.calls import learn
from tests.service.inputs import note
from tests.service.running import Stubs

TESTS = pb.MemoryFilter(metadata={"env": "test"})


def delete(service: Stubs, project: str, **asked: Any) -> memory.DeleteMemoriesResponse:
    return service.memory.DeleteMemories(memory.DeleteMemoriesRequest(project=project, **asked))


def listed(service: Stubs, project: str) -> list[str]:
    return [one.id for one in service.memory.ListMemories(memory.ListMemoriesRequest(project=project)).memories]


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
    assert listed(service, mixed) == ["a", "b", "c"]
    deleted = delete(service, mixed, filter=TESTS)
    assert (deleted.deleted_count, deleted.remaining_count, list(deleted.missing_ids)) == (2, 0, [])
    assert deleted.seq == counted.seq + 1
    assert listed(service, mixed) == ["b"]
    assert listed(service, f"{mixed}-other") == ["a"]
    assert delete(service, mixed, filter=TESTS).deleted_count == 0


def test_a_repeat_has_the_first_answer(service: Stubs, mixed: str) -> None:
    request_id = str(uuid.uuid4())
    first = delete(service, mixed, filter=TESTS, request_id=request_id)
    learn(service, mixed, note("four", id="d", metadata={"env": "test"}))
    assert delete(service, mixed, filter=TESTS, request_id=request_id) == first
    assert listed(service, mixed) == ["b", "d"]


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
    assert listed(service, project) == ["m7"]
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
def test_what_is_not_said_well_is_refused(service: Stubs, mixed: str, asked: dict[str, Any], field: str) -> None:
    with pytest.raises(grpc.RpcError) as error:
        delete(service, mixed, **asked)
    refused = call_error(cast("FailedCall", error.value))
    assert refused.code is grpc.StatusCode.INVALID_ARGUMENT
    assert refused.field_violations[0].field == field
    assert listed(service, mixed) == ["a", "b", "c"]
