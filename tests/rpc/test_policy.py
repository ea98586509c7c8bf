"""What is known of a call before it is decoded: its method's lane, its project, and the caller on its connection."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given
from hypothesis import strategies as st

from hummock.rpc.interceptor import PEER, peer_of
from hummock.rpc.lanes import Lane
from hummock.rpc.methods import check_table
from hummock.rpc.policy import POLICIES, SERVICES, SMALL_BYTES, peek
from hummock_client.v1 import context_service_pb2 as pb
from hummock_client.v1 import memory_pb2
from hummock_client.v1.memory_service_pb2 import ListMemoriesRequest

REQUESTS = {
    method.input_type.name: GetMessageClass(method.input_type) for service in SERVICES for method in service.methods
}
WITHOUT = {"GetStatusRequest", "ListProjectsRequest"}


@pytest.mark.parametrize("name", sorted(REQUESTS))
def test_the_project_is_found_in_every_request(name: str) -> None:
    request: Any = REQUESTS[name]()
    fields = REQUESTS[name].DESCRIPTOR.fields_by_name
    inner = next((one for one in ("render", "recall", "learn") if one in fields and "project" not in fields), None)
    holder = getattr(request, inner) if inner else request
    if name in WITHOUT:
        assert peek(REQUESTS[name], request.SerializeToString()) == ([], request)
        return
    holder.project = "还款 project"
    assert peek(REQUESTS[name], request.SerializeToString()) == (["还款 project"], request)


def test_a_turn_in_a_stream_has_its_project_too() -> None:
    request = pb.LearnStreamRequest(learn_turn=pb.LearnTurnRequest(project="p", session_id="s"))
    assert peek(pb.LearnStreamRequest, request.SerializeToString()) == (["p"], request)


def test_it_is_found_behind_other_fields() -> None:
    before = pb.LearnRequest(memories=[memory_pb2.Memory(content="x" * 300)], request_id="r").SerializeToString()
    data = before + pb.LearnRequest(project="p").SerializeToString()
    assert peek(pb.LearnRequest, data)[0] == ["p"]


def test_a_large_request_is_not_kept_decoded_while_it_waits() -> None:
    sizes = [SMALL_BYTES // 2, 2 * SMALL_BYTES]
    requests = [pb.LearnRequest(project="p", memories=[memory_pb2.Memory(content="x" * size)]) for size in sizes]
    kept = [peek(pb.LearnRequest, request.SerializeToString()) for request in requests]
    assert kept == [(["p"], requests[0]), (["p"], None)]


@given(st.binary(max_size=200))
def test_garbage_has_some_project_or_none(data: bytes) -> None:
    for name in ("LearnStreamRequest", "ListMemoriesRequest"):
        projects, request = peek(REQUESTS[name], data)
        assert all(isinstance(each, str) and each for each in projects)
        assert request is not None or not projects
    assert peek(ListMemoriesRequest, data[:0]) == ([], ListMemoriesRequest())


@dataclass
class Context:
    said: str
    metadata: tuple[tuple[str, str], ...] = ()

    def peer(self) -> str:
        return self.said

    def invocation_metadata(self) -> tuple[tuple[str, str], ...]:
        return self.metadata


@pytest.mark.parametrize(
    ("peer", "caller"),
    [
        ("ipv4:127.0.0.1:4711", "ipv4:127.0.0.1:4711"),
        ("ipv6:%5B::1%5D:4711", "ipv6:%5B::1%5D:4711"),
        ("ipv6:[::1]:4711", "ipv6:[::1]:4711"),
        ("ipv4:192.0.2.7:4711", "192.0.2.7"),
        ("ipv6:%5B2001:db8::7%5D:4711", "%5B2001:db8::7%5D"),
        ("unix:", "unix:"),
    ],
)
def test_another_machine_is_one_caller_and_a_process_here_is_one_each(peer: str, caller: str) -> None:
    assert peer_of(Context(peer)) == caller


def test_what_is_handed_on_keeps_its_caller_and_nobody_else_can_say_who_he_is() -> None:
    said = ((PEER, "ipv4:192.0.2.7:4711"),)
    assert peer_of(Context("unix:", said)) == "192.0.2.7"
    assert peer_of(Context("ipv4:192.0.2.9:1", said)) == "192.0.2.9"


def test_the_table_and_the_contract_agree() -> None:
    check_table(POLICIES)


@pytest.mark.parametrize("service", sorted(POLICIES))
def test_a_method_that_the_table_leaves_out_is_found_at_the_start(service: str) -> None:
    rows = dict(POLICIES[service])
    rows.popitem()
    with pytest.raises(ValueError, match="each method of the contract once"):
        check_table({**POLICIES, service: rows})


@pytest.mark.parametrize(
    ("service", "name", "lane"),
    [
        ("ContextService", "Search", Lane.WRITE),
        ("ContextService", "Learn", Lane.READ),
        ("MemoryService", "WatchMemories", Lane.READ),
        ("ProjectService", "ImportProject", Lane.WRITE_STREAM),
        ("LearningService", "LearnKeywords", Lane.READ_STREAM),
    ],
)
def test_a_lane_that_the_contract_forbids_is_found_at_the_start(service: str, name: str, lane: Lane) -> None:
    wrong = {**POLICIES[service], name: replace(POLICIES[service][name], lane=lane)}
    with pytest.raises(ValueError, match=f"{service}/{name} cannot be in lane {lane.name}"):
        check_table({**POLICIES, service: wrong})
