"""JSON over HTTP, in front of a service on a real socket."""

from __future__ import annotations

import base64
import http.client
import json
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
import structlog
from google.rpc import error_details_pb2

from hummock.core.errors import StartError
from hummock.rpc.listening import parse_address
from hummock.rpc.policy import SERVICES
from tests.service.calls import learn
from tests.service.inputs import note
from tests.service.running import Stubs

pytestmark = [pytest.mark.timed, pytest.mark.storeless]

json_http = pytest.importorskip("hummock.rpc.json_http")
DOC = Path(__file__).parents[2] / "docs" / "http.md"


@pytest.fixture(scope="module")
def port(service: Stubs) -> Iterator[int]:
    with closing(json_http.JsonHttp("127.0.0.1", 0)) as served:
        served.start(parse_address(service.target))
        yield served.port


def post(
    port: int, method: str, body: bytes | dict[str, Any], verb: str = "POST", **headers: str
) -> tuple[int, dict[str, Any]]:
    """Status and JSON of the answer; in names of headers "_" stands for "-"."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    sent = {"Content-Type": "application/json"} | {name.replace("_", "-"): value for name, value in headers.items()}
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    connection.request(verb, f"/hummock.v1.{method}", body=data, headers=sent)
    with connection.getresponse() as response:
        text = response.read().decode()
        assert response.getheader("Access-Control-Allow-Origin") is None
    connection.close()
    return response.status, json.loads(text) if text.startswith("{") else {"text": text}


def test_what_is_learnt_by_it_is_recalled_by_it_and_by_grpc(port: int, service: Stubs, project: str) -> None:
    told = {"project": project, "memories": [{"id": "a", "content": "先本后息"}]}
    status, learnt = post(port, "ContextService/Learn", told)
    assert (status, learnt["results"][0]["id"]) == (200, "a")
    status, found = post(port, "ContextService/Recall", {"project": project, "queryText": "先本后息的还款方式"})
    assert status == 200
    assert [hit["memory"]["content"] for hit in found["hits"]] == ["先本后息"]
    assert service.memory.GetMemory(project=project, id="a").memory.content == "先本后息"


def test_an_error_says_what_it_says_over_grpc(port: int, project: str) -> None:
    status, error = post(port, "MemoryService/ListMemories", {"project": project})
    assert (status, error["code"]) == (404, "not_found")
    (detail,) = error["details"]
    assert detail["type"] == "google.rpc.ErrorInfo"
    value = detail["value"] + "=" * (-len(detail["value"]) % 4)
    info = error_details_pb2.ErrorInfo.FromString(base64.b64decode(value))
    assert info.reason == detail["debug"]["reason"] == "PROJECT_NOT_FOUND"
    status, error = post(port, "ContextService/Recall", {"project": "", "queryText": ""})
    assert (status, error["code"]) == (400, "invalid_argument")
    violations = error["details"][1]["debug"]["fieldViolations"]
    assert {one["field"] for one in violations} >= {"project"}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"{", "is no RecallRequest"),
        (b"\xff", "is no RecallRequest"),
        (b'{"projct": "x"}', "projct"),
        (b'{"queryText": 7}', "is no RecallRequest"),
    ],
)
def test_what_is_no_message_is_refused(port: int, body: bytes, said: str) -> None:
    status, error = post(port, "ContextService/Recall", body)
    assert (status, error["code"]) == (400, "invalid_argument")
    assert said in error["message"]


def test_what_is_no_call_is_refused(port: int) -> None:
    assert post(port, "ContextService/Nothing", {})[0] == 404
    assert post(port, "MemoryService/WatchMemories", {})[0] == 501
    assert post(port, "ContextService/Recall", {}, Content_Type="application/x-www-form-urlencoded")[0] == 415
    assert post(port, "ContextService/Recall", {}, Content_Type="text/plain")[0] == 415
    assert post(port, "ContextService/Recall", {}, verb="GET")[0] == 405
    assert post(port, "ContextService/Recall", {}, verb="OPTIONS")[0] == 405


def test_pages_of_others_have_no_answer(port: int, project: str) -> None:
    """A name that resolves to this machine, and a page that comes from elsewhere."""
    body = {"project": project, "queryText": "x", "allowMissing": True}
    for host in (f"localhost:{port}", f"127.0.0.1:{port}", f"[::1]:{port}"):
        assert post(port, "ContextService/Recall", body, Host=host)[0] == 200
        assert post(port, "ContextService/Recall", body, Host=host, Origin=f"http://localhost:{port}")[0] == 200
    for host in (f"evil.example:{port}", "127.0.0.1", f"127.0.0.1:{port + 1}", f"127.0.0.1.evil.example:{port}", ""):
        assert post(port, "ContextService/Recall", body, Host=host)[0] in (400, 403)
    others = f"https://localhost:{port}", f"http://evil:{port}"
    for origin in ("https://evil.example", "null", "http://localhost", *others):
        assert post(port, "ContextService/Recall", body, Origin=origin)[0] == 403


def test_a_proxy_is_let_through_by_the_name_that_was_configured(service: Stubs, project: str) -> None:
    """The name works with its own port, without one, or with ours; a page of that name counts as one of its own too."""
    body = {"project": project, "queryText": "x", "allowMissing": True}
    with closing(json_http.JsonHttp("127.0.0.1", 0, also_named=("Memory.example.org",))) as served:
        served.start(parse_address(service.target))
        for host in ("memory.example.org", f"MEMORY.example.org:{served.port}", f"localhost:{served.port}"):
            assert post(served.port, "ContextService/Recall", body, Host=host)[0] == 200
        for host in ("example.org", "memory.example.org:1", f"evil.memory.example.org:{served.port}"):
            assert post(served.port, "ContextService/Recall", body, Host=host)[0] == 403


@pytest.mark.long
def test_a_deadline_and_sizes_are_kept(port: int, project: str) -> None:
    body = {"project": project, "memories": [{"content": "x"}]}
    assert post(port, "ContextService/Learn", body, Connect_Timeout_Ms="0")[0] == 504
    assert post(port, "ContextService/Learn", body, Connect_Timeout_Ms="soon")[0] == 400
    assert post(port, "ContextService/Learn", body, Connect_Timeout_Ms="30000")[0] == 200
    large = {"project": project, "queryText": "x" * (5 << 20)}
    status, error = post(port, "ContextService/Recall", large)
    assert (status, "4194304" in error["message"]) == (400, True)
    larger = json.dumps({"project": project, "queryText": "x" * (9 << 20)}).encode()
    assert post(port, "ContextService/Recall", larger)[0] == 413


READ_HEADERS = (
    "Host", "Origin", "Content-Type", "Authorization", "traceparent", "tracestate", "Connect-Timeout-Ms",
    "Content-Encoding", "Connection", "Upgrade", "X-Of-Nobody",
)  # fmt: skip
ODD_BYTES = (*range(0x20), 0x7F, 0x80, 0x85, 0xA0, 0xFF)


def sent_raw(port: int, *parts: bytes, hangs_up: bool = False) -> bytes:
    """Answer to these bytes, read until the connection is closed."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        for part in parts:
            connection.sendall(part)
        if hangs_up:
            connection.shutdown(socket.SHUT_WR)
        answer = b""
        with suppress(ConnectionResetError):
            while more := connection.recv(65536):
                answer += more
        return answer


