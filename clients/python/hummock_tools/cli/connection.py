"""The connection of commands to the service, and the messages of failed commands."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Final

import grpc

from hummock.installation import command_for
from hummock_client.access import open_channel, resolve_access
from hummock_client.channel import resolve_target
from hummock_client.errors import call_error, describe
from hummock_client.v1.admin_service_pb2_grpc import AdminServiceStub
from hummock_client.v1.context_service_pb2_grpc import ContextServiceStub
from hummock_client.v1.learning_service_pb2_grpc import LearningServiceStub
from hummock_client.v1.memory_service_pb2_grpc import MemoryServiceStub
from hummock_client.v1.project_service_pb2_grpc import ProjectServiceStub
from hummock_client.v1.session_service_pb2_grpc import SessionServiceStub

CALL_TIMEOUT_S = 60.0


_NEEDS_UNIX: Final = (
    "the service runs on Linux and macOS; on Windows start it in WSL or in the image (docs/deploy.md), "
    "and call it from here"
)


class CommandFailed(Exception):
    """A command ends with status 1; the message is for the user."""


class Service:
    """A channel to the service, and its stubs."""

    def __init__(self, channel: grpc.Channel) -> None:
        self.channel = channel
        self.context = ContextServiceStub(channel)
        self.memories = MemoryServiceStub(channel)
        self.projects = ProjectServiceStub(channel)
        self.sessions = SessionServiceStub(channel)
        self.learning = LearningServiceStub(channel)
        self.admin = AdminServiceStub(channel)


@contextmanager
def connect(target: str) -> Iterator[Service]:
    """The service at a target (`host:port` or `unix:path`); nothing is sent before the first call.

    Raises: CommandFailed, where the target is none, or a call made inside failed: with its fault, or the target's.
    """
    resolved = resolved_target(target)
    with calling(resolved), channel_to(resolved) as channel:
        yield Service(channel)


@contextmanager
def calling(resolved: str) -> Iterator[None]:
    """Raises: CommandFailed, where a call made inside to a resolved target failed."""
    try:
        yield
    except grpc.RpcError as error:
        if isinstance(error, grpc.Call):
            raise CommandFailed(describe(call_error(error, resolved), resolved)) from error
        raise CommandFailed(f"the call to {resolved} failed: {error}") from error


def channel_to(resolved: str) -> grpc.Channel:
    """A channel to a resolved target, with the token and the TLS of the environment. Raises: CommandFailed."""
    try:
        return open_channel(resolved, resolve_access(resolved))
    except ValueError as error:
        raise CommandFailed(str(error)) from error


def resolved_target(target: str) -> str:
    """The target in full. Raises: CommandFailed."""
    try:
        return resolve_target(target)
    except ValueError as error:
        raise CommandFailed(str(error)) from error


def require_packages(*names: str) -> None:
    """Check that packages are installed, without importing them. Raises: ModuleNotFoundError."""
    for name in names:
        if find_spec(name) is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def require_unix() -> None:
    """Raises: CommandFailed, on a system that the service does not run on."""
    if sys.platform == "win32":
        raise CommandFailed(_NEEDS_UNIX)


@contextmanager
def packages_of(extra: str) -> Iterator[None]:
    """Imports inside need the packages of an extra; raises CommandFailed where one of them cannot be had."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in {"", "hummock"}:
            raise
        if error.name in sys.stdlib_module_names:
            # Windows lacks modules of the standard library, such as fcntl.
            raise CommandFailed(_NEEDS_UNIX) from error
        raise CommandFailed(
            f"this command needs the package {error.name}, which is not installed; {command_for(extra)}"
        ) from error
