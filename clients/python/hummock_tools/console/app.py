"""The console as one application: its addresses, its connection to the service, and what is refused.

The console has no login, so a page of another origin, or one whose name was made to resolve to this machine, must
neither read nor write through it.
"""

from __future__ import annotations

import hmac
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hummock.local_http import WholeBodies, config_of
from hummock_client import HummockCallError
from hummock_tools import loopback
from hummock_tools.console.ask_page import ask, prompt
from hummock_tools.console.garden_page import (
    add_memory,
    decide,
    delete_memory,
    edit_memory,
    garden,
    live_memories,
    memory,
    new_memory,
    review,
    session,
    sessions,
    undo,
)
from hummock_tools.console.learning_page import learning, live_learning
from hummock_tools.console.map_page import found_stars, live_stars, one_star, star_map, stars
from hummock_tools.console.service_page import operations, operations_now, projects
from hummock_tools.console.view import COOKIE, LANGUAGES, STATIC, BadInput, Console, Fields, View, go_to, status_of

_DRAIN_S: Final = 1
"""Seconds. Pages are short; only the streams of open pages remain."""

_YEAR_S: Final = 31_536_000

Page = Callable[[View], Awaitable[Response]]
Post = Callable[[View, Fields], Awaitable[Response]]


async def serve_console(target: str, listener: socket.socket) -> None:
    """Answer on a socket that listens on loopback, until SIGINT or SIGTERM, which is raised again at the end.

    The service at `target` is called when a page is requested, so it may start later.
    """
    config = config_of(app_of(target, loopback.names_of(listener)), _DRAIN_S)
    await uvicorn.Server(config).serve(sockets=[listener])


def app_of(target: str, names: tuple[str, ...]) -> ASGIApp:
    """Build the application with all pages, for a service at a resolved target and requests to these hosts."""

    @asynccontextmanager
    async def connected(app: Starlette) -> AsyncIterator[None]:
        console = Console.open(target)
        app.state.console = console
        try:
            yield
        finally:
            await console.client.close()

    pages: dict[str, Page] = {
        "/": projects,
        "/ask": ask,
        "/prompt": prompt,
        "/garden": garden,
        "/live/memories": live_memories,
        "/map": star_map,
        "/map/stars": stars,
        "/map/found": found_stars,
        "/map/star": one_star,
        "/live/stars": live_stars,
        "/memory": memory,
        "/memory/new": new_memory,
        "/review": review,
        "/sessions": sessions,
        "/session": session,
        "/learning": learning,
        "/live/learning": live_learning,
        "/operations": operations,
        "/operations/now": operations_now,
    }
    posts: dict[str, Post] = {
        "/language": choose_language,
        "/memory/add": add_memory,
        "/memory/edit": edit_memory,
        "/memory/delete": delete_memory,
        "/memory/undo": undo,
        "/review/decide": decide,
    }
    routes = [
        *(Route(path, _shown(page), methods=["GET"]) for path, page in pages.items()),
        *(Route(path, _posted(post), methods=["POST"]) for path, post in posts.items()),
        Mount("/static", StaticFiles(directory=STATIC)),
    ]
    app = Starlette(routes=routes, lifespan=connected, exception_handlers={HTTPException: _no_page})
    return Guard(WholeBodies(app), names)


async def _no_page(request: Request, error: Exception) -> Response:
    view = _view_of(request)
    return view.refusal(view.words("error.not_found"), error.status_code if isinstance(error, HTTPException) else 500)


async def choose_language(view: View, form: Fields) -> Response:
    """Keeps the language in a cookie, and shows the page again."""
    back = form.text("back")
    # An address of this console, not of another host.
    response = go_to(back if back.startswith("/") and not back.startswith(("//", "/\\")) else "/")
    chosen = form.text("language")
    if chosen not in LANGUAGES:
        raise BadInput("that language is not spoken here")
    response.set_cookie(COOKIE, chosen, max_age=_YEAR_S, httponly=True, samesite="strict")
    return response


def _shown(page: Page) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        view = _view_of(request)
        try:
            return await page(view)
        except BadInput as error:
            return view.refusal(str(error), error.status)
        except HummockCallError as error:
            return view.refusal(view.said(error), status_of(error))

    return answer


def _posted(post: Post) -> Callable[[Request], Awaitable[Response]]:
    """No form gets past this without the token of this process."""

    async def act(view: View) -> Response:
        form = await Fields.of_body(view.request)
        if not hmac.compare_digest(view.console.form_token.encode(), form.text("form_token").encode()):
            raise BadInput(view.words("error.form_token"), 403)
        return await post(view, form)

    return _shown(act)


def _view_of(request: Request) -> View:
    console: Console = request.app.state.console
    return View(request, console)


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
