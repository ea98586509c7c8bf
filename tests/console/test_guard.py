"""Requests that are refused, and the headers that every answer has for browsers."""

from __future__ import annotations

import re

import pytest

from hummock_client.v1 import memory_pb2
from hummock_client.v1 import memory_service_pb2 as memories
from hummock_tools.console.view import MAX_BODY_BYTES
from tests.console.browser import Browser
from tests.service.calls import learn
from tests.service.inputs import note
from tests.service.running import Stubs

POSTS = {
    "/language": {"language": "zh", "back": "/"},
    "/memory/add": {"kind": "4", "content": "written by another page"},
    "/memory/edit": {"id": "kept", "content": "written by another page", "version": "1"},
    "/memory/delete": {"id": "kept"},
    "/memory/undo": {"undo": "1"},
    "/review/decide": {"id": "kept", "verdict": "reject"},
}
ADDRESSES = [
    "/", "/ask?project=a&q=b", "/garden?project=nobody's", "/static/console.css", "/static/nothing.js", "/nothing",
]  # fmt: skip


@pytest.fixture
def kept(service: Stubs, project: str) -> str:
    """A project with one memory, which stays as it is."""
    learn(service, project, note("the lighthouse opens at nine", id="kept"))
    return project


def untouched(service: Stubs, project: str) -> bool:
    page = service.memory.ListMemories(memories.ListMemoriesRequest(project=project, view=memory_pb2.MEMORY_VIEW_FULL))
    return [one.content for one in page.memories] == ["the lighthouse opens at nine"]


@pytest.mark.parametrize("path", POSTS)
@pytest.mark.parametrize("given", ["", "another", None])
def test_a_form_without_the_token_of_this_process_changes_nothing(
    english: Browser, service: Stubs, kept: str, path: str, given: str | None
) -> None:
    token = {} if given is None else {"form_token": given}
    answer = english.post(path, {"project": kept, **POSTS[path], **token})
    assert answer.status == 403
    assert "set-cookie" not in answer.headers
    assert untouched(service, kept)


@pytest.mark.parametrize("path", POSTS)
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": None, "sec-fetch-site": "cross-site"}, 403),
        ({"origin": None, "sec-fetch-site": "same-site", "sec-fetch-mode": "navigate"}, 403),
        ({"host": "evil.example"}, 421),
        ({"host": "127.0.0.1:1"}, 421),
    ],
)
def test_a_page_of_elsewhere_sends_no_form_even_with_the_token(
    english: Browser, service: Stubs, kept: str, path: str, headers: dict[str, str | None], status: int
) -> None:
    token = english.open("/").hidden("form_token")
    answer = english.post(path, {"form_token": token, "project": kept, **POSTS[path]}, headers)
    assert answer.status == status
    assert untouched(service, kept)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 421),
        ({"origin": "http://evil.example"}, 403),
        ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}, 403),
        ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}, 200),
        ({"sec-fetch-site": "none", "sec-fetch-mode": "navigate"}, 200),
        ({}, 200),
    ],
)
def test_pages_are_opened_by_links_alone(english: Browser, headers: dict[str, str | None], status: int) -> None:
    assert english.get("/", headers).status == status


def test_localhost_is_this_machine_too_and_a_form_that_is_too_large_or_of_another_type_is_refused(
    english: Browser,
) -> None:
    assert english.get("/", {"host": f"localhost:{english.port}"}).status == 200
    assert english.post("/memory/add", {"content": "x" * MAX_BODY_BYTES}).status == 413
    assert english.post("/memory/add", {}, {"content-type": "text/plain"}).status == 415


@pytest.mark.long
@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("headers", [{}, {"host": "evil.example"}])
def test_every_answer_has_the_headers(english: Browser, address: str, headers: dict[str, str | None]) -> None:
    told = english.get(address, headers).headers
    policy = dict(part.strip().partition(" ")[::2] for part in told["content-security-policy"].split(";"))
    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["form-action"] == "'self'"
    assert "unsafe" not in told["content-security-policy"]
    assert (told["x-content-type-options"], told["referrer-policy"]) == ("nosniff", "same-origin")
    assert told["cache-control"] == "no-store"


def test_the_language_cookie_is_seen_by_no_script_and_sent_by_no_other_page(english: Browser) -> None:
    token = english.open("/").hidden("form_token")
    answer = english.post("/language", {"form_token": token, "language": "zh", "back": "/"})
    assert re.search(r"httponly", answer.headers["set-cookie"], re.IGNORECASE)
    assert re.search(r"samesite=strict", answer.headers["set-cookie"], re.IGNORECASE)
