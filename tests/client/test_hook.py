"""The hook of coding agents: the binary and its Python twin, started as an agent starts them, over a real service."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bench import toy_models
from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import memory_pb2, memory_service_pb2, session_service_pb2
from hummock_tools.setup.agents import AGENTS
from tests.client.agent import LIMIT_S, TIME, TRIES, Agent
from tests.service.calls import hummock
from tests.service.running import Process, Stubs, connected, free_port, in_process

pytestmark = pytest.mark.long

_MODULE = Path(__file__).parents[2] / "clients/go"
_BUILD_LIMIT_S = 600
_PROMPTS, _LIVES = 1000, 5
_MODEL = "tiny"
_QUESTION, _ANSWER = (
    "还款日是哪天？ Which day is the repayment due?",
    "The repayment is due on the fifth, 每月五日还款。",
)


@pytest.fixture(autouse=True)
def http_port(monkeypatch: pytest.MonkeyPatch) -> int:
    """A free port on which services of a test answer over HTTP, and the Python hook calls them."""
    port = free_port()
    monkeypatch.setenv("HUMMOCK_HTTP_PORT", str(port))
    return port


@pytest.fixture(scope="module", params=["go", "python"])
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = tmp_path_factory.mktemp("hook") / "hummock-hook"
    if request.param == "python":
        built.write_text(f'#!/bin/sh\nexec "{sys.executable}" -P -m hummock_tools.hook\n', encoding="utf-8")
        built.chmod(0o755)
        return built
    go = request.getfixturevalue("go")
    command = [go, "build", "-trimpath", "-ldflags=-s -w", "-o", str(built), "./cmd/hummock-hook"]
    env = {**os.environ, "CGO_ENABLED": "0"}
    run = subprocess.run(command, cwd=_MODULE, env=env, capture_output=True, text=True, timeout=_BUILD_LIMIT_S)
    assert run.returncode == 0, run.stderr
    return built


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Process]:
    assert toy_models.build_tiny(tmp_path / "models").name == _MODEL
    with in_process(tmp_path / "service", tmp_path / "models", _MODEL) as process:
        yield process


@pytest.fixture
def agent(program: Path, service: Process, tmp_path: Path) -> Agent:
    return Agent(program=program, place=tmp_path, target=service.target, session="s")


_PINNED = memory_pb2.Memory(content="Indent with tabs, 用制表符缩进。", tags=["pinned"])


@pytest.mark.parametrize("is_first", [True, False], ids=["the hook first", "the import first"])
def test_a_turn_is_stored_by_the_hook_or_by_an_import(
    program: Path, service: Process, tmp_path: Path, is_first: bool
) -> None:
    agent = Agent(program=program, place=tmp_path, target=service.target, session="both")
    agent.ask(_QUESTION)
    agent.answer("Let me look.", _ANSWER)
    with connected(service.target) as stubs:
        if is_first:
            agent.fire("Stop", last_assistant_message=_ANSWER)
        else:
            # An event of no interest writes the transcript.
            agent.fire("Notification")
        file = str(tmp_path / "both.jsonl")
        result = hummock(stubs, "import", "--from", "claude-code", file, "--project", "shop", "--json")
        assert result.exit_code == 0, result.stderr
        outcome = json.loads(result.stdout)
        assert (outcome["elsewhere"], outcome["new"]) == ((2, 0) if is_first else (0, 2))
        if not is_first:
            agent.fire("Stop", last_assistant_message=_ANSWER)
        assert _messages(stubs, "both") == [_QUESTION, f"Let me look.\n\n{_ANSWER}"]
        assert len(_memories(stubs)) == 2


def test_an_agent_remembers_from_session_to_session(program: Path, service: Process, tmp_path: Path) -> None:
    first = Agent(program=program, place=tmp_path, target=service.target, session="first")
    with connected(service.target) as stubs:
        assert first.fire("SessionStart", source="startup") == ""
        _warm(first, stubs)
        assert first.ask(_QUESTION) == ""

        first.answer("Let me look.", _ANSWER)
        first.fire("Stop", last_assistant_message=_ANSWER)
        stored = _messages(stubs, "first")
        assert stored == [_QUESTION, f"Let me look.\n\n{_ANSWER}"]
        memories = _memories(stubs)
        assert {one.create_time.ToJsonString() for one in _listed(stubs)} == {TIME.replace(".000", "")}
        first.fire("Stop", last_assistant_message=_ANSWER)
        first.fire("PreCompact", trigger="auto")
        assert _messages(stubs, "first") == stored
        assert _memories(stubs) == memories

        assert first.ask("repayment due?") == "", "what was just said is in the model's context"
        second = Agent(program=program, place=tmp_path, target=service.target, session="second")
        assert "每月五日还款" in second.ask("On which day is the repayment due?")
        assert "每月五日还款" not in second.ask("repayment due, 还款日?")
        second.fire("SessionStart", source="compact")
        assert "每月五日还款" in second.ask("repayment due, 还款日?"), "a compaction empties the model's context"
        assert "tool-noise" not in json.dumps(_messages(stubs, "first"))


def test_a_turn_is_found_by_the_files_that_the_agent_changed(agent: Agent, service: Process, tmp_path: Path) -> None:
    shop = tmp_path / "shop"
    agent.ask(_QUESTION)
    agent.edit(Edit={"file_path": f"{shop}/src/pay.py"}, NotebookEdit={"notebook_path": f"{shop}/还款.ipynb"})
    agent.edit(Edit={"file_path": f"{shop}/src/pay.py"}, Write={"file_path": "/etc/hosts"}, Read={"file_path": "a.py"})
    agent.answer(_ANSWER)
    agent.fire("Stop", last_assistant_message=_ANSWER)
    agent.ask("And a receipt?")
    agent.answer("Receipts are sent by mail on the same day.")
    agent.fire("Stop")
    with connected(service.target) as stubs:
        assert _files(stubs) == [["src/pay.py", "还款.ipynb"]] * 2 + [[], []]
        asked = ("recall", "what did we change in src/pay.py?", "--project", "shop", "--path", "src/", "--json")
        result = hummock(stubs, *asked)
        assert result.exit_code == 0, result.stderr
        hits = json.loads(result.stdout)["hits"]
        assert {hit["memory"]["content"] for hit in hits} == {_QUESTION, _ANSWER}


_PATCH = "*** Begin Patch\n*** Update File: src/pay.py\n*** Move to: src/refund.py\n@@\n-a\n+b\n*** End Patch\n"


@pytest.mark.parametrize(
    ("event", "sent", "files"),
    [
        (
            "PostToolUse",
            {"tool_name": "apply_patch", "tool_input": {"command": _PATCH}},
            ["src/pay.py", "src/refund.py"],
        ),
        ("PostToolUse", {"tool_name": "Bash", "tool_input": {"command": _PATCH}}, []),
        ("AfterTool", {"tool_name": "write_file", "tool_input": {"file_path": "src/pay.py"}}, ["src/pay.py"]),
        ("AfterTool", {"tool_name": "replace", "tool_input": {"file_path": "../other/pay.py"}}, []),
        ("afterFileEdit", {"file_path": "./src/pay.py", "edits": []}, ["src/pay.py"]),
    ],
)
def test_an_event_of_a_changed_file_is_noted_for_its_turn(
    agent: Agent, service: Process, event: str, sent: dict[str, object], files: list[str]
) -> None:
    nowhere = {"transcript_path": None, "turn_id": "t1"}
    agent.fire("UserPromptSubmit", prompt=_QUESTION, **nowhere)
    for _ in range(2):
        assert agent.fire(event, **nowhere, **sent) == ""
    agent.fire("Stop", last_assistant_message=_ANSWER, **nowhere)
    with connected(service.target) as stubs:
        assert _files(stubs) == [files, files]


def test_copilot_gets_what_is_pinned_and_its_turns_are_stored(agent: Agent, service: Process, tmp_path: Path) -> None:
    agent.fire("Notification")  # an event of no interest, which makes the folder
    transcript = tmp_path / "events.jsonl"

    def fire(**fields: object) -> bytes:
        common = {"sessionId": "s", "timestamp": 1774281852263, "cwd": str(tmp_path / "shop")}
        return agent.start(json.dumps({**common, **fields}).encode()).stdout

    def write(who: str, text: str) -> None:
        with transcript.open("a", encoding="utf-8") as file:
            event = {"type": f"{who}.message", "id": f"e{file.tell()}", "data": {"content": text}}
            file.write(json.dumps(event) + "\n")

    with connected(service.target) as stubs:
        _tell(stubs, _PINNED)
        # On busy cores an answer may be late. It is given once.
        given = b"".join(fire(source="new") for _ in range(TRIES))
        assert "用制表符缩进" in json.loads(given)["additionalContext"]
        assert fire(prompt="How do we indent, with tabs?") == b""
        write("user", "How do we indent, with tabs?")
        stop = {"transcriptPath": str(transcript), "stopReason": "end_turn"}
        write("assistant", "Let me look.")
        write("assistant", "Tabs.")
        assert fire(**stop) == b""
        first = ["How do we indent, with tabs?", "Let me look.\n\nTabs."]
        assert _messages(stubs, "s") == first
        assert fire(prompt=_QUESTION) == b""
        write("user", _QUESTION)
        assert fire(**stop) == b""
        assert _messages(stubs, "s") == first
        write("assistant", _ANSWER)  # the agent stopped before this was in the transcript
        for _ in range(2):
            assert fire(reason="user_exit") == b""
        assert _messages(stubs, "s") == [*first, _QUESTION, _ANSWER]


def test_a_longer_answer_replaces_the_one_that_was_stored(agent: Agent, service: Process) -> None:
    agent.ask(_QUESTION)
    agent.answer("Let me look.")
    agent.fire("PreCompact", trigger="auto")
    with connected(service.target) as stubs:
        assert _messages(stubs, "s") == [_QUESTION, "Let me look."]
        agent.fire("Stop", last_assistant_message=_ANSWER)  # the transcript does not have it yet
        assert _messages(stubs, "s") == [_QUESTION, f"Let me look.\n\n{_ANSWER}"]


def test_a_turn_is_read_by_the_clock_of_the_machine(
    agent: Agent, service: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    for zone, offset in (("Asia/Kolkata", "+05:30"), ("America/Caracas", "-04:00"), ("UTC", "")):
        monkeypatch.setenv("TZ", zone)
        agent.ask(f"Where did we swim yesterday, in {zone}?")
        agent.answer(_ANSWER + zone)
        agent.fire("Stop", last_assistant_message=_ANSWER + zone)
        with connected(service.target) as stubs:
            stored = _listed(stubs, memory_pb2.MEMORY_VIEW_FULL)
        assert {one.time_zone for one in stored if zone in one.content} == {offset}


def test_pinned_memories_are_given_once(agent: Agent, service: Process) -> None:
    with connected(service.target) as stubs:
        _tell(stubs, _PINNED)
    assert "用制表符缩进" in agent.fire("SessionStart", source="startup")
    assert agent.fire("SessionStart", source="resume") == ""
    assert agent.ask("How do we indent, with tabs?") == ""


def test_an_agent_without_a_readable_transcript_is_remembered_too(agent: Agent, service: Process) -> None:
    nowhere = {"transcript_path": None, "turn_id": "t1"}
    agent.fire("UserPromptSubmit", prompt=_QUESTION, **nowhere)
    for _ in range(2):
        agent.fire("Stop", last_assistant_message=_ANSWER, **nowhere)
    with connected(service.target) as stubs:
        assert _messages(stubs, "s") == [_QUESTION, _ANSWER]


def test_what_is_private_is_neither_looked_up_nor_stored(agent: Agent, service: Process, tmp_path: Path) -> None:
    with connected(service.target) as stubs:
        _warm(agent, stubs)
        _tell(stubs, memory_pb2.Memory(content=_ANSWER))
        assert agent.ask(f"<private>{_QUESTION}</private>") == ""
        agent.answer("It is no. 1234.")
        agent.fire("Stop", last_assistant_message="It is no. 1234.")
        assert "每月五日还款" in agent.ask(f"{_QUESTION} <private>My pin is 1234.</private>")
        agent.answer("<private>No. 1234.</private> Which pin?")
        agent.fire("Stop", last_assistant_message="<private>No. 1234.</private> Which pin?")
        assert _messages(stubs, "s") == [_QUESTION, "Which pin?"]
    for file in (tmp_path / "state").rglob("*"):
        assert file.is_dir() or "1234" not in file.read_text(encoding="utf-8")


def test_each_subagent_starts_with_what_is_pinned_and_the_session_is_not_told_of_it(
    agent: Agent, service: Process
) -> None:
    with connected(service.target) as stubs:
        _tell(stubs, _PINNED)
    for each in ("a1", "a2"):
        assert "用制表符缩进" in agent.fire("SubagentStart", agent_id=each, agent_type="Explore")
    assert "用制表符缩进" in agent.fire("SessionStart", source="startup")
    assert agent.fire("SessionStart", source="resume") == ""
    assert "用制表符缩进" in agent.fire("SubagentStart", agent_id="a3", agent_type="Explore")


def test_what_a_subagent_found_is_the_agents_own_word(agent: Agent, service: Process, tmp_path: Path) -> None:
    line = {"type": "user", "uuid": "a", "isSidechain": True, "message": {"content": "Find the repayment day."}}
    own = tmp_path / "agent.jsonl"
    own.write_text(json.dumps(line), encoding="utf-8")
    found = {"agent_id": "a1", "agent_type": "Explore", "agent_transcript_path": str(own)}
    for _ in range(2):
        agent.fire("SubagentStop", last_assistant_message=_ANSWER, **found)
    with connected(service.target) as stubs:
        [stored] = _listed(stubs, memory_pb2.MEMORY_VIEW_FULL)
    assert stored.origin == memory_pb2.ORIGIN_AI_OUTPUT
    assert (stored.learning_record.question, stored.learning_record.answer) == ("Find the repayment day.", _ANSWER)


def test_an_agent_goes_on_while_the_service_is_away(agent: Agent, service: Process, tmp_path: Path) -> None:
    agent.ask(_QUESTION)
    service.kill()
    agent.answer(_ANSWER)
    events = {"SessionStart": {}, "UserPromptSubmit": {"prompt": _QUESTION}, "PreCompact": {}, "Stop": {}}
    for name, fields in events.items():
        assert agent.fire(name, **fields) == ""
    assert agent.log.count("failed: UNAVAILABLE") == len(events)
    assert "还款" not in agent.log

    agent.ask("Thank you, 谢谢!")
    agent.answer("不客气")
    with in_process(tmp_path / "service", tmp_path / "models", _MODEL) as again, connected(again.target) as stubs:
        agent.target = again.target
        agent.fire("Stop")
        assert _messages(stubs, "s") == [_QUESTION, _ANSWER, "Thank you, 谢谢!", "不客气"]


def test_a_thousand_prompts_pass_while_the_service_is_killed_and_started_again(
    program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert toy_models.build_tiny(tmp_path / "models").name == _MODEL
    agent = Agent(program=program, place=tmp_path, target="", session="s")
    for name in ("shop", "empty"):
        (tmp_path / name / ".git").mkdir(parents=True)
    given, took_s = 0, []
    with ThreadPoolExecutor(1) as beside:
        for life in range(_LIVES):
            with in_process(tmp_path / "service", tmp_path / "models", _MODEL) as service:
                agent.target = service.target
                with connected(service.target) as stubs:
                    _tell(stubs, memory_pb2.Memory(id="day", content=_ANSWER))
                for number in range(_PROMPTS // _LIVES):
                    if number == _PROMPTS // _LIVES // 2:
                        beside.submit(service.kill)
                    project = "shop" if number % 2 else "empty"
                    prompt = {
                        "hook_event_name": "UserPromptSubmit",
                        "prompt": _QUESTION,
                        "session_id": f"{life}-{number}",
                    }
                    began_s = time.monotonic()
                    # It ends with status 0, and says nothing on stderr.
                    run = agent.start(json.dumps({**prompt, "cwd": str(tmp_path / project)}).encode())
                    took_s.append(time.monotonic() - began_s)
                    assert not run.stdout or project == "shop"
                    if run.stdout:
                        assert "每月五日还款" in json.loads(run.stdout)["hookSpecificOutput"]["additionalContext"]
                        given += 1
    assert given > 0
    took_ms = sorted(1000 * each for each in took_s)
    with capsys.disabled():
        print(f"\n  {_PROMPTS} prompts, {given} with memories: p50 {took_ms[_PROMPTS // 2]:.0f} ms, ", end="")
        print(f"p99 {took_ms[_PROMPTS * 99 // 100]:.0f} ms, longest {took_ms[-1]:.0f} ms from start to end")


_MCP_CALL = """
import asyncio, sys
from mcp import Client, StdioServerParameters, stdio_client


