"""The server's description of itself, and its answers to lines that are no messages, raw on the pipe."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from mcp.types import INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR

from hummock_tools.mcp.serving import decode
from tests.mcp.conftest import HELLO

pytestmark = [pytest.mark.long, pytest.mark.timed]

COMMAND = [sys.executable, "-m", "hummock", "mcp", "--project", "p", "--no-serve"]
INITIALIZED: dict[str, object] = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def say(*lines: str | Mapping[str, object]) -> list[dict[str, Any]]:
    """The server's answers to these lines; stdin is closed when each that gets an answer has it."""
    written = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    count = sum(line is not INITIALIZED and bool(text.strip()) for line, text in zip(lines, written, strict=True))
    with subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8") as server:
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
    assert (error["id"], error["error"]["code"], hello["id"]) == (None, PARSE_ERROR, HELLO["id"])


def test_a_message_that_is_none_is_an_invalid_request_with_its_id_where_it_has_one() -> None:
    first, second, third, hello = say({"jsonrpc": "2.0", "id": 7}, {"id": "a", "method": "ping"}, "[]", HELLO)
    assert [each["error"]["code"] for each in (first, second, third)] == [INVALID_REQUEST] * 3
    assert [each["id"] for each in (first, second, third)] == [7, "a", None]
    assert hello["id"] == HELLO["id"]


DEEP = "[" * 300 + "]" * 300
DEEPEST = "[" * 100_000 + "]" * 100_000


ODD: tuple[tuple[str, list[object]], ...] = (
    ('[{"jsonrpc": "2.0", "id": 5, "method": "ping"}, {"jsonrpc": "2.0", "id": "b", "method": "ping"}]', [5, "b"]),
    ('[{"jsonrpc": "2.0", "method": "notifications/initialized"}, 3]', [None]),
    ('{"jsonrpc": "2.0", "id": null, "method": "ping"}', [None]),
    ('{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}', [None]),
    ('{"jsonrpc": "2.0", "id": 1e400, "method": "ping"}', [None]),
    ('{"jsonrpc": "2.0", "id": true, "method": "ping"}', [None]),
    ('{"jsonrpc": "2.0", "id": {"a": 1}, "method": "ping"}', [None]),
    (f'{{"jsonrpc": "2.0", "id": {"9" * 5000}, "method": "ping"}}', [None]),
    ('{"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": [1]}', [5]),
    ('{"jsonrpc": "2.0", "id": 5, "method": "tools/call"}', [5]),
    ('{"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": 7}}', [5]),
    ('{"jsonrpc": "2.0", "id": 5, "method": "nothing/such"}', [5]),
    ('{"jsonrpc": "2.0", "id": 5, "method": 7}', [5]),
    (f'{{"jsonrpc": "2.0", "id": 5, "method": "ping", "params": {{"a": {DEEP}}}}}', [5]),
    (f'{{"jsonrpc": "2.0", "id": 5, "method": "ping", "params": {{"a": {DEEPEST}}}}}', [5]),
    (f'{{"jsonrpc": "2.0", "method": "ping", "params": {{"id": 1, "a": {DEEPEST}}}, "id": "\\u0061"}}', ["a"]),
    (f'{{"jsonrpc": "2.0", "method": "id", "params": {{"id": 1, "a": {DEEPEST}}}, "id": 1.5}}', [None]),
    (f'{{"jsonrpc": "2.0", "method": "\\"id\\": 3,", "params": {{"id": 1, "a": {DEEPEST}}}}}', [None]),
    ("[" * 100_000, [None]),
    (f'{{"jsonrpc": "2.0", "id": 5, "method": "ping", "params": {{"a": {"9" * 5000}}}}}', [5]),
    (f'[{{"jsonrpc": "2.0", "id": 5, "method": "ping", "params": {{"a": -{"9" * 5000}}}}}]', [5]),
    ("null", [None]),
    ('"half \\ud83d"', [None]),
    # What asks for nothing has no answer.
    ('{"jsonrpc": "2.0", "method": "notifications/nothing"}', []),
    ('{"jsonrpc": "2.0", "method": "notifications/cancelled"}', []),
    ('{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1.5}}', []),
    ('{"jsonrpc": "2.0", "id": 99, "result": {}}', []),
)


