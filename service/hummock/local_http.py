"""HTTP for this machine: what whoever connects can make a server hold, and for how long, before it knows who asks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import h11
import uvicorn
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_CONNECTIONS: Final = 128
"""One more takes the place of the one that has waited longest for its request to be whole, or for another one.

Where none waits, the oldest stream gives way: clients connect to those again. Other calls keep their places.
"""

MOST_BODY_BYTES: Final = 8 * 1024 * 1024
BODIES_BYTES: Final = 16 * 1024 * 1024
"""Limit of all bodies together. Above it those with more than an equal share are refused, so that small ones get by."""

HEAD_S: Final = 5.0
"""From the connection, or from the first byte of its next request, until the head of a request is there."""

BODY_S: Final = 10.0
"""From there until its body is, and longer while it comes: never more than this from one part to the next."""

MOST_BODY_S: Final = 60.0
"""For a body in all."""

TOO_LARGE: Final = 413
_BODY_BYTES_A_S: Final = 64 * 1024
"""So many bytes of a body extend its time by one second."""

_SMALL_BYTES: Final = 4096
"""Parts of a body are joined up to here as they come: a part of one byte would take forty times its size."""

_READ_ON_BYTES: Final = 64 * 1024
_WITHIN_S: Final = {h11.IDLE: HEAD_S, h11.SEND_BODY: BODY_S}


class BodyRefused(Exception):
    """A body is too large, or there is no room for it."""

    def __init__(self, message: str, http_status: int) -> None:
        super().__init__(message)
        self.http_status = http_status


class BrokenOff(Exception):
    """The caller has gone in the middle of a body."""


class Bodies:
    """Reads bodies of many requests, and holds only so much of all of them."""

    def __init__(self) -> None:
        self._held_bytes = 0
        self._count = 0

    @asynccontextmanager
    async def whole(self, receive: Receive) -> AsyncIterator[bytes]:
        """A whole body, which counts until the block ends. Raises: BodyRefused, BrokenOff."""
        # One buffer that grows leaves holes where it stood, which the allocator keeps.
        pieces: list[bytes] = []
        size_bytes = 0
        self._count += 1
        try:
            while True:
                message = await receive()
                if message["type"] != "http.request":
                    raise BrokenOff
                part = message.get("body", b"")
                if pieces and len(pieces[-1]) + len(part) <= _SMALL_BYTES:
                    pieces[-1] += part
                else:
                    pieces.append(part)
                size_bytes += len(part)
                self._held_bytes += len(part)
                self._check(size_bytes)
                if not message.get("more_body", False):
                    break
            yield b"".join(pieces)
        finally:
            self._count -= 1
            self._held_bytes -= size_bytes

    def _check(self, size_bytes: int) -> None:
        if size_bytes > MOST_BODY_BYTES:
            raise BodyRefused(f"the body is above {MOST_BODY_BYTES} bytes", TOO_LARGE)
        if self._held_bytes > BODIES_BYTES and size_bytes > BODIES_BYTES // self._count:
            raise BodyRefused("other requests take the room for large bodies; try again in some seconds", 429)


def ends(response: Response, headers: Headers) -> Response:
    """The answer to a request whose body was not read: the connection ends with it, unless what comes is little.

    Whoever sends too much is read to the end, so that the answer reaches him.
    """
    length = headers.get("content-length", "0" if "transfer-encoding" not in headers else "")
    is_little = bool(length) and int(length) <= _READ_ON_BYTES
    if not is_little and response.status_code != TOO_LARGE:
        response.headers["connection"] = "close"
    return response


class WholeBodies:
    """Hands on requests once their bodies are there; what breaks off reaches nobody."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._bodies = Bodies()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, or the lifespan."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            async with self._bodies.whole(receive) as body:
                unread: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

                async def receiving() -> Message:
                    return unread.pop() if unread else await receive()

                await self._app(scope, receiving, send)
        except BodyRefused as refused:
            response = PlainTextResponse(f"{refused}\n", refused.http_status)
            await ends(response, Headers(scope=scope))(scope, receive, send)
        except BrokenOff:
            return


