"""Reaches the service, and describes failures to; apart from the calls, since it needs no gRPC."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias


class Refused(Exception):
    """A call failed; the message is for the model and contains the remedy if known."""


class UnknownMemory(Refused):
    """The memory does not exist."""


class ServingEnded(Exception):
    """The server has ended although its client has not; the message says why."""


Reach: TypeAlias = Callable[[], Awaitable[bool]]
"""Starts the service if possible; true if a failed call may work now. Raises: Refused."""


async def as_it_is() -> bool:
    """The service is somebody else's business."""
    return False
