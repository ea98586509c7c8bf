"""One request as its page sees it: its fields, language, project, the service, and how an answer is made."""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path
from typing import Any, Final, NamedTuple, Self
from urllib.parse import parse_qsl, urlencode

import grpc
import jinja2
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse

from hummock_client import AsyncClient, HummockCallError
from hummock_client.errors import describe
from hummock_client.time_zone import own_clock
from hummock_client.v1.memory_pb2 import MEMORY_VIEW_INDEX, Memory

COOKIE: Final = "hummock_console_language"
LANGUAGES: Final[dict[str, dict[str, str]]] = {
    name: json.loads(Path(__file__).with_name("words").joinpath(f"{name}.json").read_text("utf-8"))
    for name in ("en", "zh")
}


def language_of(request: Request) -> str:
    """The one that was chosen, else the first that the browser asks for and that there is, else English."""
    chosen = request.cookies.get(COOKIE, "")
    return chosen if chosen in LANGUAGES else _preferred(request.headers.get("accept-language", ""))


def _preferred(header: str) -> str:
    best, best_weight = "en", 0.0
    for part in header.split(","):
        tag, _, weight_text = part.strip().partition(";q=")
        name = tag.strip().lower().partition("-")[0]
        try:
            weight = float(weight_text) if weight_text else 1.0
        except ValueError:
            continue
        if name in LANGUAGES and weight > best_weight:
            best, best_weight = name, weight
    return best


class Words:
    """The words of one language, a file of `words/`: by page, then the values of the contract's enums by number."""

    def __init__(self, language: str) -> None:
        self.language: Final = language
        self._table = LANGUAGES[language]

    def __call__(self, key: str, *facts: object) -> str:
        """The words of a key, with facts in their places. Raises: KeyError."""
        return self._table[key].format(*facts)

    def name(self, enum: str, number: int) -> str:
        """A value of an enum of the contract; its number, where a newer service alone has one."""
        return self._table.get(f"{enum}.{number}", str(number))


_MAX_KEPT: Final = 64
_MOST_TITLES: Final = 512
_OUTPUT_ONLY: Final = ("text", "update_time", "content_hash", "token_count", "chunk_count", "superseded_by", "writer")


class Kept(NamedTuple):
    """A memory before a change, which can be learnt again.

    `left_as` is its version after the change, so that later changes by others are not overwritten; empty if it was
    removed.
    """

    project: str
    memory: Memory
    left_as: str


def keep(shelf: dict[str, Kept], project: str, memory: Memory, left_as: str) -> str:
    """The unguessable key on the shelf, which holds 64, of a memory in the RAW view without what the service makes."""
    own = Memory()
    own.CopyFrom(memory)
    for name in _OUTPUT_ONLY:
        own.ClearField(name)
    key = secrets.token_urlsafe(16)
    shelf[key] = Kept(project, own, left_as)
    if len(shelf) > _MAX_KEPT:
        del shelf[next(iter(shelf))]
    return key


MAX_BODY_BYTES: Final = 4 * 1024 * 1024
"""A memory of 256 KiB, with its raw text and three bytes written for one, and some room."""


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


TEMPLATES: Final = Path(__file__).with_name("templates")
STATIC: Final = Path(__file__).with_name("static")

_HTTP_STATUS = {
    grpc.StatusCode.INVALID_ARGUMENT: 400,
    grpc.StatusCode.FAILED_PRECONDITION: 400,
    grpc.StatusCode.UNAUTHENTICATED: 401,
    grpc.StatusCode.PERMISSION_DENIED: 403,
    grpc.StatusCode.NOT_FOUND: 404,
    grpc.StatusCode.ALREADY_EXISTS: 409,
    grpc.StatusCode.RESOURCE_EXHAUSTED: 429,
    grpc.StatusCode.UNAVAILABLE: 503,
    grpc.StatusCode.DEADLINE_EXCEEDED: 504,
}


def link(path: str, /, **query: object) -> str:
    """Return the address of a page; None and empty values are left out."""
    said = [(name, str(value)) for name, value in query.items() if value not in (None, "")]
    return f"{path}?{urlencode(said)}" if said else path


def moment(stamp: Timestamp) -> str:
    """A time for people, to the second, as the clock where the console runs shows it."""
    return stamp.ToDatetime(own_clock()).strftime("%Y-%m-%d %H:%M:%S")


