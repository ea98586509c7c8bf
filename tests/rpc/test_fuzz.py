"""For any bytes the caller gets the reason why they are invalid, and never an internal error."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from random import Random
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given
from hypothesis import strategies as st

from bench.toy_models import build_tiny
from hummock.core.errors import HummockError, InvalidRequest
from hummock.rpc.admission import Load
from hummock.rpc.call import CallContext
from hummock.rpc.lanes import Lane
from hummock.rpc.methods import servicers
from hummock.rpc.policy import SERVICES, MethodPolicy, policy_of
from hummock.rpc.status import Spliced, to_bytes, to_proto
from hummock.rpc.validation import bad_text_field, decode, parse
from hummock_client.v1 import context_service_pb2, memory_pb2, recall_pb2
from tests.rpc import fuzz
from tests.rpc.edge import use_cases
from tests.rpc.hostile import hostile

SERVICERS = servicers(use_cases(), lambda: Load(running=0, waiting=0))
METHODS: dict[str, tuple[type[Message], MethodPolicy, Any]] = {
    f"{service.name}/{descriptor.name}": (
        GetMessageClass(descriptor.input_type),
        policy_of(descriptor),
        getattr(SERVICERS[service.name], descriptor.name),
    )
    for service in SERVICES
    for descriptor in service.methods
    # LearnStream has no method of its own.
    if policy_of(descriptor).lane is not Lane.BATCHES
}


def answer(method: str, data: bytes) -> Message | HummockError:
    """The reply, or the error that the caller hears."""
    request_type, policy, answered = METHODS[method]
    try:
        # Messages of a stream are answered by what knows those before.
        asked = answered() if policy.lane is Lane.MESSAGES else answered
        heard: Message | HummockError = _first(asked(parse(request_type, data), CallContext()))
    except HummockError as error:
        heard = error
    assert isinstance(heard, Message) or to_proto(heard).code != grpc.StatusCode.INTERNAL.value[0]
    return heard


def _first(reply: Any) -> Message:
    """A reply, also one that comes later, that a second half makes, or the first of a stream."""
    if isinstance(reply, Future):
        reply = reply.result()
    elif isinstance(reply, Iterator):
        reply = next(reply)
    elif callable(reply):
        reply = reply()
    if isinstance(reply, Spliced):
        reply = recall_pb2.RecallResponse.FromString(to_bytes(reply))
    assert isinstance(reply, Message)
    return reply


@pytest.mark.parametrize("method", sorted(METHODS))
def test_every_method_is_served(method: str) -> None:
    assert isinstance(answer(method, b""), Message) == (
        method in {"AdminService/GetStatus", "ProjectService/ListProjects"}
    )


@given(st.sampled_from(sorted(METHODS)), st.binary(max_size=64) | st.integers(0, 2**32))
def test_hostile_requests_are_answered_or_refused(method: str, drawn: bytes | int) -> None:
    """V3: mere bytes, and messages of the contract as `make fuzz` sends them."""
    request_type, *_ = METHODS[method]
    data = drawn if isinstance(drawn, bytes) else hostile(Random(drawn), request_type.DESCRIPTOR)  # noqa: S311
    answer(method, data)


TEXT = st.text(max_size=6)
NUMBER = st.integers(0, 300)


@given(
    st.builds(
        recall_pb2.RecallRequest,
        project=TEXT,
        query_text=TEXT,
        tuning=st.none()
        | st.builds(recall_pb2.RecallTuning, top_k=st.none() | NUMBER, min_similarity=st.none() | st.floats(width=32)),
        preset=st.integers(0, 9),
        view=st.integers(0, 9),
        paths=st.lists(st.integers(0, 5), max_size=4),
        query_vector=st.none() | st.builds(memory_pb2.Embedding, values=st.binary(max_size=16), emb_space=TEXT),
        filter=st.none() | st.builds(memory_pb2.MemoryFilter, tags=st.lists(TEXT, max_size=3)),
    )
)
def test_any_recall_is_answered_or_its_fields_are_named(request: recall_pb2.RecallRequest) -> None:
    heard = answer("ContextService/Recall", request.SerializeToString())
    if isinstance(heard, HummockError):
        assert isinstance(heard, InvalidRequest)
        assert heard.field


@given(
    st.builds(
        memory_pb2.Memory,
        id=TEXT,
        kind=st.integers(0, 7),
        origin=st.integers(0, 7),
        trust=st.none() | st.floats(width=32),
        content=TEXT,
        code_fragment=st.none() | st.builds(memory_pb2.CodeFragment, path=TEXT, start_line=NUMBER, end_line=NUMBER),
        tags=st.lists(TEXT, max_size=3),
    )
)
def test_any_memory_is_learnt_or_its_fields_are_named(sent: memory_pb2.Memory) -> None:
    request = context_service_pb2.LearnRequest(project="p", memories=[sent])
    heard = answer("ContextService/Learn", request.SerializeToString())
    if isinstance(heard, HummockError):
        assert isinstance(heard, InvalidRequest)
        assert heard.field.startswith("memories[0]")


@pytest.mark.long
def test_hostile_calls_over_the_socket_break_nothing(tmp_path: Path) -> None:
    """V3: as `make fuzz` does, fewer of them."""
    (tmp_path / "models").mkdir()
    model = build_tiny(tmp_path / "models").name
    figures = fuzz.run(tmp_path, tmp_path / "models", model, calls=1500, seed=1, processes=1)
    assert figures.broken == []
    assert not figures.has_ended
    # Not all are refused at the door.
    assert figures.codes["OK"] > 100


MARK = "MARKED"
LONE = b"a\xed\xa0\x80bc"
"""Half of a surrogate pair, as careless clients send it."""
DEEPEST = 3
TYPES = {method.input_type.full_name: method.input_type for service in SERVICES for method in service.methods}


def texts(message_type: Descriptor, depth: int = 0) -> Iterator[tuple[FieldDescriptor, ...]]:
    """The ways to each text of a message."""
    for field in message_type.fields:
        if field.type == FieldDescriptor.TYPE_STRING:
            yield (field,)
        elif field.message_type is not None and depth < DEEPEST and field.message_type.file.package == "hummock.v1":
            for rest in texts(field.message_type, depth + 1):
                yield (field, *rest)


def marked(message: Message, way: tuple[FieldDescriptor, ...]) -> str:
    """Puts the mark at the end of a way; gives its path."""
    field, *rest = way
    name = f"{field.name}[0]" if field.is_repeated else field.name
    if not rest:
        if field.is_repeated:
            getattr(message, field.name).append(MARK)
        else:
            setattr(message, field.name, MARK)
        return name
    inner = getattr(message, field.name)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        (part,) = rest
        inner.update({MARK: ""} if part.name == "key" else {"": MARK})
        return f"{name}.{part.name}"
    return f"{name}.{marked(inner.add() if field.is_repeated else inner, tuple(rest))}"


@pytest.mark.parametrize("name", sorted(TYPES))
def test_every_text_of_every_request_is_named_when_it_is_none(name: str) -> None:
    """S0-36: over the wire a lone surrogate is invalid UTF-8."""
    request_type = GetMessageClass(TYPES[name])
    for way in texts(TYPES[name]):
        request = request_type()
        path = marked(request, way)
        assert request.SerializeToString().count(MARK.encode()) == 1
        with pytest.raises(InvalidRequest) as refused:
            decode(request_type, request.SerializeToString().replace(MARK.encode(), LONE))
        assert refused.value.field == path


def test_the_place_in_a_list_is_named() -> None:
    request = context_service_pb2.MemorySelection(ids=["还款", MARK, "c"])
    data = request.SerializeToString().replace(MARK.encode(), LONE)
    assert bad_text_field(context_service_pb2.MemorySelection, data) == "ids[1]"


@given(st.binary(max_size=200))
def test_any_bytes_have_an_answer_and_good_ones_no_field(data: bytes) -> None:
    """X6."""
    found = bad_text_field(recall_pb2.RecallRequest, data)
    try:
        recall_pb2.RecallRequest.FromString(data)
    except DecodeError:
        return
    assert found == ""


def test_a_message_within_messages_without_end_is_given_up() -> None:
    """X6."""
    data = b""
    for _ in range(2000):
        size = len(data)
        length = b""
        while size > 127:
            length += bytes([size & 127 | 128])
            size >>= 7
        data = b"\x0a" + length + bytes([size]) + data
    assert bad_text_field(context_service_pb2.LearnStreamRequest, data) in {"", "learn.project"}
