"""Calls that are answered with a stream: what is there now, and with a watch what comes later."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import suppress
from enum import Enum, auto
from functools import partial
from typing import Literal, Protocol

from google.protobuf.message import Message

from hummock.core.errors import Unavailable
from hummock.rpc.feed import Feed
from hummock.rpc.gate import Gate
from hummock.rpc.parse.request import parse
from hummock.rpc.status import MAX_REPLY_BYTES, ReplyTooLarge


class Pause(Enum):
    """What a stream gives instead of a message."""

    UNTIL_WRITTEN = auto()
    """Nothing more until the request's project is written to."""


UNTIL_WRITTEN = Pause.UNTIL_WRITTEN
Steps = Generator[Message | Literal[Pause.UNTIL_WRITTEN], None, None]
"""Each step runs on a worker, one after the other. Before a pause it must have looked at the project in that very step:
a write that came earlier than the step wakes nobody."""


class Wire(Protocol):
    """The end of the stream that is written to."""

    async def write(self, message: bytes) -> None:
        """Sends a message; waits while the reader is slow."""


class ReplyStream:
    """Answers the calls of one method. A slow reader slows its own stream down and nothing else."""

    def __init__(self, request_type: type[Message], method: Callable[[Message], Steps], gate: Gate, feed: Feed) -> None:
        self._request_type = request_type
        self._method = method
        self._gate = gate
        self._feed = feed

    async def answer(self, data: bytes, wire: Wire) -> None:
        """Sends all there is. Raises: what the method raises; Unavailable, when the service stops meanwhile."""
        request = await self._gate.run(partial(parse, self._request_type, data))
        steps = _Walk(self._method(request))
        try:
            with self._feed.following(getattr(request, "project", "")) as moved:
                while True:
                    moved.clear()
                    step = await self._gate.run(steps.next, patient=True)
                    if step is None:
                        return
                    if isinstance(step, bytes):
                        await wire.write(step)
                        continue
                    if not self._feed.is_over:
                        await moved.wait()
                    if self._feed.is_over:
                        raise Unavailable("the service is stopping; follow it again from where you are")
        finally:
            steps.close()


class _Walk:
    """Steps, taken by workers one after the other and closed by the loop at any time."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._is_over = False

    def next(self) -> bytes | Pause | None:
        """The next message as bytes, or a pause; None behind the last one."""
        try:
            step = next(self._steps, None)
        finally:
            # Closed meanwhile, because the caller hung up.
            if self._is_over:
                self._steps.close()
        if not isinstance(step, Message):
            return step
        reply = step.SerializeToString()
        if len(reply) > MAX_REPLY_BYTES:
            raise ReplyTooLarge(len(reply), MAX_REPLY_BYTES)
        return reply

    def close(self) -> None:
        """Ends the walk: at once, or behind the step that runs."""
        self._is_over = True
        with suppress(ValueError):
            self._steps.close()
