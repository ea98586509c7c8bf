"""Calls that send messages and have an answer to each, one after the other."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

from hummock.rpc.gate import Gate


class Wire(Protocol):
    """The two ends of the stream."""

    async def read(self) -> object:
        """The next message as bytes; anything else behind the last one."""

    async def write(self, message: bytes) -> None:
        """Sends a message."""


async def answer_each(work: Callable[[bytes], bytes], gate: Gate, wire: Wire) -> None:
    """Answers each message before the next one is read, so that the connection itself slows the sender down.

    Raises: what the work raises, behind the answers before it.
    """
    while isinstance(data := await wire.read(), bytes):
        await wire.write(await gate.run(partial(work, data), patient=True))
