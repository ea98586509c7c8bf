"""The Python twin of hummock-hook: the cases of the binary's own tests, and services that misbehave."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from hummock_tools.hook.calls import BadTarget, Service
from hummock_tools.hook.event import LARGEST_EVENT, BadEvent, Event
from hummock_tools.hook.session import Session
from hummock_tools.hook.state import Home, Record
from hummock_tools.hook.transcript import CUT_MARK, LARGEST_TAIL, Turn, cut, past_time, read_turns, with_end
from hummock_tools.private_text import without_private

CASES = json.loads(
    (Path(__file__).parents[2] / "clients/go/cmd/hummock-hook/testdata/cases.json").read_text(encoding="utf-8")
)
PROMPT = {"hook_event_name": "UserPromptSubmit", "session_id": "s", "cwd": "/w/shop", "prompt": "灯?"}


def named(cases: list[dict[str, Any]]) -> list[Any]:
    return [pytest.param(each, id=each.get("case") or each["name"]) for each in cases]


def written(place: Path, lines: list[str]) -> str:
    path = place / "transcript.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    return str(path)


def said(turns: list[Turn]) -> list[dict[str, str]]:
    return [{"id": each.id, "user": each.user, "agent": each.agent} for each in turns]


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("HUMMOCK_PROJECT", "HUMMOCK_TARGET", "HUMMOCK_TOKEN", "HUMMOCK_HTTP_PORT", "CLAUDE_PROJECT_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.mark.parametrize("case", named(CASES["events"]))
def test_an_event_is_read_whatever_the_agent_calls_its_fields(case: dict[str, Any]) -> None:
    fields = vars(Event(case["sent"].encode()))
    assert {name: value for name, value in fields.items() if value} == case["want"]


@pytest.mark.parametrize(
    "sent",
    [
        *(pytest.param(each["sent"].encode(), id=each["case"]) for each in CASES["refused"]),
        pytest.param(b"[" * 1_000_000, id="too deep"),
        pytest.param(b'{"x":' * 200_000 + b"1" + b"}" * 200_000, id="deep in a field"),
        pytest.param(b'{"prompt":"' + b"x" * LARGEST_EVENT + b'"}', id="too large"),
    ],
)
def test_what_is_no_event_is_refused(sent: bytes) -> None:
    with pytest.raises(BadEvent):
        Event(sent)


@pytest.mark.parametrize("case", named(CASES["replies"]))
def test_a_reply_has_the_form_of_the_event(case: dict[str, Any]) -> None:
    given = Event(json.dumps({"hook_event_name": case["name"]}).encode())
    assert json.loads(given.reply('a "b"\n还款')) == case["want"]


@pytest.mark.parametrize("case", named(CASES["private"]))
def test_what_is_private_is_taken_out(case: dict[str, str]) -> None:
    assert without_private(case["sent"]) == case["want"]


def test_many_tags_take_no_time() -> None:
    """A quadratic scan would not end within the run."""
    assert without_private("a" + "<private>" * 1_000_000) == "a"


@pytest.mark.parametrize("case", named(CASES["transcripts"]))
def test_turns_are_what_was_said_without_the_tools(case: dict[str, Any], tmp_path: Path) -> None:
    assert said(read_turns(written(tmp_path, case["lines"]), of_subagent=False)) == case["want"]


@pytest.mark.parametrize("case", named(CASES["changes"]))
def test_an_event_names_the_files_of_a_call_that_did_not_fail(case: dict[str, Any]) -> None:
    assert Event(case["sent"].encode()).files == case["want"]


@pytest.mark.parametrize("case", named(CASES["edits"]))
def test_a_turn_has_the_files_of_calls_that_did_not_fail(case: dict[str, Any], tmp_path: Path) -> None:
    assert [turn.files for turn in read_turns(written(tmp_path, case["lines"]), of_subagent=False)] == case["want"]


@pytest.mark.parametrize("case", named(CASES["times"]))
def test_a_turn_has_the_times_of_the_transcript(case: dict[str, Any], tmp_path: Path) -> None:
    lines = [
        {"type": "user", "uuid": "u", "timestamp": case["sent"], "message": {"content": "q"}},
        {"type": "assistant", "timestamp": case["sent"], "message": {"content": "a"}},
        {"type": "assistant", "timestamp": "2026-01-01T00:00:00Z", "message": {"content": "b"}},
    ]
    (turn,) = read_turns(written(tmp_path, [json.dumps(line) for line in lines]), of_subagent=False)
    now_s = datetime(2026, 3, 2, tzinfo=UTC).timestamp()
    wanted = datetime.fromisoformat(case["want"]) if case["want"] else None
    for text in (turn.user_time, turn.agent_time):
        at = past_time(text, now_s)
        assert (datetime.fromisoformat(at) if at else None) == wanted


@pytest.mark.parametrize("case", named(CASES["turns"]))
def test_turns_that_are_stored_already_are_not_stored_again(case: dict[str, Any], tmp_path: Path) -> None:
    given = Event(json.dumps(case["given"]).encode())
    given.transcript = written(tmp_path, case["lines"])
    record = Record()
    vars(record).update(case["record"])
    assert said(Session(Service(), "shop", given, record, 0.0).new_turns()) == case["want"]


def test_an_end_is_read_from_the_transcript_that_was_told_before(tmp_path: Path) -> None:
    case = next(each for each in CASES["transcripts"] if each["case"] == "Copilot CLI, two turns")
    record = Record()
    stopped = Event(json.dumps({"sessionId": "s", "stopReason": "end_turn", "transcriptPath": "t"}).encode())
    stopped.transcript = written(tmp_path, case["lines"][:2])
    assert said(Session(Service(), "shop", stopped, record, 0.0).new_turns()) == []
    written(tmp_path, case["lines"])
    record.prompts = 2
    ended = Event(json.dumps({"sessionId": "s", "reason": "user_exit"}).encode())
    assert said(Session(Service(), "shop", ended, record, 0.0).new_turns()) == case["want"]


def test_of_a_long_transcript_the_end_is_read(tmp_path: Path) -> None:
    asked, _, thanked, welcomed = CASES["turns"][0]["lines"]
    noise = '{"type":"attachment","text":"' + "x" * LARGEST_TAIL + '"}'
    turns = read_turns(written(tmp_path, [asked, noise, thanked, welcomed]), of_subagent=False)
    assert [each.id for each in turns] == ["u2"]


@pytest.mark.parametrize("path", ["", "/", "/dev/zero", "/nonexistent", "a\0b"])
def test_what_is_no_regular_file_has_no_turns(path: str) -> None:
    assert read_turns(path, of_subagent=False) == []


def test_a_long_text_is_cut_between_characters() -> None:
    long = "还款日" * 100
    short = cut(long, 100)
    assert len(short.encode()) <= 100
    assert short.startswith("还款日")
    assert short.endswith(CUT_MARK)
    assert cut(long, len(long.encode())) == long


@pytest.mark.parametrize(
    ("text", "last", "whole"),
    [("", "done", "done"), ("Look.", "done", "Look.\n\ndone"), ("Look.\n\ndone", "done", "Look.\n\ndone")],
)
def test_the_last_words_are_added_once(text: str, last: str, whole: str) -> None:
    assert with_end(text, last) == whole


def test_a_record_is_kept_and_a_damaged_one_is_empty() -> None:
    home, record = Home(), Record()
    record.show(["a", "还"])
    record.prompts, record.turn, record.prompt, record.transcript = 3, "t", "p", "/t"
    for _ in range(2):
        home.write("shop", "../../s", record)
    assert vars(home.read("shop", "../../s")) == vars(record)
    assert vars(home.read("other", "../../s")) == vars(Record())
    (file,) = (Path(os.environ["XDG_STATE_HOME"]) / "hummock/hook/sessions").iterdir()
    for text in ("", "{", '{"shown": 7}', '{"shown": [7]}', '{"turns": "1"}', "\0"):
        file.write_text(text, encoding="utf-8")
        assert vars(home.read("shop", "../../s")) == vars(Record())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HUMMOCK_TARGET", "example.org:7420"),
        ("HUMMOCK_HTTP_PORT", "x"),
        ("HUMMOCK_HTTP_PORT", "0"),
        ("HUMMOCK_TOKEN", "a b"),
    ],
)
def test_a_service_elsewhere_is_not_called(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(BadTarget):
        Service()


@pytest.mark.parametrize("target", ["", "127.0.0.1:7420", "localhost", "[::1]:7420", "unix:/run/hummock.sock"])
def test_a_service_on_this_machine_is_called(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUMMOCK_TARGET", target)
    Service()


@contextmanager
def odd_service(answer: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[int]:
    """The port of a service that answers as a test has it."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            answer(self)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server.server_port
        server.shutdown()


