"""The table of methods: the right that each method requires and the lane that it runs in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from google.protobuf.descriptor import Descriptor, MethodDescriptor, ServiceDescriptor
from google.protobuf.descriptor_pb2 import MethodOptions
from google.protobuf.message import DecodeError, Message

from hummock.core.access import Caller, ScopeMissing, Verb
from hummock.core.review import UNPROVEN_TRUST
from hummock.rpc.lanes import Lane
from hummock.rpc.validation import check_size
from hummock_client.v1 import (
    admin_service_pb2,
    context_service_pb2,
    learning_service_pb2,
    memory_pb2,
    memory_service_pb2,
    project_service_pb2,
    session_service_pb2,
)

SERVICES: tuple[ServiceDescriptor, ...] = tuple(
    file.DESCRIPTOR.services_by_name[name]
    for file, name in (
        (context_service_pb2, "ContextService"),
        (memory_service_pb2, "MemoryService"),
        (session_service_pb2, "SessionService"),
        (project_service_pb2, "ProjectService"),
        (learning_service_pb2, "LearningService"),
        (admin_service_pb2, "AdminService"),
    )
)

READ, LEARN, ADMIN = Verb.READ, Verb.LEARN, Verb.ADMIN

_RIGHTS: Mapping[str, Mapping[Verb, str]] = {
    "ContextService": {READ: "Recall Render Search Explain", LEARN: "RenderTurn Learn LearnTurn LearnStream Feedback"},
    "MemoryService": {
        READ: "GetMemory BatchGetMemories ListMemories WatchMemories MapMemories",
        LEARN: "UpdateMemory DeleteMemories",
        # Forget is for good: the learning log as well, which no repeat brings back. Writers must not approve their own
        # memories, and agents must not read held ones.
        ADMIN: "Forget ListReview ApproveReview RejectReview",
    },
    "SessionService": {
        READ: "GetSession ListSessions ListMessages WatchMessages",
        LEARN: "GetOrCreateActiveSession CreateSession UpdateSession DeleteSession"
        " AppendMessage UpdateMessage DeleteMessage",
    },
    "ProjectService": {
        READ: "GetProject ListProjects GetProjectSettings WatchProject ExportProject",
        # An indexer describes the repository at each run.
        LEARN: "UpdateProject",
        # An export contains settings.
        ADMIN: "DeleteProject UpdateProjectSettings ImportProject",
    },
    "LearningService": {
        READ: "GetLearningState WatchLearningState ReplayLearning ListLearningEvents",
        LEARN: "ObserveTurn LearnKeywords",
        ADMIN: "UpdateLearningSettings",
    },
    # Concerns no project; clients call it as a health check.
    "AdminService": {READ: "GetStatus"},
}
"""Methods of each service by the right that they require."""

_LANES: Mapping[str, tuple[Lane] | tuple[Lane, Lane]] = {
    "Recall": (Lane.INLINE, Lane.READ),
    "RenderTurn": (Lane.READ, Lane.WRITE),
    "LearnStream": (Lane.BATCHES,),
    "ImportProject": (Lane.MESSAGES,),
}
"""Lane, and lane of the second half, of methods for which they do not follow from the contract."""

Request = TypeVar("Request", bound=Message)

_OF_ALL_PROJECTS = frozenset({"ListProjects"})
_PROJECT = "project"

SMALL_BYTES = 64 * 1024
"""Largest request, in bytes, that is checked on the event loop, and kept decoded while it waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodPolicy:
    """Rights that a method requires, and the lane that it runs in.

    Attributes:
        method: Its name on the wire.
        verb: The right that a token must grant.
        lane: Where its calls run, and whether they are streams.
        then: Lane of the second half; None if there is none.
        is_of_all: Whether its calls concern all projects.
    """

    method: str
    verb: Verb
    lane: Lane
    then: Lane | None
    is_of_all: bool


def name_of(method: MethodDescriptor) -> str:
    """The method's name on the wire and in the log."""
    return f"/{method.containing_service.full_name}/{method.name}"