def head(port: int, length: int, **headers: bytes) -> bytes:
    """The head of a request; in names of headers "_" stands for "-"."""
    all_headers = {"Host": b"127.0.0.1:%d" % port, "Content-Type": b"application/json", "Connection": b"close"} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    lines = [b"%s: %s\r\n" % (name.encode(), value) for name, value in all_headers.items()]
    start = b"POST /hummock.v1.AdminService/GetStatus HTTP/1.1\r\n"
    return b"%s%sContent-Length: %d\r\n\r\n" % (start, b"".join(lines), length)


@pytest.fixture
def silent(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Asserts that nothing is logged, whatever a stranger sends."""
    caplog.set_level("WARNING")
    with structlog.testing.capture_logs() as events:
        yield
    assert caplog.get_records("call") == []
    assert events == []


@pytest.mark.long
@pytest.mark.parametrize("name", READ_HEADERS)
def test_a_byte_that_no_header_has_is_the_callers_fault(port: int, silent: None, name: str) -> None:
    """This holds for every header, read or not: it is never a fault of the service's, never a line of its log."""
    for byte in ODD_BYTES:
        headers = {name: b"close, a%cb" % byte}
        status = sent_raw(port, head(port, 2, **headers) + b"{}").split()[1]
        if name in ("Authorization", "traceparent", "tracestate"):
            assert status in (b"400", b"401"), (name, byte)
        assert int(status) < 500, (name, byte)


@pytest.mark.parametrize(
    "parts",
    [
        (b"",),
        (b"POST",),
        (b"GET / HTTP/1.1\r\n", b"x" * 40_000),
        (b"\x16\x03\x01\x02\x00\x01\x00",),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",),
        ("HEAD", b'{"project": '),
        ("HEAD", b""),
        ("CHUNKS", b"zz\r\n"),
        ("CHUNKS", b"5\r\n{\r\n"),
    ],
)
def test_what_is_broken_off_or_no_request_leaves_no_line_in_the_log(
    port: int, silent: None, parts: tuple[bytes | str, ...]
) -> None:
    whole = head(port, 1000)
    heads = {"HEAD": whole, "CHUNKS": whole.replace(b"Content-Length: 1000", b"Transfer-Encoding: chunked")}
    answer = sent_raw(port, *(heads[part] if isinstance(part, str) else part for part in parts), hangs_up=True)
    assert not answer.startswith(b"HTTP/1.1 5")
    assert post(port, "AdminService/GetStatus", {})[0] == 200


@pytest.mark.long
def test_every_unary_method_is_there(port: int) -> None:
    """An empty request is refused by the method's own rules, or answered; it is unknown to none."""
    for service in SERVICES:
        for method in service.methods:
            status, answer = post(port, f"{service.name}/{method.name}", {})
            is_stream = method.client_streaming or method.server_streaming
            assert (status == 501) == is_stream, (method.name, answer)
            assert status in (200, 400, 501), (method.name, answer)


def test_other_machines_are_not_let_in() -> None:
    for host in ("::", "192.0.2.1", "example.org"):
        with pytest.raises(StartError):
            json_http.JsonHttp(host, 0)


def test_a_port_that_is_taken_is_named(port: int) -> None:
    with pytest.raises(StartError, match=str(port)):
        json_http.JsonHttp("127.0.0.1", port)


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_examples_of_the_page_work(port: int, service: Stubs) -> None:
    learn(service, "loan", note("x"))
    answers = []
    for example in re.findall(r"```sh\n(.*?)```", DOC.read_text("utf-8"), re.DOTALL):
        command = example.replace(":7422/", f":{port}/")
        done = subprocess.run(["sh", "-c", command], check=True, capture_output=True, timeout=30)
        answers.append(json.loads(done.stdout))
    learnt, found, counted, failed = answers
    assert learnt["results"][0]["status"] == "LEARN_STATUS_CREATED"
    assert found["hits"][0]["memory"]["metadata"] == {"env": "test"}
    assert counted["deletedCount"] == 1
    assert failed["code"] == "not_found"
