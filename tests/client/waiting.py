"""The client for asyncio, used as the blocking one is, so that one test proves both."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Iterable, Iterator
from concurrent.futures import Future
from inspect import isawaitable
from typing import Any, Self, TypeVar

from hummock_client import AsyncClient

Reply = TypeVar("Reply")
_END: Any = object()


class WaitingClient:
    """An `AsyncClient` in an event loop on a thread of its own: each call waits for its reply, or the next of many."""

    def __init__(self, target: str, **options: Any) -> None:
        """Takes what `AsyncClient` takes."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="client")
        self._thread.start()
        self._waiting: Future[Any] | None = None

        async def connect() -> AsyncClient:
            return AsyncClient(target, **options)

        try:
            self._client = self._wait(connect())
        except BaseException:
            self._end()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._wait(self._client.close())
        self._end()

    def __getattr__(self, name: str) -> Any:
        return _Face(self, getattr(self._client, name))

    def cancel(self) -> None:
        """Cancels the call that waits; called from another thread."""
        if self._waiting is not None:
            self._waiting.cancel()

    def _wait(self, reply: Awaitable[Reply]) -> Reply:
        async def replied() -> Reply:
            return await reply

        self._waiting = waiting = asyncio.run_coroutine_threadsafe(replied(), self._loop)
        return waiting.result()

    def _each(self, replies: AsyncGenerator[Any, None]) -> Iterator[Any]:
        try:
            while (reply := self._wait(anext(replies, _END))) is not _END:
                yield reply
        finally:
            self._wait(replies.aclose())

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class _Face:
    """What an `AsyncClient` has under a name: a method, or a group of them."""

    def __init__(self, client: WaitingClient, of: Any) -> None:
        self._client = client
        self._of = of

    def __getattr__(self, name: str) -> Any:
        return _Face(self._client, getattr(self._of, name))

    def __call__(self, *given: Any, **named: Any) -> Any:
        if self._of.__name__ == "learn_stream":
            given = tuple(map(_async, given))

        async def call() -> Any:
            reply = self._of(*given, **named)
            return await reply if isawaitable(reply) else reply

        reply = self._client._wait(call())
        return self._client._each(reply) if isinstance(reply, AsyncGenerator) else reply


async def _async(items: Iterable[Any]) -> AsyncIterator[Any]:
    for item in items:
        yield item
