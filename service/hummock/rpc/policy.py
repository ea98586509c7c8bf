"""The table of methods: what each of the contract does, what a token must allow for it, and where its calls run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from google.protobuf.descriptor import Descriptor, MethodDescriptor
from google.protobuf.message import DecodeError, Message

from hummock.core.access import Caller, Verb
from hummock.rpc.lanes import Lane

READ, LEARN, ADMIN = Verb.READ, Verb.LEARN, Verb.ADMIN

_ROWS: Mapping[str, Mapping[str, tuple[Verb, Lane] | tuple[Verb, Lane, Lane]]] = {
    "ContextService": {
        "Recall": (READ, Lane.INLINE, Lane.READ),
        "Render": (READ, Lane.READ),
        "RenderTurn": (LEARN, Lane.READ, Lane.WRITE),
        "Learn": (LEARN, Lane.WRITE),
        "LearnTurn": (LEARN, Lane.WRITE),
        "LearnStream": (LEARN, Lane.BATCHES),
        "Search": (READ, Lane.READ),
        "Explain": (READ, Lane.READ),
        "Feedback": (LEARN, Lane.WRITE),
    },
    "MemoryService": {
        "GetMemory": (READ, Lane.READ),
        "BatchGetMemories": (READ, Lane.READ),
        "ListMemories": (READ, Lane.READ),
        "UpdateMemory": (LEARN, Lane.WRITE),
        "DeleteMemories": (LEARN, Lane.WRITE),
        # For good: the learning log as well, which no repeat brings back.
        "Forget": (ADMIN, Lane.WRITE),
        # Whoever writes does not approve what he wrote, and what is held is no reading for agents.
        "ListReview": (ADMIN, Lane.READ),
        "ApproveReview": (ADMIN, Lane.WRITE),
        "RejectReview": (ADMIN, Lane.WRITE),
        "WatchMemories": (READ, Lane.READ_STREAM),
        "MapMemories": (READ, Lane.READ_STREAM),
    },
    "SessionService": {
        "GetOrCreateActiveSession": (LEARN, Lane.WRITE),
        "CreateSession": (LEARN, Lane.WRITE),
        "GetSession": (READ, Lane.READ),
        "ListSessions": (READ, Lane.READ),
        "UpdateSession": (LEARN, Lane.WRITE),
        "DeleteSession": (LEARN, Lane.WRITE),
        "AppendMessage": (LEARN, Lane.WRITE),
        "UpdateMessage": (LEARN, Lane.WRITE),
        "DeleteMessage": (LEARN, Lane.WRITE),
        "ListMessages": (READ, Lane.READ),
        "WatchMessages": (READ, Lane.READ_STREAM),
    },
    "ProjectService": {
        "GetProject": (READ, Lane.READ),
        "ListProjects": (READ, Lane.READ),
        # What an indexer says of the repository, at each run.
        "UpdateProject": (LEARN, Lane.WRITE),
        "DeleteProject": (ADMIN, Lane.WRITE),
        "GetProjectSettings": (READ, Lane.READ),
        "UpdateProjectSettings": (ADMIN, Lane.WRITE),
        "WatchProject": (READ, Lane.READ_STREAM),
        "ExportProject": (READ, Lane.READ_STREAM),
        # An export brings settings with it.
        "ImportProject": (ADMIN, Lane.MESSAGES),
    },
    "LearningService": {
        "GetLearningState": (READ, Lane.READ),
        "WatchLearningState": (READ, Lane.READ_STREAM),
        "UpdateLearningSettings": (ADMIN, Lane.WRITE),
        "ObserveTurn": (LEARN, Lane.WRITE),
        "LearnKeywords": (LEARN, Lane.WRITE_STREAM),
        "ReplayLearning": (READ, Lane.READ),
        "ListLearningEvents": (READ, Lane.READ),
    },
    "AdminService": {
        # Concerns no project; clients call it to see whether the service is there.
        "GetStatus": (READ, Lane.READ),
    },
}
"""Verb, lane, and the lane of the second half of a method that has one."""

_OF_ALL_PROJECTS = frozenset({"ListProjects"})
_PROJECT = "project"

SMALL_BYTES = 64 * 1024
"""Largest request, in bytes, that is checked on the event loop, and kept decoded while it waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodPolicy:
    """Rights that a method requires, and the lane that it runs in.

    Attributes:
        method: Its name on the wire.
        verb: What its calls do; a token must allow it.
        lane: Where they run, and whether they are streams.
        then: Lane of the second half; None where there is none.
        is_of_all: Whether they concern all projects.
    """

    method: str
    verb: Verb
    lane: Lane
    then: Lane | None
    is_of_all: bool

    def check(self, caller: Caller, projects: Sequence[str]) -> None:
        """Looks whether the caller may do it to the projects that the request names. Raises: ScopeMissing."""
        if self.is_of_all:
            caller.require_all(self.verb)
        else:
            caller.require(self.verb, projects)


def _policy(service: str, name: str, verb: Verb, lane: Lane, then: Lane | None = None) -> MethodPolicy:
    return MethodPolicy(
        method=f"/hummock.v1.{service}/{name}", verb=verb, lane=lane, then=then, is_of_all=name in _OF_ALL_PROJECTS
    )


POLICIES: Mapping[str, Mapping[str, MethodPolicy]] = {
    service: {name: _policy(service, name, *row) for name, row in rows.items()} for service, rows in _ROWS.items()
}
"""Policies by the names of services and of their methods."""


def name_of(method: MethodDescriptor) -> str:
    """The method's name on the wire and in the log."""
    return f"/{method.containing_service.full_name}/{method.name}"


def policy_of(method: MethodDescriptor) -> MethodPolicy:
    """The policy of a method. Raises: KeyError where the table leaves it out."""
    return POLICIES[method.containing_service.name][method.name]


def peek(request_type: type[Message], data: bytes) -> tuple[str, Message | None]:
    """The project that a message names, and the message; None where it is garbled, or large.

    What a large one holds may take a hundred times its bytes: it is decoded anew when its turn comes.
    """
    request = request_type()
    try:
        request.ParseFromString(data)
    except DecodeError:
        return "", None
    project = next(iter(projects_of(request)), "")
    return project, request if len(data) <= SMALL_BYTES else None


def projects_of(request: Message) -> list[str]:
    """The projects that a request names; those that it leaves out follow from the others."""
    descriptor: Any = request.DESCRIPTOR
    return [name for path in _paths_of(descriptor) if (name := _at(request, path))]


@cache
def _paths_of(message: Descriptor) -> tuple[tuple[str, ...], ...]:
    return tuple(_paths(message, ()))


def _paths(message: Descriptor, above: tuple[Descriptor, ...]) -> list[tuple[str, ...]]:
    """Paths of the project names in a message and its submessages; repeated messages are skipped."""
    found: list[tuple[str, ...]] = []
    for field in message.fields:
        if field.name == _PROJECT and field.message_type is None:
            found.append((field.name,))
        elif field.message_type is not None and not field.is_repeated and field.message_type not in above:
            found += [(field.name, *below) for below in _paths(field.message_type, (*above, message))]
    return found


def _at(request: Any, path: tuple[str, ...]) -> str:
    *messages, last = path
    for name in messages:
        if not request.HasField(name):
            return ""
        request = getattr(request, name)
    return str(getattr(request, last))
