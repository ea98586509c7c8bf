"""Memories that two services lack, or have too often, are noticed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import memory_service_pb2 as memory
from tests.postgresql.load import Ledger, check, under_load
from tests.postgresql.node import Node
from tests.postgresql.services import Service, two_services
from tests.service.calls import learn
from tests.service.inputs import note

pytestmark = pytest.mark.long

NAMES = ("one", "two")


@pytest.fixture(scope="module")
def services(node: Node, template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sequence[Service]]:
    dsn = node.create_database("test_load", template)
    with two_services(dsn, tmp_path_factory.mktemp("services")) as started:
        yield started
    node.drop_database("test_load")


def written(services: Sequence[Service], name: str) -> Ledger:
    with under_load(services, name) as ledger:
        ledger.await_flow(services, 10)
    return ledger


def test_what_was_written_is_there_and_what_is_missing_or_too_much_is_told(services: Sequence[Service]) -> None:
    ledger = written(services, "missing")
    good = check(services, ledger)
    assert (good.lost, good.doubled, ledger.stale, ledger.errors) == ([], [], [], {})

    stubs = services[0].stubs
    gone, told = next(iter(ledger.acknowledged.items()))
    stubs.memory.DeleteMemories(memory.DeleteMemoriesRequest(project=told.request.project, ids=[gone]))
    assert check(services, ledger).lost == [f"{gone} of {told.request.project} is not at service {n}" for n in NAMES]

    learn(stubs, told.request.project, note("nobody has written this down", id="stray"))
    assert f"stray of {told.request.project} was sent by nobody" in check(services, ledger).doubled


def test_a_request_that_had_two_effects_is_told(services: Sequence[Service]) -> None:
    ledger = written(services, "twice")
    memory_id, told = next(iter(ledger.acknowledged.items()))
    project = told.request.project
    # As a service would that had forgotten the request: the same memory once more.
    again = learn(services[1].stubs, project, *told.request.memories)
    assert again.results[0].status == context.LEARN_STATUS_UNCHANGED
    ledger.acknowledged[memory_id] = replace(told, reply=again)
    assert f"{memory_id} of {project} was there before it was learnt" in check(services, ledger).doubled


def test_a_service_that_was_killed_is_started_again_and_clients_go_on(services: Sequence[Service]) -> None:
    with under_load(services, "killed") as ledger:
        ledger.await_flow(services, 10)
        services[0].kill()
        ledger.await_flow(services[1:], 10)
        services[0].start()
        ledger.await_flow(services, 10)
    assert ledger.errors.keys() == {"UNAVAILABLE"}
    faults = check(services, ledger)
    assert (faults.lost, faults.doubled) == ([], [])
