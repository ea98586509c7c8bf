"""The gRPC channel: target, routes, deadlines, retries."""

from __future__ import annotations

import ipaddress
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.descriptor_pb2 import MethodOptions
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from hummock_client.requests import new_request_id
from hummock_client.v1 import (
    admin_service_pb2,
    context_service_pb2,
    learning_service_pb2,
    memory_service_pb2,
    project_service_pb2,
    session_service_pb2,
)

DEFAULT_TARGET = "127.0.0.1:7420"
DEFAULT_PORT = 7420
TARGET_VARIABLE = "HUMMOCK_TARGET"

_LARGEST_REPLY_BYTES = 16 * 1024 * 1024
_LARGEST_REPEATED_BYTES = 5 * 1024 * 1024
"""Above it gRPC forgets a request as soon as it is sent; its own default is 256 KiB, and a Learn may have 4 MiB."""
_REQUEST_ID = "request_id"
_RETRY = {
    "maxAttempts": 4,
    "initialBackoff": "0.1s",
    "maxBackoff": "1s",
    "backoffMultiplier": 2,
    # CANCELLED: a service that has more calls than it can read ends those that come, unread.
    "retryableStatusCodes": ["UNAVAILABLE", "CANCELLED"],
}

_SERVICES: tuple[ServiceDescriptor, ...] = (
    context_service_pb2.DESCRIPTOR.services_by_name["ContextService"],
    memory_service_pb2.DESCRIPTOR.services_by_name["MemoryService"],
    session_service_pb2.DESCRIPTOR.services_by_name["SessionService"],
    project_service_pb2.DESCRIPTOR.services_by_name["ProjectService"],
    learning_service_pb2.DESCRIPTOR.services_by_name["LearningService"],
    admin_service_pb2.DESCRIPTOR.services_by_name["AdminService"],
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadlines:
    """Seconds after which a call is given up, unless the call itself says otherwise."""

    read_s: float = 5.0
    write_s: float = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Path, reply type and retry properties of one kind of request."""

    path: str
    reply_type: type[Message]
    is_read: bool
    has_request_id: bool

    def timeout_s(self, deadlines: Deadlines, chosen_s: float | None) -> float:
        """Seconds for one call."""
        return chosen_s if chosen_s is not None else deadlines.read_s if self.is_read else deadlines.write_s


def _routes(*, of_streams: bool) -> dict[str, Route]:
    return {
        method.input_type.full_name: Route(
            path=f"/{service.full_name}/{method.name}",
            reply_type=GetMessageClass(method.output_type),
            is_read=_is_read(method),
            has_request_id=_REQUEST_ID in method.input_type.fields_by_name,
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


def resolve_target(target: str | None = None) -> str:
    """The target as gRPC writes it.

    Args:
        target: `host`, `host:port`, `[ipv6]:port`, `unix:path` or `unix:///path`. None means the environment's
            HUMMOCK_TARGET, and without it 127.0.0.1:7420.

    Raises:
        ValueError: It is none of these.
    """
    text = target if target is not None else os.environ.get(TARGET_VARIABLE) or DEFAULT_TARGET
    if text.startswith("unix:"):
        path = text.removeprefix("unix:").removeprefix("//")
        if not path:
            raise ValueError(f"{text} names no socket; write unix:///path/to/hummock.sock")
        if sys.platform == "win32":
            raise ValueError(f"{text} is a socket, which Windows has not; write host:port, such as {DEFAULT_TARGET}")
        return f"unix:{path}"
    host, port = _host_and_port(text)
    if not host or not (port.isascii() and port.isdecimal() and 0 < int(port) <= 65535):
        raise ValueError(f"{text} is no target; write host:port, for example {DEFAULT_TARGET}, or unix:///path")
    return f"{host}:{port}"


def is_local(target: str) -> bool:
    """True if a resolved target is on this machine."""
    host = target.rpartition(":")[0].strip("[]")
    if target.startswith("unix:") or host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def channel_options(target: str) -> list[tuple[str, int | str]]:
    """Options of a channel to a resolved target."""
    options: list[tuple[str, int | str]] = [
        ("grpc.max_receive_message_length", _LARGEST_REPLY_BYTES),
        ("grpc.service_config", _service_config()),
        ("grpc.per_rpc_retry_buffer_size", _LARGEST_REPEATED_BYTES),
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


def to_bytes(message: Message) -> bytes:
    """The message as it travels."""
    return message.SerializeToString()


def with_request_id(request: Message) -> Message:
    """The request; of a write without a request_id a copy that has one, so that it may be repeated."""
    route = ROUTES[request.DESCRIPTOR.full_name]
    if not route.has_request_id or getattr(request, _REQUEST_ID):
        return request
    # The caller's own stays as it is: sent again, it is another write.
    named = type(request)()
    named.CopyFrom(request)
    setattr(named, _REQUEST_ID, new_request_id())
    return named


def _service_config() -> str:
    """Reads, and writes that a request_id makes safe to repeat, are repeated when the service cannot be reached."""
    routes = (*ROUTES.values(), *STREAMS.values())
    safe = [route.path[1:].split("/") for route in routes if route.is_read or route.has_request_id]
    names = [{"service": service, "method": method} for service, method in safe]
    return json.dumps({"methodConfig": [{"name": names, "retryPolicy": _RETRY}]})


def _host_and_port(text: str) -> tuple[str, str]:
    if text.endswith("]") or ":" not in text:
        return text, str(DEFAULT_PORT)
    host, _, port = text.rpartition(":")
    return ("" if ":" in host and not host.startswith("[") else host), port
