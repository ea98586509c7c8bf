"""The rules that all reads share: a project has to be there, and a page has to fit into a reply."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

from google.protobuf.message import Message

from hummock.core.errors import NotFound
from hummock.rpc import values
from hummock.rpc.status import MAX_REPLY_BYTES

Require = Callable[[str], object]
"""Looks a project up. Raises: ProjectNotFound."""

Page = TypeVar("Page", bound=Message)


class Reading(Protocol):
    """A request that reads from a project, which may be missing where it says so."""

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
    """Work inside a project: what is not found in one that does not exist is the project itself."""
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