def is_read(method: MethodDescriptor) -> bool:
    """Whether the contract says that it has no side effects."""
    return bool(method.GetOptions().idempotency_level == MethodOptions.NO_SIDE_EFFECTS)


def _policy(method: MethodDescriptor, verb: Verb) -> MethodPolicy:
    usual = Lane.READ if is_read(method) else Lane.WRITE
    if method.server_streaming:
        usual = Lane.READ_STREAM if is_read(method) else Lane.WRITE_STREAM
    lane, *then = _LANES.get(method.name, (usual,))
    return MethodPolicy(
        method=name_of(method),
        verb=verb,
        lane=lane,
        then=then[0] if then else None,
        is_of_all=method.name in _OF_ALL_PROJECTS,
    )


POLICIES: Mapping[str, Mapping[str, MethodPolicy]] = {
    service.name: {
        name: _policy(service.methods_by_name[name], verb)
        for verb, names in _RIGHTS[service.name].items()
        for name in names.split()
    }
    for service in SERVICES
}
"""Policies by the names of services and of their methods."""


def policy_of(method: MethodDescriptor) -> MethodPolicy:
    """The policy of a method. Raises: KeyError where the table leaves it out."""
    return POLICIES[method.containing_service.name][method.name]


def peek(request_type: type[Request], data: bytes) -> tuple[Sequence[str], Request | None]:
    """Parse a message and return the projects that it names, and itself: None if it is garbled or large.

    A large message may take a hundred times its bytes once decoded, so it is decoded again when a worker is free.

    Raises: InvalidRequest: Larger than a request may be.
    """
    if len(data) > SMALL_BYTES:
        check_size(data)
    request = request_type()
    try:
        request.ParseFromString(data)
    except DecodeError:
        return (), None
    return projects_of(request), request if len(data) <= SMALL_BYTES else None


def projects_of(request: Message) -> list[str]:
    """Return the projects that a request names; empty names are left out."""
    descriptor: Any = request.DESCRIPTOR
    found: list[str] = []
    for path in _paths(descriptor):
        holder: Any = request
        for name in path:
            if not holder.HasField(name):
                break
            holder = getattr(holder, name)
        else:
            found += [holder.project] if holder.project else ()
    return found


@cache
def _paths(message: Descriptor, above: tuple[Descriptor, ...] = ()) -> list[tuple[str, ...]]:
    """Paths of the submessages with a project's name, () for the message itself; repeated messages are skipped."""
    found: list[tuple[str, ...]] = []
    for field in message.fields:
        if field.name == _PROJECT and field.message_type is None:
            found.append(())
        elif field.message_type is not None and not field.is_repeated and field.message_type not in above:
            found += [(field.name, *below) for below in _paths(field.message_type, (*above, message))]
    return found


def lower_claims(request: Message, caller: Caller) -> None:
    """Lowers the trust of INDEXER memories that come from a caller without the index scope.

    Text with low trust is escaped like all text, and held for review if it reads like an instruction. Updates of stored
    memories are checked by the garden, which sees what is stored.

    Raises: ScopeMissing: an update would set the origin to INDEXER.
    """
    match request:
        case context_service_pb2.LearnRequest():
            if not caller.may(Verb.INDEX, request.project):
                for memory in request.memories:
                    _lower(memory)
        case memory_service_pb2.UpdateMemoryRequest():
            says_so = request.memory.origin == memory_pb2.ORIGIN_INDEXER and "origin" in request.update_mask.paths
            if says_so and not caller.may(Verb.INDEX, request.project):
                raise ScopeMissing(caller.name, Verb.INDEX, "this project", request.project)


def _lower(memory: memory_pb2.Memory) -> None:
    if memory.origin == memory_pb2.ORIGIN_INDEXER and not (memory.HasField("trust") and memory.trust < UNPROVEN_TRUST):
        memory.trust = UNPROVEN_TRUST
