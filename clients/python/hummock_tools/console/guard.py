"""Checks before every page: who may ask, how much may be sent, and what a browser may do with the answer.

The console asks nobody who they are, so a page of another origin, or one whose name was made to resolve to this
machine, must neither read it nor write through it.
"""

from __future__ import annotations

import hmac
import secrets
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
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


class FormToken:
    """A secret of this process that each form carries, so that only our own pages can send one."""

    def __init__(self) -> None:
        self.value: Final = secrets.token_urlsafe(32)

    def is_in(self, given: str) -> bool:
        """True if the given token is this one; compared in constant time."""
        return hmac.compare_digest(self.value.encode(), given.encode())


class Guard:
    """Turns away requests that do not come from this very address; sets the headers of all answers."""

    def __init__(self, app: ASGIApp, names: tuple[str, ...]) -> None:
        """Answers with `app` those whose Host is among `names`."""
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
