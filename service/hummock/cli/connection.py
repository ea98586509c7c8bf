"""The service as the commands see it: one channel, one stub a service."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import grpc

from hummock.cli.failure import CommandFailed, calls_to
from hummock.v1.admin_service_pb2_grpc import AdminServiceStub
from hummock.v1.context_service_pb2_grpc import ContextServiceStub
from hummock.v1.learning_service_pb2_grpc import LearningServiceStub
from hummock.v1.memory_service_pb2_grpc import MemoryServiceStub
from hummock.v1.project_service_pb2_grpc import ProjectServiceStub
from hummock.v1.session_service_pb2_grpc import SessionServiceStub
from hummock_client.channel import channel_options
from hummock_client.target import DEFAULT_TARGET, resolve_target

__all__ = ["CALL_TIMEOUT_S", "DEFAULT_TARGET", "Service", "connect"]

CALL_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A channel to the service, and its stubs."""

    channel: grpc.Channel
    context: ContextServiceStub
    memories: MemoryServiceStub
    projects: ProjectServiceStub
    sessions: SessionServiceStub
    learning: LearningServiceStub
    admin: AdminServiceStub


@contextmanager
def connect(target: str) -> Iterator[Service]:
    """The service at a target (`host:port` or `unix:path`); nothing is sent before the first call.

    Raises:
        CommandFailed: The target is none, or a call made inside failed.
    """
    try:
        resolved = resolve_target(target)
    except ValueError as error:
        raise CommandFailed(str(error)) from error
    with calls_to(resolved), grpc.insecure_channel(resolved, options=channel_options(resolved)) as channel:
        yield Service(
            channel=channel,
            context=ContextServiceStub(channel),
            memories=MemoryServiceStub(channel),
            projects=ProjectServiceStub(channel),
            sessions=SessionServiceStub(channel),
            learning=LearningServiceStub(channel),
            admin=AdminServiceStub(channel),
        )
