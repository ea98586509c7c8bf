"""Serving one client over stdin and stdout, in which every line that is no message gets an error."""

from __future__ import annotations

from typing import Any, Final

import anyio
from anyio.streams.memory import MemoryObjectSendStream
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp.types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError
from pydantic import ValidationError

_NO_JSON: Final = "Parse error: the line is not JSON"
_NO_MESSAGE: Final = "Invalid request: the line is no JSON-RPC 2.0 message"


async def serve_stdio(server: Server[Any]) -> None:
    """Answer on stdout what comes on stdin until that ends."""
    async with stdio_server() as (lines, replies):
        messages_in, messages = anyio.create_memory_object_stream[SessionMessage | Exception]()

        async def read() -> None:
            async with messages_in:
                async for item in lines:
                    await _pass_on(item, messages_in, replies)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            await server.run(messages, replies, server.create_initialization_options())
            tasks.cancel_scope.cancel()


async def _pass_on(
    item: SessionMessage | Exception,
    messages: MemoryObjectSendStream[SessionMessage | Exception],
    replies: Any,
) -> None:
    """Hand a message to the server; answer what is none, which the SDK would pass over in silence."""
    if isinstance(item, SessionMessage):
        await messages.send(item)
    elif isinstance(item, ValidationError) and (error := _answer_to(item)) is not None:
        await replies.send(SessionMessage(error))


def _answer_to(invalid: ValidationError) -> JSONRPCError | None:
    """The error that a line gets; None for an empty line, with which some clients end theirs."""
    problems = invalid.errors(include_url=False, include_context=False)
    if problems[0]["type"] == "json_invalid":
        if not str(problems[0]["input"]).strip():
            return None
        return _error(None, PARSE_ERROR, _NO_JSON)
    # What was missing is told together with the whole message, and so with the id that the client waits for.
    ids = [each["input"].get("id") for each in problems if isinstance(each["input"], dict)]
    return _error(next((id for id in ids if type(id) in (int, str)), None), INVALID_REQUEST, _NO_MESSAGE)


def _error(id: int | str | None, code: int, message: str) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=id, error=ErrorData(code=code, message=message))
