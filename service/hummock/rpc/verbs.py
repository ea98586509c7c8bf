"""The table of verbs: what each method of the contract does, and so what a token must allow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from google.protobuf.descriptor import Descriptor, MethodDescriptor
from google.protobuf.message import Message

from hummock.core.access import Caller, Verb

READ, LEARN, ADMIN = Verb.READ, Verb.LEARN, Verb.ADMIN

VERBS: Mapping[str, Mapping[str, Verb]] = {
    "ContextService": {
        "Recall": READ,
        "Render": READ,
        "RenderTurn": LEARN,
        "Learn": LEARN,
        "LearnTurn": LEARN,
        "LearnStream": LEARN,
        "Search": READ,
        "Explain": READ,
        "Feedback": LEARN,
    },
    "MemoryService": {
        "GetMemory": READ,
        "BatchGetMemories": READ,
        "ListMemories": READ,
        "UpdateMemory": LEARN,
        "DeleteMemories": LEARN,
        # For good: the learning log as well, which no repeat brings back.
        "Forget": ADMIN,
        # Whoever writes does not approve what he wrote, and what is held is no reading for agents.
        "ListReview": ADMIN,
        "ApproveReview": ADMIN,
        "RejectReview": ADMIN,
        "WatchMemories": READ,
        "MapMemories": READ,
    },
    "SessionService": {
        "GetOrCreateActiveSession": LEARN,
        "CreateSession": LEARN,
        "GetSession": READ,
        "ListSessions": READ,
        "UpdateSession": LEARN,
        "DeleteSession": LEARN,
        "AppendMessage": LEARN,
        "UpdateMessage": LEARN,
        "DeleteMessage": LEARN,
        "ListMessages": READ,
        "WatchMessages": READ,
    },
    "ProjectService": {
        "GetProject": READ,
        "ListProjects": READ,
        # What an indexer says of the repository, at each run.
        "UpdateProject": LEARN,
        "DeleteProject": ADMIN,
        "GetProjectSettings": READ,
        "UpdateProjectSettings": ADMIN,
        "WatchProject": READ,
        "ExportProject": READ,
        # An export brings settings with it.
        "ImportProject": ADMIN,
    },
    "LearningService": {
        "GetLearningState": READ,
        "WatchLearningState": READ,
        "UpdateLearningSettings": ADMIN,
        "ObserveTurn": LEARN,
        "LearnKeywords": LEARN,
        "ReplayLearning": READ,
        "ListLearningEvents": READ,
    },
    "AdminService": {
        # Of no project, and what clients ask to know whether the service is there.
        "GetStatus": READ,
    },
}

_OF_ALL_PROJECTS = frozenset({"ListProjects"})
_PROJECT = "project"


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What calls of a method need.

    Attributes:
        method: Its name on the wire.
        verb: What they do.
        is_of_all: Whether they concern all projects.
    """

    method: str
    verb: Verb
    is_of_all: bool

    def check(self, caller: Caller, projects: Sequence[str]) -> None:
        """Looks whether the caller may do it to the projects that the request names. Raises: ScopeMissing."""
        if self.is_of_all:
            caller.require_all(self.verb)
        else:
            caller.require(self.verb, projects)


def name_of(method: MethodDescriptor) -> str:
    """The method's name on the wire and in the log."""
    return f"/{method.containing_service.full_name}/{method.name}"


def need_of(method: MethodDescriptor) -> Need:
    """What calls of a method need. Raises: KeyError where the table leaves it out."""
    return Need(
        method=name_of(method),
        verb=VERBS[method.containing_service.name][method.name],
        is_of_all=method.name in _OF_ALL_PROJECTS,
    )


def projects_of(request: Message) -> list[str]:
    """The projects that a request names; those that it leaves out follow from the others."""
    descriptor: Any = request.DESCRIPTOR
    return [name for path in _paths_of(descriptor) if (name := _at(request, path))]


@cache
def _paths_of(message: Descriptor) -> tuple[tuple[str, ...], ...]:
    return tuple(_paths(message, ()))


def _paths(message: Descriptor, above: tuple[Descriptor, ...]) -> list[tuple[str, ...]]:
    """Where a message and those in it name projects; lists of messages name none."""
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
