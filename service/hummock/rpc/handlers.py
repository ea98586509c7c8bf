"""From the descriptors of the services to handlers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import grpc
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.descriptor_pb2 import MethodOptions
from google.protobuf.message_factory import GetMessageClass

from hummock.rpc.admin_service import AdminServicer
from hummock.rpc.admission import Door, Gates
from hummock.rpc.context_service import ContextServicer
from hummock.rpc.dispatch import (
    LearnStreamCall,
    MessageStreamCall,
    ReplyStreamCall,
    UnaryCall,
    recall_handler,
    reply_or_rest,
    reply_to,
)
from hummock.rpc.learning_service import LearningServicer
from hummock.rpc.listening import SERVICES
from hummock.rpc.memory_service import MemoryServicer
from hummock.rpc.project_service import ProjectServicer
from hummock.rpc.session_service import SessionServicer
from hummock.rpc.streams import Feed, ReplyStream
from hummock.rpc.use_cases import UseCases
from hummock.rpc.validation import compile_rules
from hummock.v1 import recall_pb2


def handlers(use_cases: UseCases, gates: Gates, door: Door, feed: Feed) -> list[grpc.GenericRpcHandler]:
    """One handler a service; the rules of every request are compiled."""
    servicers: Mapping[str, object] = {
        "ContextService": ContextServicer(use_cases),
        "MemoryService": MemoryServicer(use_cases.garden),
        "SessionService": SessionServicer(use_cases.sessions),
        "ProjectService": ProjectServicer(use_cases),
        "LearningService": LearningServicer(use_cases.learning, use_cases.observe, use_cases.scan),
        "AdminService": AdminServicer(use_cases.status, gates.load),
    }
    compile_rules(GetMessageClass(method.input_type) for service in SERVICES for method in service.methods)
    return [
        grpc.method_handlers_generic_handler(
            service.full_name,
            {method.name: _handler(method, servicers[service.name], gates, door, feed) for method in service.methods},
        )
        for service in SERVICES
    ]


def _handler(
    method: MethodDescriptor, servicer: object, gates: Gates, door: Door, feed: Feed
) -> grpc.RpcMethodHandler[bytes, bytes]:
    """The servicer's method of the same name answers. Without (de)serialisers a handler sees bytes."""
    name = f"/{method.containing_service.full_name}/{method.name}"
    if isinstance(servicer, ContextServicer) and method.client_streaming:
        stream = LearnStreamCall(name, servicer.Learn, gates.writes, door)
        return grpc.stream_stream_rpc_method_handler(stream.answer)
    gate = gates.reads if _is_read(method) else gates.writes
    request_type, servicer_method = GetMessageClass(method.input_type), getattr(servicer, method.name)
    if method.client_streaming:
        each = partial(reply_to, request_type, servicer_method)
        return grpc.stream_stream_rpc_method_handler(MessageStreamCall(name, each, gate, door).answer)
    if method.server_streaming:
        reply_stream = ReplyStream(request_type, servicer_method, gate, feed)
        return grpc.unary_stream_rpc_method_handler(ReplyStreamCall(name, reply_stream, door).answer)
    if request_type is recall_pb2.RecallRequest:
        return recall_handler(servicer_method, gates.at_once, gates.reads, door)
    work = partial(reply_or_rest, request_type, servicer_method)
    call = UnaryCall(name, work, gate, door, rest=gates.writes, is_rest_patient=True)
    return grpc.unary_unary_rpc_method_handler(call.answer)


def _is_read(method: MethodDescriptor) -> bool:
    return bool(method.GetOptions().idempotency_level == MethodOptions.NO_SIDE_EFFECTS)
