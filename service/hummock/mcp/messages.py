"""Reading JSON-RPC messages: what is none gets an error, with the id of the call where it has one."""

from __future__ import annotations

import json
import re
from typing import Any, Final

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

_NO_JSON: Final = "Parse error: this is not JSON"
_NO_MESSAGE: Final = "Invalid request: this is no JSON-RPC 2.0 message"
_NO_ID: Final = "Invalid request: an id is a string or an integer"
_NO_BATCHES: Final = "Invalid request: batches are not taken; send each message by itself"
_TOO_MUCH: Final = "Invalid request: the message is nested too deeply, or has a number that is too long"
# A pair of surrogates, else half of one, else any other escape, so that an escaped backslash begins none.
_ESCAPE: Final = re.compile(
    r"\\(?:u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|(u[dD][89a-fA-F][\da-fA-F]{2})|.)", re.DOTALL
)


class NotAMessage(ValueError):
    """What was sent is none that the server takes; `answers` are what the sender gets."""

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
    if isinstance(message, JSONRPCNotification) and "id" in json.loads(text):
        raise NotAMessage(_error(None, INVALID_REQUEST, _NO_ID))
    return message


def _answers(text: str, invalid: ValidationError) -> list[JSONRPCError]:
    try:
        # More patient than the SDK's parser, so that the id is known.
        found = json.loads(text)
    except (ValueError, RecursionError):
        return [_error(None, PARSE_ERROR, _NO_JSON)]
    if isinstance(found, list):
        ids = [id for id in map(_id_of, found) if id is not None]
        return [_error(id, INVALID_REQUEST, _NO_BATCHES) for id in ids] or [_error(None, INVALID_REQUEST, _NO_BATCHES)]
    is_parsed = invalid.errors(include_url=False)[0]["type"] != "json_invalid"
    return [_error(_id_of(found), INVALID_REQUEST, _NO_MESSAGE if is_parsed else _TOO_MUCH)]


def _id_of(message: Any) -> int | str | None:
    id = message.get("id") if isinstance(message, dict) else None
    return id if type(id) in (int, str) else None


def _error(id: int | str | None, code: int, message: str) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=id, error=ErrorData(code=code, message=message))