def send(handler: BaseHTTPRequestHandler, status: int, said: object) -> None:
    body = said if isinstance(said, bytes) else json.dumps(said).encode()
    handler.send_response(status)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def rendered(text: str) -> dict[str, Any]:
    return {"text": text, "memories": [{"memoryId": "m", "tier": "TIER_FULL"}]}


def run(port: int, sent: dict[str, Any], tmp_path: Path) -> tuple[bytes, str]:
    """What the hook prints, and the line that it logs."""
    command = [sys.executable, "-P", "-m", "hummock_tools.hook"]
    environ = {**os.environ, "HUMMOCK_HTTP_PORT": str(port)}
    done = subprocess.run(
        command, input=json.dumps(sent).encode(), env=environ, capture_output=True, timeout=60, check=True
    )
    assert done.stderr == b""
    return done.stdout, (tmp_path / "state/hummock/hook/hook.log").read_text(encoding="utf-8").splitlines()[-1]


UNAVAILABLE = {"code": "unavailable", "message": "the lamp is lit"}
DEGRADED = {"text": "## Project", "degraded": [{"reason": "DEGRADATION_REASON_DEADLINE", "message": "lamp"}]}


@pytest.mark.timed
@pytest.mark.parametrize(
    ("status", "reply", "logged"),
    [
        (503, UNAVAILABLE, "failed: UNAVAILABLE"),
        (404, {"code": "not_found", "details": [{"debug": {"reason": "NOT_HERE"}}]}, "failed: NOT_HERE"),
        (404, {"details": ["lamp"]}, "failed: AttributeError"),
        (200, b"lamp", "failed: UNKNOWN"),
        (200, [], "failed: UNKNOWN"),
        (200, DEGRADED, "nothing to show deadline"),
        (200, rendered("灯" * 10_001), "too long to show"),
        (200, {"text": "lamp", "memories": [{}]}, "nothing to show"),
    ],
    ids=["fails", "refuses", "odd", "no-json", "a-list", "nothing", "too-much", "no-tier"],
)  # fmt: skip
def test_a_prompt_goes_without_memory_whatever_the_service_says(
    status: int, reply: object, logged: str, tmp_path: Path
) -> None:
    with odd_service(lambda handler: send(handler, status, reply)) as port:
        printed, log = run(port, PROMPT, tmp_path)
    assert printed == b""
    # A late answer on busy cores says no more than that.
    assert log.endswith((logged, "failed: DEADLINE_EXCEEDED"))
    assert "lamp" not in log
    assert "灯" not in log