class LocalHttp(H11Protocol):
    """A connection that is closed where its request takes too long to arrive, or where another one needs its place."""

    _within: tuple[Any, Any] | None = None
    """What the caller is to send next, as h11 has it, and behind which request; None while he is to send nothing."""
    _timer: asyncio.TimerHandle | None = None
    _begun_s = 0.0
    _ends_s = 0.0
    """When the timer ends it, which is later than it was set for where parts of a body have come."""
    _since_s = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Takes it in, in the place of another one if need be."""
        self.transport = transport
        if len(self.connections) >= MOST_CONNECTIONS and not self._has_made_room():
            transport.abort()
            return
        super().connection_made(transport)
        self._since_s = self.loop.time()
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Reads on, where somebody asks for what has come, or nobody will."""
        super().data_received(data)
        self._watch()
        if self.conn.their_state is h11.SEND_BODY:
            self._extend(len(data))
            if self.cycle.body and not self.cycle.response_complete:
                self.flow.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """Ends it."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Waits for another request, which may be there already."""
        self._since_s = self.loop.time()
        super().on_response_complete()
        self._watch()

    def send_400_response(self, msg: str) -> None:
        """Says so where nothing was said yet."""
        try:
            super().send_400_response(msg)
        except h11.LocalProtocolError:  # the request was answered before its body came, which is none
            self.transport.abort()

    def _watch(self) -> None:
        """Has one timer for each half of a request, however many bytes it comes in."""
        state = self.conn.their_state
        # uvicorn has a timer of its own until something comes behind an answer.
        is_kept = state is h11.IDLE and self.timeout_keep_alive_task is not None
        within = (state, self.cycle) if state in _WITHIN_S and not is_kept else None
        if within == self._within:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._within, self._timer = within, None
        if within is not None:
            self._begun_s = self.loop.time()
            self._ends_s = self._begun_s + _WITHIN_S[state]
            self._timer = self.loop.call_at(self._ends_s, self._end)

    def _extend(self, size_bytes: int) -> None:
        self._ends_s = min(
            self._ends_s + size_bytes / _BODY_BYTES_A_S,
            self.loop.time() + _WITHIN_S[h11.SEND_BODY],
            self._begun_s + MOST_BODY_S,
        )

    def _end(self) -> None:
        if self.loop.time() < self._ends_s:
            self._timer = self.loop.call_at(self._ends_s, self._end)
        elif self.conn.our_state is h11.SEND_RESPONSE:
            self._say_that_it_took_too_long()
        else:
            self.transport.abort()

    def _say_that_it_took_too_long(self) -> None:
        headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close")]
        self.transport.write(
            self.conn.send(h11.Response(status_code=408, headers=headers, reason=b"Request Timeout"))
            + self.conn.send(h11.Data(data=b"the body did not come in time\n"))
            + self.conn.send(h11.EndOfMessage())
        )
        # Whoever reads the body learns that it broke off, and says nothing more.
        self.cycle.disconnected = True
        self.cycle.message_event.set()
        self.transport.close()

    def _has_made_room(self) -> bool:
        others = [one for one in self.connections if isinstance(one, LocalHttp)]
        giving = [one for one in others if not one._is_answered] or [one for one in others if one._is_stream]
        if not giving:
            return False
        longest = min(giving, key=lambda one: one._since_s)
        self.connections.discard(longest)
        longest.transport.abort()
        return True

    @property
    def _is_answered(self) -> bool:
        """Whether its request is whole, and not its answer."""
        return self.cycle is not None and not self.cycle.more_body and not self.cycle.response_complete

    @property
    def _is_stream(self) -> bool:
        """Whether its answer has begun and has no end in sight: events to follow, or a caller who does not read."""
        return self.cycle.response_started and (self.scope["method"] == "GET" or self.flow.write_paused)


def config_of(app: ASGIApp, drain_s: int, **more: Any) -> uvicorn.Config:
    """How uvicorn serves it; `more` is its own. The log tells of its own errors and of nothing that others send."""
    return uvicorn.Config(
        app,
        http=LocalHttp,
        ws="none",
        log_config=None,
        log_level="error",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=drain_s,
        **more,
    )
