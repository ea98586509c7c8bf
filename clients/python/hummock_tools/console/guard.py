"""Checks before every page: Host, Origin, size of requests, browser policy; and parsing of form fields.

The console has no login, so a page of another origin, or one whose name was made to resolve to this machine, must
neither read nor write through it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, Self
from urllib.parse import parse_qsl

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BODY_BYTES: Final = 4 * 1024 * 1024
"""A memory of 256 KiB, with its raw text and three bytes written for one, and some room."""

HEADERS: Final = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    # Not no-referrer: browsers would send our own forms with an Origin of "null".
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}

_READS = frozenset({"GET", "HEAD"})
_OURS = frozenset({"", "same-origin", "none"})


class Guard:
    """Turns away requests that do not come from this very address; sets the headers of all answers."""

    def __init__(self, app: ASGIApp, names: tuple[str, ...]) -> None:
        """Pass requests whose Host is among `names` to `app`."""
        self._app = app
        self._names = frozenset(names)
        self._origins = frozenset(f"http://{name}" for name in names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, or the lifespan."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            raise ValueError(f"{scope['type']} is not spoken here")
        refusal = self._refusal(scope["method"], Headers(scope=scope))
        await (refusal or self._app)(scope, receive, _with_headers(send))

    def _refusal(self, method: str, headers: Headers) -> ASGIApp | None:
        if headers.get("host", "").lower() not in self._names:
            return PlainTextResponse("this console is not at that address\n", 421)
        origin = headers.get("origin")
        if origin is not None and origin.lower() not in self._origins:
            return PlainTextResponse("pages of other origins may not ask\n", 403)
        # Links from elsewhere may open a page; nothing else of another site may ask, whatever it sends as Origin.
        if headers.get("sec-fetch-site", "") not in _OURS and (
            method not in _READS or headers.get("sec-fetch-mode") != "navigate"
        ):
            return PlainTextResponse("pages of other sites may not ask\n", 403)
        return None


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers.update(HEADERS)
            # Pages hold memories; a disk is no place for copies of them.
            headers.setdefault("cache-control", "no-store")
        await send(message)

    return sending


_MAX_FIELDS = 2000
_LARGEST_WHOLE = (1 << 32) - 1


class BadInput(Exception):
    """A request that no page of ours sends; the message is for people."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


class Fields:
    """Names and values in their order; a name may come more than once."""

    def __init__(self, pairs: Sequence[tuple[str, str]]) -> None:
        self._pairs = tuple(pairs)

    @classmethod
    def of_query(cls, request: Request) -> Self:
        """The fields of an address's query string."""
        return cls(request.query_params.multi_items())

    @classmethod
    async def of_body(cls, request: Request) -> Self:
        """The fields of a form, with the ends of lines as they are stored. Raises: BadInput."""
        if not request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
            raise BadInput("forms are sent as application/x-www-form-urlencoded", 415)
        body = bytearray()
        async for part in request.stream():
            body += part
            if len(body) > MAX_BODY_BYTES:
                raise BadInput(f"the form has more than {MAX_BODY_BYTES} bytes", 413)
        try:
            pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_MAX_FIELDS)
        except ValueError as error:
            raise BadInput(f"the form cannot be read: {error}") from error
        return cls([(name, value.replace("\r\n", "\n")) for name, value in pairs])

    def __contains__(self, name: str) -> bool:
        return any(name == each for each, _ in self._pairs)

    def text(self, name: str) -> str:
        """The value, or an empty text."""
        return next((value for each, value in self._pairs if each == name), "")

    def many(self, name: str) -> list[str]:
        """All values of a name that are not empty."""
        return [value for each, value in self._pairs if each == name and value]

    def listed(self, name: str, separator: str = ",") -> list[str]:
        """Parts of a text between separators; white space around a part is removed, empty parts are left out."""
        return [part for part in (each.strip() for each in self.text(name).split(separator)) if part]

    def number(self, name: str) -> float | None:
        """Parse a number; None if the field is empty. Raises: BadInput."""
        value = self.text(name).strip()
        if not value:
            return None
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise BadInput(f"{name} is no number")
        return number

    def whole(self, name: str) -> int | None:
        """Parse a whole number of 32 bits; None if the field is empty. Raises: BadInput."""
        number = self.number(name)
        if number is None:
            return None
        if not number.is_integer() or not 0 <= number <= _LARGEST_WHOLE:
            raise BadInput(f"{name} is no whole number from 0 to {_LARGEST_WHOLE}")
        return int(number)

    def choice(self, name: str, among: Sequence[int]) -> int:
        """Parse one of these values of an enum; 0 if the field is empty. Raises: BadInput."""
        value = self.whole(name) or 0
        if value and value not in among:
            raise BadInput(f"{name} is none of those that there are")
        return value
