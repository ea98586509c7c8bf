"""Running the MCP server: over which transport, and its connection to the service."""

from __future__ import annotations

import asyncio
import io
import json
import math
import os
import re
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from itertools import islice
from threading import Thread
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp.types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

from hummock.core.errors import places_of
from hummock_tools.mcp.server import Reach, Refused, memory_server

if TYPE_CHECKING:
    from hummock_client import AsyncClient
    from hummock_tools.mcp.tools import ProjectCalls


_NO_JSON: Final = "Parse error: this is not JSON"
_NO_MESSAGE: Final = "Invalid request: this is no JSON-RPC 2.0 message"
_NO_ID: Final = "Invalid request: an id is a string or an integer"
_NO_BATCHES: Final = "Invalid request: batches are not taken; send each message by itself"
_TOO_MUCH: Final = "Invalid request: the message is nested too deeply, or has a number that is too long"
# A pair of surrogates, else half of one, else any other escape, so that an escaped backslash begins none.
_ESCAPE: Final = re.compile(
    r"\\(?:u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|(u[dD][89a-fA-F][\da-fA-F]{2})|.)", re.DOTALL
)
_STRING: Final = r'"(?:[^"\\]++|\\.)*+"'
_TOKEN: Final = re.compile(rf"{_STRING}?|[\[{{]+|[\]}}]+", re.DOTALL)
_VALUE: Final = re.compile(rf"\s*+:\s*+({_STRING}|-?[0-9]{{1,20}})\s*+[,}}]", re.DOTALL)
_MOST_TOKENS: Final = 50_000
_MOST_DIGITS: Final = 4300
"""Python's own limit of an int."""


class ServingEnded(Exception):
    """The server has ended although its client has not; the message says why."""


class NotAMessage(ValueError):
    """The input is not a message that the server accepts; `answers` are sent back."""

    def __init__(self, *answers: JSONRPCError) -> None:
        super().__init__()
        self.answers = answers


def decode(sent: bytes) -> str:
    """The text of a message, in which half a character, escaped or not, is U+FFFD: clients cut texts anywhere."""
    text = sent.decode("utf-8-sig", "replace")
    if "\\ud" not in text and "\\uD" not in text:
        return text
    return _ESCAPE.sub(lambda escape: r"\ufffd" if escape[1] else escape[0], text)


def read_message(text: str) -> JSONRPCMessage:
    """The message. Raises: NotAMessage."""
    try:
        message = jsonrpc_message_adapter.validate_json(text, by_name=False)
    except ValidationError as invalid:
        raise NotAMessage(*_answers(text, invalid)) from invalid
    # The SDK takes a call whose id is none for a notification, which nobody answers.
    if isinstance(message, JSONRPCNotification) and "id" in _loaded(text):
        raise NotAMessage(_error(None, INVALID_REQUEST, _NO_ID))
    return message


def _answers(text: str, invalid: ValidationError) -> list[JSONRPCError]:
    try:
        # More patient than the SDK's parser, so that the id is known.
        found = _loaded(text)
    except RecursionError:
        return [_error(_scanned_id(text), INVALID_REQUEST, _TOO_MUCH)]
    except ValueError:
        return [_error(None, PARSE_ERROR, _NO_JSON)]
    if isinstance(found, list):
        ids = [id for id in map(_id_of, found) if id is not None]
        return [_error(id, INVALID_REQUEST, _NO_BATCHES) for id in ids] or [_error(None, INVALID_REQUEST, _NO_BATCHES)]
    is_parsed = invalid.errors(include_url=False)[0]["type"] != "json_invalid"
    return [_error(_id_of(found), INVALID_REQUEST, _NO_MESSAGE if is_parsed else _TOO_MUCH)]


def _loaded(text: str) -> Any:
    return json.loads(text, parse_int=lambda digits: int(digits) if len(digits) <= _MOST_DIGITS else float(digits))


def _scanned_id(text: str) -> int | str | None:
    """The id of an object that is nested too deeply to be read, if it is among its first tokens."""
    depth = 0
    for token in islice(_TOKEN.finditer(text), _MOST_TOKENS):
        if token[0][0] in "[{":
            depth += len(token[0])
        elif token[0][0] in "]}":
            depth -= len(token[0])
        elif depth == 1 and token[0] == '"id"' and (value := _VALUE.match(text, token.end())):
            try:
                return _id_of({"id": json.loads(value[1])})
            except ValueError:
                return None
    return None


def _id_of(message: Any) -> int | str | None:
    id = message.get("id") if isinstance(message, dict) else None
    return id if type(id) in (int, str) else None


def _error(id: int | str | None, code: int, message: str) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=id, error=ErrorData(code=code, message=message))


