"""How calls travel: options, deadlines, retries."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.descriptor_pb2 import MethodOptions
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from hummock.v1 import (
    admin_service_pb2,
    context_service_pb2,
    learning_service_pb2,
    memory_service_pb2,
    project_service_pb2,
    session_service_pb2,
)
from hummock_client.target import is_local

_LARGEST_REPLY_BYTES = 16 * 1024 * 1024
_RETRY = {
    "maxAttempts": 4,
    "initialBackoff": "0.1s",
    "maxBackoff": "1s",
    "backoffMultiplier": 2,
    "retryableStatusCodes": ["UNAVAILABLE"],
}

_SERVICES: tuple[ServiceDescriptor, ...] = (
    context_service_pb2.DESCRIPTOR.services_by_name["ContextService"],
    memory_service_pb2.DESCRIPTOR.services_by_name["MemoryService"],
    session_service_pb2.DESCRIPTOR.services_by_name["SessionService"],
    project_service_pb2.DESCRIPTOR.services_by_name["ProjectService"],
    learning_service_pb2.DESCRIPTOR.services_by_name["LearningService"],
    admin_service_pb2.DESCRIPTOR.services_by_name["AdminService"],
)

LEARN_STREAM = "/hummock.v1.ContextService/LearnStream"
IMPORT = "/hummock.v1.ProjectService/Import"


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadlines:
    """Seconds after which a call is given up, unless the call itself says otherwise."""

    read_s: float = 5.0
    write_s: float = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """How one kind of request travels."""

    path: str
    reply_type: type[Message]
    is_read: bool

    def timeout_s(self, deadlines: Deadlines, chosen_s: float | None) -> float:
        """Seconds for one call."""
        return chosen_s if chosen_s is not None else deadlines.read_s if self.is_read else deadlines.write_s


def _routes(*, of_streams: bool) -> dict[str, Route]:
    return {
        method.input_type.full_name: Route(
            path=f"/{service.full_name}/{method.name}",
            reply_type=GetMessageClass(method.output_type),
            is_read=_is_read(method),
        )
        for service in _SERVICES
        for method in service.methods
        if not method.client_streaming and method.server_streaming == of_streams
    }


def _is_read(method: MethodDescriptor) -> bool:
    return bool(method.GetOptions().idempotency_level == MethodOptions.NO_SIDE_EFFECTS)


ROUTES: Mapping[str, Route] = _routes(of_streams=False)
"""Requests with one reply, by their full names."""

STREAMS: Mapping[str, Route] = _routes(of_streams=True)
"""Requests that are answered with a stream."""


def channel_options(target: str) -> list[tuple[str, int | str]]:
    """Options of a channel to a resolved target."""
    options: list[tuple[str, int | str]] = [
        ("grpc.max_receive_message_length", _LARGEST_REPLY_BYTES),
        ("grpc.service_config", _service_config()),
        ("grpc.keepalive_time_ms", 60_000),
        # A service that restarts is found again within a second or two.
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.min_reconnect_backoff_ms", 100),
        ("grpc.max_reconnect_backoff_ms", 2_000),
    ]
    if is_local(target):
        # http_proxy of a company network does not know this machine's loopback.
        options.append(("grpc.enable_http_proxy", 0))
    return options


def _service_config() -> str:
    """Reads are repeated when the service cannot be reached; writes never, for they may have happened."""
    routes = (*ROUTES.values(), *STREAMS.values())
    reads = [route.path[1:].split("/") for route in routes if route.is_read]
    names = [{"service": service, "method": method} for service, method in reads]
    return json.dumps({"methodConfig": [{"name": names, "retryPolicy": _RETRY}]})
