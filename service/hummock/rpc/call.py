"""The context of a call and the rules of reads, shared by all servicers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar

from google.protobuf.message import Message

from hummock.core.access import LOCAL, Caller
from hummock.core.deadline import NO_DEADLINE, Deadline
from hummock.core.errors import NotFound
from hummock.rpc import values
from hummock.rpc.status import MAX_REPLY_BYTES

Reply = TypeVar("Reply")
Page = TypeVar("Page", bound=Message)

SecondHalf: TypeAlias = Reply | Callable[[], Reply]
"""A reply, or what makes it: that runs in the lane that the method's policy names for its second half."""


@dataclass(frozen=True, slots=True)
class CallContext:
    """The second argument of every servicer's method.

    Attributes:
        caller: The authenticated caller, with its rights.
        deadline: The call's deadline, which ends early if the caller hangs up.
    """

    caller: Caller = LOCAL
    deadline: Deadline = NO_DEADLINE


Require = Callable[[str], object]
"""Looks up a project. Raises: ProjectNotFound."""


class Reading(Protocol):
    """A request that reads from a project; with `allow_missing` the project may not exist."""

    project: str
    allow_missing: bool


def project_read(request: Reading, require: Require) -> str:
    """The name of the project that is read. Raises: InvalidRequest, ProjectNotFound."""
    project = values.project_name("project", request.project)
    if not request.allow_missing:
        require(project)
    return project


@contextmanager
def inside(project: str, require: Require) -> Iterator[None]:
    """Turn NotFound into the project's own error if the project does not exist."""
    try:
        yield
    except NotFound:
        require(project)
        raise


def that_fits(page_of: Callable[[int], Page], size: int) -> Page:
    """The largest page that fits into a reply, of at most `size` items and at least one; halves until it does."""
    while True:
        page = page_of(size)
        if page.ByteSize() <= MAX_REPLY_BYTES or size == 1:
            return page
        size //= 2