@pytest.mark.timed
def test_a_prompt_whose_agent_reads_no_reply_is_noted_and_not_looked_up(tmp_path: Path) -> None:
    called: list[str] = []

    def answer(handler: BaseHTTPRequestHandler) -> None:
        called.append(handler.path)
        send(handler, 200, rendered("lamp"))

    with odd_service(answer) as port:
        printed, log = run(port, {"sessionId": "s", "cwd": "/w/shop", "prompt": "灯?"}, tmp_path)
    assert (printed, called) == (b"", [])
    assert log.endswith("nothing to do")
    (file,) = (tmp_path / "state/hummock/hook/sessions").iterdir()
    known = json.loads(file.read_text(encoding="utf-8"))
    assert known == {"prompts": 1, "turn": "prompt-1", "prompt": "灯?"}


@pytest.mark.timed
def test_a_service_that_hangs_does_not_hold_a_prompt(tmp_path: Path) -> None:
    released = threading.Event()

    def hang(handler: BaseHTTPRequestHandler) -> None:
        released.wait(60)

    with odd_service(hang) as port:
        printed, log = run(port, PROMPT, tmp_path)
        released.set()
    assert (printed, log.endswith("failed: DEADLINE_EXCEEDED")) == (b"", True)


@pytest.mark.timed
def test_where_nothing_can_be_kept_an_event_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    command = [sys.executable, "-P", "-m", "hummock_tools.hook"]
    done = subprocess.run(command, input=json.dumps(PROMPT).encode(), capture_output=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == (b"", b"")


@pytest.mark.timed
def test_the_hook_needs_no_package_but_its_own() -> None:
    code = "import sys; import hummock_tools.hook.main; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, timeout=60, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert loaded - sys.stdlib_module_names <= {"__main__", "hummock_tools", "_distutils_hack", "sitecustomize"}
    assert not {"dataclasses", "inspect", "http", "email", "asyncio"} & loaded