async def main():
    server = StdioServerParameters(command=sys.executable, args=["-m", "hummock", "mcp", "--no-serve", *sys.argv[2:]])
    async with Client(stdio_client(server)) as client:
        print((await client.call_tool("search", {"query": sys.argv[1]})).content[0].text)


asyncio.run(main())
"""
_MCP_CALLS = 10


def test_a_new_process_that_asks_over_mcp_is_measured_beside(
    service: Process, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A hook that is a script with the SDK's client, which starts a server over stdio: it needs no program of ours."""
    with connected(service.target) as stubs:
        _tell(stubs, memory_pb2.Memory(content=_ANSWER))
    took_ms = []
    for _ in range(_MCP_CALLS):
        began_s = time.monotonic()
        words = [sys.executable, "-c", _MCP_CALL, _QUESTION, "--project", "shop", "--target", service.target]
        run = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT_S)
        took_ms.append(1000 * (time.monotonic() - began_s))
        assert "每月五日还款" in run.stdout, run.stderr
    took_ms.sort()
    with capsys.disabled():
        print(f"\n  {_MCP_CALLS} searches over MCP, a process each: p50 {took_ms[_MCP_CALLS // 2]:.0f} ms, ", end="")
        print(f"longest {took_ms[-1]:.0f} ms from start to end")


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"remember me",
        b"\xff\xfe\x00",
        b"null",
        b"[[]]",
        b'{"hook_event_name": 7}',
        b'{"hook_event_name": "UserPromptSubmit", "session_id": "s", "cwd": "/shop", "prompt": "cut',
        b'{"a":' * 200_000,
        b'{"hook_event_name": "Stop", "prompt": "' + b"x" * (17 << 20) + b'"}',
    ],
    ids=["empty", "text", "bytes", "null", "list", "number", "cut-off", "deep", "huge"],
)
def test_hostile_input_is_answered_with_nothing(program: Path, tmp_path: Path, sent: bytes) -> None:
    agent = Agent(program=program, place=tmp_path, target="127.0.0.1:1", session="s")
    assert agent.start(sent).stdout == b""