def test_every_odd_line_gets_its_errors_and_the_next_is_answered() -> None:
    with running() as ask:
        for line, ids in ODD:
            *errors, bye = ask(line, len(ids))
            assert [each["id"] for each in errors] == ids, line
            assert all("error" in each for each in errors), line
            assert bye == {"jsonrpc": "2.0", "id": "bye", "result": {}}


def test_a_long_line_and_bytes_that_are_no_utf8_are_calls_like_others() -> None:
    long = f'{{"jsonrpc": "2.0", "id": 5, "method": "ping", "params": {{"text": "{"长" * 1_000_000}"}}}}'
    broken = b'{"jsonrpc": "2.0", "id": 5, "method": "ping", "params": {"text": "\xff\xed\xa0\xbd"}}'
    marked = b"\xef\xbb\xbf" + b'{"jsonrpc": "2.0", "id": 5, "method": "ping"}'
    with running() as ask:
        for line in (long.encode(), broken, marked):
            assert {each["id"] for each in ask(line, 1) if "result" in each} == {5, "bye"}


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        ("a\\ud83d", "a\\ufffd"),
        ("\\uDC00\\uD83D", "\\ufffd\\ufffd"),
        ("\\ud83d\\ud83d\\ude00", "\\ufffd\\ud83d\\ude00"),
        ("\\uD83D\\uDE00", "\\uD83D\\uDE00"),
        ("\\\\ud83d", "\\\\ud83d"),
        ("\\\\\\ud83d", "\\\\\\ufffd"),
        ("\\ud83d\\n\\u0041\\ud7ff\\ue000", "\\ufffd\\n\\u0041\\ud7ff\\ue000"),
    ],
)
def test_half_a_character_that_is_escaped_becomes_one_that_stands_for_it(sent: str, read: str) -> None:
    assert decode(sent.encode()) == read


def test_half_a_character_in_any_argument_is_answered_with_the_id(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUMMOCK_TARGET", target)
    calls: tuple[tuple[str, dict[str, object]], ...] = (
        ("search", {"query": "HALF"}),
        ("search", {"query": "x", "type": "HALF"}),
        ("search", {"query": "x", "topK": "HALF"}),
        ("read_memory", {"id": "HALF"}),
        ("recall_context", {"task": "HALF"}),
        ("remember", {"text": "a HALF", "title": "HALF", "tags": ["HALF"]}),
        ("forget", {"ids": ["HALF"]}),
        ("remember", {"text": "x", "HALF": 1}),
        ("HALF", {"text": "x"}),
    )
    with running() as ask:
        for tool, arguments in calls:
            params = {"name": tool, "arguments": arguments}
            line = json.dumps({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params})
            answers = ask(line.replace("HALF", "\\ud83d"), 1)
            assert sorted(str(each["id"]) for each in answers) == ["5", "bye"]
            assert "went wrong inside" not in json.dumps(answers)


@contextmanager
def running() -> Iterator[Callable[[str | bytes, int], list[dict[str, Any]]]]:
    """A server of its own: gives so many answers to a line, and that to the `ping` after it; more would fail."""
    with subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        stdin, stdout = server.stdin, server.stdout

        def ask(line: str | bytes, count: int) -> list[dict[str, Any]]:
            sent = line.encode() if isinstance(line, str) else line
            stdin.write(sent + b'\n{"jsonrpc": "2.0", "id": "bye", "method": "ping"}\n')
            stdin.flush()
            return [json.loads(stdout.readline()) for _ in range(count + 1)]

        assert len(ask(json.dumps(HELLO), 1)) == 2
        yield ask
        stdin.close()
        assert stdout.read() == b""
    assert server.returncode == 0


def test_an_empty_line_is_passed_over() -> None:
    (hello,) = say("", HELLO, "  ")
    assert hello["id"] == HELLO["id"]


def test_the_first_answer_waits_for_nothing_that_only_a_call_needs() -> None:
    imported = "import sys, hummock_tools.mcp.serving, hummock_tools.mcp.serving"
    program = f"{imported}; print([name for name in sys.argv[1:] if name in sys.modules])"
    unneeded = ["grpc", "google.protobuf", "hummock_client", "hummock_tools.mcp.results", "hummock.config", "numpy"]
    done = subprocess.run([sys.executable, "-c", program, *unneeded], capture_output=True, encoding="utf-8", check=True)
    assert done.stdout == "[]\n"