def machine_moment(stamp: Timestamp) -> str:
    """A time for machines: ISO 8601 in UTC, to the second."""
    return stamp.ToDatetime(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def milliseconds(span: Duration) -> float:
    """A span in milliseconds."""
    return span.ToNanoseconds() / 1e6


def size(byte_count: int) -> str:
    """A size in its largest fitting unit."""
    value, units = float(byte_count), ["B", "KiB", "MiB", "GiB"]
    while value >= 1024 and len(units) > 1:
        value /= 1024
        units.pop(0)
    return f"{value:.0f} {units[0]}" if units[0] == "B" else f"{value:.1f} {units[0]}"


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["link"] = link
    environment.filters.update({"moment": moment, "machine_moment": machine_moment, "ms": milliseconds, "size": size})
    return environment


@dataclass(frozen=True, slots=True, kw_only=True)
class Console:
    """What all requests share; `form_token` is a secret that only the forms of our own pages carry."""

    client: AsyncClient
    form_token: str
    undo: dict[str, Kept]
    templates: jinja2.Environment

    @classmethod
    def open(cls, target: str) -> Self:
        """Connects when the first call is made; made and used in one event loop."""
        token = secrets.token_urlsafe(32)
        return cls(client=AsyncClient(target), form_token=token, undo={}, templates=_environment())


class View:
    """One request."""

    def __init__(self, request: Request, console: Console) -> None:
        self.request: Final = request
        self.console: Final = console
        self.client: Final = console.client
        self.words: Final = Words(language_of(request))
        self.query: Final = Fields.of_query(request)

    @property
    def project(self) -> str:
        """The project that the address names. Raises: BadInput."""
        if project := self.query.text("project"):
            return project
        raise BadInput(self.words("error.no_project"))

    def html(self, template: str, values: Mapping[str, object]) -> str:
        """A template with these values, and what all of them have."""
        return self.console.templates.get_template(template).render(
            {
                "t": self.words,
                "language": self.words.language,
                "project": self.query.text("project"),
                "path": self.request.url.path,
                "here": self.request.url.path + (f"?{self.request.url.query}" if self.request.url.query else ""),
                "form_token": self.console.form_token,
                "did": self.query.text("did"),
                "redacted": self.query.text("note") == "redacted",
                "undo_key": self.query.text("undo") if self.query.text("undo") in self.console.undo else "",
                **values,
            }
        )

    def page(self, template: str, values: Mapping[str, object], status: int = 200) -> Response:
        """An answer with a page."""
        return HTMLResponse(self.html(template, values), status)

    def refusal(self, message: str, status: int) -> Response:
        """Return an error page."""
        return self.page("error.html", {"message": message, "status": status}, status)

    def streamed(self, request: Message, told: Callable[[AsyncIterator[Any]], AsyncIterator[str]]) -> Response:
        """The replies to a request as server-sent events, which `told` makes of them; a failure is the last one."""

        async def events() -> AsyncIterator[str]:
            try:
                async with aclosing(self.client.stream(request)) as news:
                    async for event in told(news):
                        yield event
            except HummockCallError as error:
                yield f"event: failed\ndata: {json.dumps(self.said(error))}\n\n"

        return StreamingResponse(events(), media_type="text/event-stream")

    def said(self, error: HummockCallError) -> str:
        """A message for people about a failed call."""
        return describe(error, self.client.target)


def status_of(error: HummockCallError) -> int:
    """HTTP status for a failed call."""
    return _HTTP_STATUS.get(error.code, 500)


async def titles_of(view: View, ids: Iterable[str]) -> dict[str, str]:
    """Titles by id of those of the first memories that still exist."""
    unique = list(dict.fromkeys(ids))[:_MOST_TITLES]
    if not unique:
        return {}
    found = await view.client.batch_get(view.project, unique, view=MEMORY_VIEW_INDEX)
    return {memory.id: memory.title for memory in found.memories}


def next_page(path: str, page_token: str, /, **query: object) -> str:
    """The address of the page with this token; empty where there is none."""
    return link(path, **query, page=page_token) if page_token else ""


def go_to(path: str, /, **query: object) -> Response:
    """Redirects the browser to another page, so that a form is not sent twice."""
    return RedirectResponse(link(path, **query), 303)