def test_the_settings_that_are_shown_name_events_that_the_hook_knows() -> None:
    page = (_MODULE.parents[1] / "docs/hooks.md").read_text(encoding="utf-8")
    source = (_MODULE / "cmd/hummock-hook/event.go").read_text(encoding="utf-8")
    known = set(re.findall(r'^\t"(\w+)": +\w+,$', source, re.MULTILINE))
    blocks = [json.loads(block) for block in re.findall(r"^```json\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)]
    wired = {name: each.hooks for name, each in AGENTS.items() if each.hooks}
    assert blocks == [{**each.start, "hooks": {key: [each.item] for key in each.events}} for each in wired.values()]
    # Copilot CLI does not name its events.
    assert {event for name, each in wired.items() if name != "copilot" for event in each.events} == known


def _tell(stubs: Stubs, memory: memory_pb2.Memory) -> None:
    stubs.context.Learn(context.LearnRequest(project="shop", memories=[memory]))


def _listed(
    stubs: Stubs, view: memory_pb2.MemoryView.ValueType = memory_pb2.MEMORY_VIEW_INDEX
) -> list[memory_pb2.Memory]:
    return list(stubs.memory.ListMemories(memory_service_pb2.ListMemoriesRequest(project="shop", view=view)).memories)


def _warm(agent: Agent, stubs: Stubs) -> None:
    """Has the service read the project, whose first recall may take longer than a prompt waits."""
    _tell(stubs, memory_pb2.Memory(id="x", content="灯塔"))
    agent.fire("SessionStart", source="startup")
    stubs.memory.DeleteMemories(memory_service_pb2.DeleteMemoriesRequest(project="shop", ids=["x"]))


def _messages(stubs: Stubs, session: str) -> list[str]:
    request = session_service_pb2.ListMessagesRequest(project="shop", session_id=session, page_size=100)
    return [one.content for one in stubs.session.ListMessages(request).messages]


def _files(stubs: Stubs) -> list[list[str]]:
    return [list(one.files) for one in _listed(stubs)]


def _memories(stubs: Stubs) -> list[str]:
    return [one.id for one in _listed(stubs)]
