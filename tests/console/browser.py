"""A browser for the console over a real socket: pages, forms, redirects, events, and the structure of a page."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from html.parser import HTMLParser
from http.client import HTTPConnection, HTTPResponse
from typing import Any
from urllib.parse import urlencode

_VOID = {"meta", "link", "input", "br", "hr", "img"}
_LABELLED = {"input", "select", "textarea", "progress", "meter"}


class Page(HTMLParser):
    """A page whose elements are looked at; made of a text, it fails where that is not well-formed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.source = text
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.words: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open, f"never closed: {self._open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"an attribute of <{tag}> comes twice"
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in _VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self._open, f"</{tag}> closes nothing"
        assert self._open.pop() == tag, f"</{tag}> closes another element"

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        """Text of the element, with white space normalised."""
        return " ".join(" ".join(self.words).split())

    def all(self, tag: str) -> list[dict[str, str]]:
        """The attributes of all elements of a name."""
        return [attributes for name, attributes in self.elements if name == tag]

    def hidden(self, name: str) -> str:
        """The value of the first hidden field of a name."""
        return next(
            each["value"] for each in self.all("input") if each.get("type") == "hidden" and each["name"] == name
        )

    def links(self, path: str) -> list[str]:
        """Addresses of links to a path."""
        return [each["href"] for each in self.all("a") if each["href"].partition("?")[0] == path]

    def unlabelled(self) -> list[str]:
        """Fields and gauges without a name that is read aloud."""
        labelled = {each.get("for") for each in self.all("label")}
        return [
            attributes.get("name", tag)
            for tag, attributes in self.elements
            if tag in _LABELLED
            and attributes.get("type") != "hidden"
            and attributes.get("id") not in labelled
            and not attributes.get("aria-label")
            and not attributes.get("aria-labelledby")
        ]

    def ids(self) -> list[str]:
        """The ids of all elements."""
        return [attributes["id"] for _, attributes in self.elements if "id" in attributes]


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer of the console."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def page(self) -> Page:
        """The body as a page."""
        assert self.headers["content-type"].startswith("text/html"), self.body[:200]
        return Page(self.body.decode())


@dataclass(slots=True)
class Browser:
    """Keeps cookies; `headers` of a request replace its own, None leaves one out."""

    port: int
    languages: str
    cookies: dict[str, str] = field(default_factory=dict)

    @property
    def origin(self) -> str:
        """Origin of the console's pages."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def language(self) -> str:
        """Language of the answers."""
        return self.languages[:2]

    def get(self, path: str, headers: Mapping[str, str | None] | None = None, /, **query: str) -> Answer:
        """A page."""
        return self._answer("GET", f"{path}?{urlencode(query)}" if query else path, None, headers or {})

    def open(self, path: str, /, **query: str) -> Page:
        """A page that is there."""
        answer = self.get(path, None, **query)
        assert answer.status == 200, (answer.status, answer.body.decode())
        return answer.page

    def post(self, path: str, fields: Mapping[str, str], headers: Mapping[str, str | None] | None = None) -> Answer:
        """Sends a form."""
        sent = {"content-type": "application/x-www-form-urlencoded", "origin": self.origin, **(headers or {})}
        return self._answer("POST", path, urlencode(fields).encode(), sent)

    def send(self, path: str, **fields: str) -> Page:
        """Sends a form with the token of the console, and follows to the page that it leads to."""
        token = self.open("/").hidden("form_token")
        answer = self.post(path, {"form_token": token, **fields})
        assert answer.status == 303, (answer.status, answer.body.decode())
        followed = self.get(answer.headers["location"])
        assert followed.status == 200
        return followed.page

    @contextmanager
    def events(
        self, address: str, headers: Mapping[str, str] | None = None
    ) -> Iterator[Iterator[tuple[str, str, Any]]]:
        """The server-sent events of an address: id, name and data of each."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("GET", address, headers={"accept": "text/event-stream", **(headers or {})})
            answer = connection.getresponse()
            assert answer.status == 200
            assert answer.headers["content-type"].startswith("text/event-stream")
            yield _events(answer)
        finally:
            connection.close()

    def _answer(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str | None]) -> Answer:
        cookies = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        own: dict[str, str | None] = {"accept-language": self.languages, "cookie": cookies or None, **headers}
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.putrequest(method, path, skip_host="host" in own, skip_accept_encoding=True)
            for name, value in own.items():
                if value is not None:
                    connection.putheader(name, value)
            if body is not None:
                connection.putheader("content-length", str(len(body)))
            connection.endheaders(body)
            response = connection.getresponse()
            for line in response.headers.get_all("set-cookie") or ():
                name, _, value = line.partition(";")[0].partition("=")
                self.cookies[name] = value
            lowered = {name.lower(): value for name, value in response.headers.items()}
            return Answer(response.status, lowered, response.read())
        finally:
            connection.close()


def _events(answer: HTTPResponse) -> Iterator[tuple[str, str, Any]]:
    said: dict[str, str] = {}
    for line in answer:
        name, _, value = line.decode().rstrip("\n").partition(": ")
        if name:
            said[name] = value
            continue
        yield said.get("id", ""), said["event"], json.loads(said["data"])
        said = {}