async def serve_stdio(server: Server[Any]) -> None:
    """Answer messages from stdin on stdout until stdin ends. Raises: ServingEnded, where something ends it before."""
    try:
        # The SDK waits for its thread that reads stdin, whatever happened: it reads an empty one, and a thread of ours
        # the real one.
        async with stdio_server(stdin=anyio.wrap_file(io.StringIO())) as (nothing, replies):
            await nothing.aclose()
            await _serve(server, _lines(_take_stdin()), replies)
    except* Exception as failures:
        first: BaseException = failures
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        why = first.strerror if isinstance(first, OSError) else f"{type(first).__name__} at {places_of(first)}"
        raise ServingEnded(f"the MCP server has ended before its client: {why}") from failures


async def _serve(server: Server[Any], lines: MemoryObjectReceiveStream[bytes], replies: Any) -> None:
    messages_in, messages = anyio.create_memory_object_stream[SessionMessage | Exception]()
    is_read = False

    async def relay() -> None:
        nonlocal is_read
        async with messages_in, lines:
            async for line in lines:
                await _pass_on(decode(line), messages_in, replies)
            is_read = True

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(relay)
        await server.run(messages, replies, server.create_initialization_options())
        tasks.cancel_scope.cancel()
    if not is_read:
        raise EOFError("the server's loop is over")


async def _pass_on(text: str, messages: MemoryObjectSendStream[SessionMessage | Exception], replies: Any) -> None:
    """Hand a message to the server; answer what is none, which the SDK would pass over in silence."""
    # Some clients end their lines with an empty one.
    if not text.strip():
        return
    try:
        await messages.send(SessionMessage(read_message(text)))
    except NotAMessage as none:
        for answer in none.answers:
            await replies.send(SessionMessage(answer))


def _take_stdin() -> BinaryIO:
    """Take over stdin; it is then empty for all other readers, above all child processes."""
    taken = os.fdopen(os.dup(0), "rb")
    with open(os.devnull, "rb") as empty:  # noqa: PTH123 - no Path
        os.dup2(empty.fileno(), 0)
    return taken


def _lines(stdin: BinaryIO) -> MemoryObjectReceiveStream[bytes]:
    """The lines as they come, to be read in this event loop; a thread that waits for one keeps no process alive."""
    loop = asyncio.get_running_loop()
    send, receive = anyio.create_memory_object_stream[bytes](math.inf)

    def call(function: Callable[..., object], *arguments: object) -> None:
        # The loop may be closed.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(function, *arguments)

    def read() -> None:
        # What cannot be read any more, a terminal that hung up, has ended.
        with suppress(OSError):
            for line in stdin:
                call(_send, send, line)
        call(send.close)

    Thread(target=read, name="stdin", daemon=True).start()
    return receive


def _send(lines: MemoryObjectSendStream[bytes], line: bytes) -> None:
    with suppress(anyio.BrokenResourceError):
        lines.send_nowait(line)


async def over_stdio(project: str, target: str, reach: Reach | None) -> None:
    """Answer messages from stdin on stdout until stdin ends; the log goes to stderr. Raises: ServingEnded."""
    async with _connected(project, target, reach) as server:
        await serve_stdio(server)


async def over_http(project: str, target: str, reach: Reach | None, listener: socket.socket) -> None:
    """Serve HTTP on a listening socket until SIGINT or SIGTERM, then finish running requests.

    The signal is raised again at the end, for whoever is to know.
    """
    from hummock_tools.mcp.streamable_http import serve_http

    async with _connected(project, target, reach) as server:
        await serve_http(server, listener)


@asynccontextmanager
async def _connected(project: str, target: str, reach: Reach | None) -> AsyncIterator[Server[Any]]:
    """A server that connects to the service when a tool is first called, and hangs up at exit.

    Args:
        project: Project of the memories.
        target: Address of the service, which may start later and be restarted. Nothing is imported for it before.
        reach: Starts the service where it is away, first when the server begins; None leaves that to others.
    """
    client: AsyncClient | None = None
    starting: asyncio.Task[None] | None = None

    def connect() -> ProjectCalls:
        nonlocal client
        from hummock_client import AsyncClient
        from hummock_tools.mcp.tools import ProjectCalls

        client = AsyncClient(target)
        return ProjectCalls(client, project, reach)

    def on_start() -> None:
        nonlocal starting
        if reach is not None:
            starting = asyncio.create_task(_quietly(reach))

    try:
        yield memory_server(connect, on_start)
    finally:
        if starting is not None:
            starting.cancel()
        if client is not None:
            await client.close()


async def _quietly(reach: Reach) -> None:
    """Reach the service; why it cannot be reached is for the call that needs it."""
    with suppress(Refused):
        await reach()
