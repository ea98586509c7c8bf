"""Half of a surrogate pair, as careless clients send it, in every text of the contract."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given
from hypothesis import strategies as st

from hummock.core.errors import InvalidRequest
from hummock.rpc.policy import SERVICES
from hummock.rpc.validation import bad_text_field, decode
from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import recall_pb2 as recall

MARK = "MARKED"
LONE = b"a\xed\xa0\x80bc"
DEEPEST = 3
REQUESTS = sorted({method.input_type.full_name for service in SERVICES for method in service.methods})
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


@pytest.mark.parametrize("name", REQUESTS)
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
    request = context.MemorySelection(ids=["还款", MARK, "c"])
    data = request.SerializeToString().replace(MARK.encode(), LONE)
    assert bad_text_field(context.MemorySelection, data) == "ids[1]"


@given(st.binary(max_size=200))
def test_any_bytes_have_an_answer_and_good_ones_no_field(data: bytes) -> None:
    """X6."""
    found = bad_text_field(recall.RecallRequest, data)
    try:
        recall.RecallRequest.FromString(data)
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
    assert bad_text_field(context.LearnStreamRequest, data) in {"", "learn.project"}
