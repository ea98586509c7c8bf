"""Reading JSON-RPC messages: what is none gets an error, with the id of the call where it has one."""

from __future__ import annotations

import json
import re
from itertools import islice
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
_STRING: Final = r'"(?:[^"\\]++|\\.)*+"'
_TOKEN: Final = re.compile(rf"{_STRING}?|[\[{{]+|[\]}}]+", re.DOTALL)
_VALUE: Final = re.compile(rf"\s*+:\s*+({_STRING}|-?[0-9]{{1,20}})\s*+[,}}]", re.DOTALL)
_MOST_TOKENS: Final = 50_000
_MOST_DIGITS: Final = 4300
"""Python's own limit of an int."""


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
    """Raises: ValueError, RecursionError."""
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
