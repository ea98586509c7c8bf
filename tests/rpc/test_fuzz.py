"""Whatever bytes come in, the caller hears what is wrong with them, and never that we broke."""

from __future__ import annotations

from collections.abc import Iterator

import grpc
import pytest
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given
from hypothesis import strategies as st

from hummock.core.errors import HummockError, InvalidRequest
from hummock.core.later import Later
from hummock.rpc.admin_service import AdminServicer
from hummock.rpc.admission import Load
from hummock.rpc.context_service import ContextServicer
from hummock.rpc.dispatch import Rest
from hummock.rpc.learning_service import LearningServicer
from hummock.rpc.listening import SERVICES
from hummock.rpc.memory_service import MemoryServicer
from hummock.rpc.project_service import ProjectServicer
from hummock.rpc.session_service import SessionServicer
from hummock.rpc.status import to_proto
from hummock.rpc.validation import parse
from hummock.v1 import context_service_pb2, memory_pb2, recall_pb2
from tests.rpc.edge import use_cases

CASES = use_cases()
SERVICERS: dict[str, object] = {
    "ContextService": ContextServicer(CASES),
    "MemoryService": MemoryServicer(CASES.garden),
    "SessionService": SessionServicer(CASES.sessions),
    "ProjectService": ProjectServicer(CASES),
    "LearningService": LearningServicer(CASES.learning, CASES.observe, CASES.scan),
    "AdminService": AdminServicer(CASES.status, lambda: Load(running=0, waiting=0)),
}
METHODS = {
    f"{service.name}/{method.name}": (
        GetMessageClass(method.input_type),
        getattr(SERVICERS[service.name], method.name),
    )
    for service in SERVICES
    for method in service.methods
    # LearnStream has no method of its own.
    if hasattr(SERVICERS[service.name], method.name)
}

# Tags of small field numbers with every wire type, then a length or a value: bytes that look like messages.
FIELD = st.tuples(st.integers(1, 18), st.sampled_from([0, 1, 2, 5]), st.binary(max_size=12)).map(
    lambda parts: bytes([(parts[0] << 3 | parts[1]) & 0x7F, len(parts[2])]) + parts[2]
)
HOSTILE = st.one_of(st.binary(max_size=64), st.lists(FIELD, max_size=8).map(b"".join))


def answer(method: str, data: bytes) -> Message | HummockError:
    """The reply, or the error that the caller hears."""
    request_type, servicer_method = METHODS[method]
    try:
        heard: Message | HummockError = _first(servicer_method(parse(request_type, data)))
    except HummockError as error:
        heard = error
    assert isinstance(heard, Message) or to_proto(heard).code != grpc.StatusCode.INTERNAL.value[0]
    return heard


def _first(reply: Message | Later[Message] | Rest | Iterator[Message]) -> Message:
    """A reply, also one that comes later, both halves of one, or the first of a stream."""
    if isinstance(reply, Later):
        return reply.result()
    if isinstance(reply, Rest):
        return reply.finish()
    return reply if isinstance(reply, Message) else next(reply)


@pytest.mark.parametrize("method", sorted(METHODS))
def test_every_method_is_served(method: str) -> None:
    assert isinstance(answer(method, b""), Message) == (method in {"AdminService/Status", "ProjectService/List"})


@given(st.sampled_from(sorted(METHODS)), HOSTILE)
def test_hostile_bytes_are_answered_or_refused(method: str, data: bytes) -> None:
    """V3 of the reliability notes."""
    answer(method, data)


TEXT = st.text(max_size=6)
NUMBER = st.integers(0, 300)


@given(
    st.builds(
        recall_pb2.RecallRequest,
        project=TEXT,
        query_text=TEXT,
        top_k=st.none() | NUMBER,
        min_similarity=st.none() | st.floats(width=32),
        preset=st.integers(0, 9),
        view=st.integers(0, 9),
        paths=st.lists(st.integers(0, 5), max_size=4),
        query_vector=st.none() | st.builds(memory_pb2.Vector, values=st.binary(max_size=16), emb_space=TEXT),
        filter=st.none() | st.builds(memory_pb2.Filter, tags=st.lists(TEXT, max_size=3)),
    )
)
def test_any_recall_is_answered_or_its_fields_are_named(request: recall_pb2.RecallRequest) -> None:
    heard = answer("ContextService/Recall", request.SerializeToString())
    if isinstance(heard, HummockError):
        assert isinstance(heard, InvalidRequest)
        assert heard.field


@given(
    st.builds(
        memory_pb2.MemoryInput,
        id=TEXT,
        kind=st.integers(0, 7),
        origin=st.integers(0, 7),
        trust=st.none() | st.floats(width=32),
        payload=st.none()
        | st.builds(
            memory_pb2.MemoryPayload,
            content=TEXT,
            code_fragment=st.none() | st.builds(memory_pb2.CodeFragment, path=TEXT, start_line=NUMBER, end_line=NUMBER),
        ),
        index=st.none() | st.builds(memory_pb2.MemoryIndex, tags=st.lists(TEXT, max_size=3)),
    )
)
def test_any_memory_is_learnt_or_its_fields_are_named(sent: memory_pb2.MemoryInput) -> None:
    request = context_service_pb2.LearnRequest(project="p", memories=[sent])
    heard = answer("ContextService/Learn", request.SerializeToString())
    if isinstance(heard, HummockError):
        assert isinstance(heard, InvalidRequest)
        assert heard.field.startswith("memories[0]")
