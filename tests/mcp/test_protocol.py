"""What the server says of itself, and to lines that are no messages: raw, as it stands on the pipe."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest
from mcp.types import INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR

from tests.mcp.conftest import HELLO

INITIALIZED: dict[str, object] = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def say(*lines: str | Mapping[str, object]) -> list[dict[str, Any]]:
    """What the server answers to these lines; its stdin ends when each has its answer, but for those that get none."""
    command = [sys.executable, "-m", "hummock", "mcp", "--project", "p", "--no-serve"]
    written = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    count = sum(line is not INITIALIZED and bool(text.strip()) for line, text in zip(lines, written, strict=True))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8") as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write("".join(f"{line}\n" for line in written))
        server.stdin.flush()
        answers = [server.stdout.readline() for _ in range(count)]
        server.stdin.close()
        answers += server.stdout.readlines()
    assert server.returncode == 0
    return [json.loads(line) for line in answers]


def test_what_is_not_there_is_not_advertised() -> None:
    (hello,) = say(HELLO)
    capabilities = hello["result"]["capabilities"]
    assert sorted(name for name, value in capabilities.items() if value is not None) == ["resources", "tools"]
    assert hello["result"]["serverInfo"]["name"] == "hummock"
    assert hello["result"]["instructions"].startswith("Hummock keeps what is known about this project")


def test_prompts_are_asked_for_in_vain() -> None:
    answers = say(HELLO, INITIALIZED, {"jsonrpc": "2.0", "id": 2, "method": "prompts/list"})
    # Answers come when they are ready.
    (refused,) = (each for each in answers if each["id"] == 2)
    assert refused["error"]["code"] == METHOD_NOT_FOUND


@pytest.mark.parametrize("line", ["{", "GET / HTTP/1.1", '{"jsonrpc": "2.0", "id": 7,'])
def test_a_line_that_is_no_json_is_a_parse_error_and_the_next_is_answered(line: str) -> None:
    error, hello = say(line, HELLO)
    assert (error["id"], error["error"]["code"]) == (None, PARSE_ERROR)
    assert hello["id"] == HELLO["id"]


def test_a_message_that_is_none_is_an_invalid_request_with_its_id_where_it_has_one() -> None:
    first, second, third, hello = say({"jsonrpc": "2.0", "id": 7}, {"id": "a", "method": "ping"}, "[]", HELLO)
    assert [each["error"]["code"] for each in (first, second, third)] == [INVALID_REQUEST] * 3
    assert [each["id"] for each in (first, second, third)] == [7, "a", None]
    assert hello["id"] == HELLO["id"]


def test_an_empty_line_is_passed_over() -> None:
    (hello,) = say("", HELLO, "  ")
    assert hello["id"] == HELLO["id"]


def test_the_first_answer_waits_for_nothing_that_only_a_call_needs() -> None:
    program = "import sys, hummock.mcp.serving, hummock.mcp.stdio; print([n for n in sys.argv[1:] if n in sys.modules])"
    unneeded = ["grpc", "google.protobuf", "hummock_client", "hummock.mcp.results", "hummock.config", "numpy"]
    done = subprocess.run([sys.executable, "-c", program, *unneeded], capture_output=True, encoding="utf-8", check=True)
    assert done.stdout == "[]\n"
