"""What GitHub Copilot keeps, as memories: the events of its command line, and the chats of VS Code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummock_tools.importing import copilot
from hummock_tools.importing.sources import Source, check_kind, kind_of
from tests.importing.made import (
    FOLDER,
    SESSION,
    copilot_header,
    moment,
    vscode_chat,
    vscode_request,
    vscode_workspace,
    write_lines,
)
from tests.importing.made import copilot as event
from tests.importing.test_readers import found, left_out, said, wrong

TOOL = {"kind": "toolInvocationSerialized", "toolId": "read_file"}
TWO_TURNS = [
    ("user", "one?", "request-1:user"),
    ("assistant", "One.", "request-1:agent"),
    ("user", "two?", "request-2:user"),
    ("assistant", "Two.", "request-2:agent"),
]


def test_a_turn_of_copilot_cli_is_named_as_the_hook_names_it(tmp_path: Path) -> None:
    lines = [
        copilot_header(),
        event(1, "system.message", {"content": "You are Copilot."}),
        event(2, "user.message", {"content": "还款?", "transformedContent": "<current_datetime>x</current_datetime>"}),
        event(3, "assistant.message", {"content": "", "toolRequests": [{"name": "view"}]}),
        event(4, "tool.execution_start", {"toolName": "view"}),
        event(5, "tool.execution_complete", {"result": {"content": "x"}}),
        event(6, "assistant.message", {"content": "I look."}),
        event(7, "assistant.message", {"content": "found by another"}, agentId="sub"),
        event(8, "user.message", {"content": "text of a skill", "source": "skill-x"}),
        event(9, "assistant.message", {"content": "Three ways."}),
        event(10, "session.shutdown", {}),
        event(11, "of.tomorrow", {}),
        "{half",
    ]
    path = write_lines(tmp_path / "session-state" / SESSION / "events.jsonl", lines)
    parts = list(copilot.read(tmp_path / "session-state"))
    assert said(parts) == [("user", "还款?", "event-2:user"), ("assistant", "I look.\n\nThree ways.", "event-2:agent")]
    times = [one.memory.create_time.ToJsonString() for one in found(parts)]
    assert times == [moment(number).replace(".000", "") for number in (2, 6)]
    assert {(one.folder, one.memory.session_id) for one in found(parts)} == {(FOLDER, SESSION)}
    assert left_out(parts) == {
        "what hooks and the tool injected": 2,
        "tool calls": 1,
        "tool output": 1,
        "transcripts of subagents": 1,
        "bookkeeping": 2,
        "lines of unknown kinds": 1,
    }
    assert wrong(parts) == ["no JSON"]
    assert parts == list(copilot.read(path))


def test_a_chat_of_vs_code_is_read_without_what_tools_did(tmp_path: Path) -> None:
    reference = {"kind": "inlineReference", "inlineReference": {"path": "/home/me/work/shop/src/dates.py"}}
    chat = vscode_chat(
        vscode_request(
            1,
            "one?",
            {"kind": "thinking", "value": "hm"},
            "I look at ",
            reference,
            ".",
            TOOL,
            {"kind": "markdownVuln", "content": {"value": "One."}},
        ),
        vscode_request(2, "undone?", "Gone.", shouldBeRemovedOnSend={"requestId": "request-2"}),
        vscode_request(3, "three?", message="three?", requestId=""),
        "no object",
        customTitle="Dates",
    )
    place = vscode_workspace(tmp_path / "User")
    (place / "a.json").write_text(json.dumps(chat), encoding="utf-8")
    parts = list(copilot.read(tmp_path / "User"))
    assert said(parts) == [
        ("user", "one?", "request-1:user"),
        ("assistant", "I look at dates.py.\n\nOne.", "request-1:agent"),
        ("user", "three?", f"{SESSION}-3:user"),
    ]
    assert {(one.folder, one.memory.session_id, one.title) for one in found(parts)} == {(FOLDER, SESSION, "Dates")}
    times = [one.memory.create_time.ToJsonString() for one in found(parts)]
    assert times == ["2026-03-01T00:01:00Z", "2026-03-01T00:01:30Z", "2026-03-01T00:03:00Z"]
    assert left_out(parts) == {"thoughts": 1, "tool calls": 1, "turns that were undone": 1}
    assert wrong(parts) == ["no JSON object"]


LOGS: dict[str, list[Any]] = {
    "whole": [{"kind": 0, "v": vscode_chat(vscode_request(1, "one?", "One."), vscode_request(2, "two?", "Two."))}],
    "a turn is pushed": [
        {"kind": 0, "v": vscode_chat(vscode_request(1, "one?", "One."))},
        {"kind": 2, "k": ["requests"], "v": [vscode_request(2, "two?", "Two.")]},
    ],
    "an answer grows": [
        {"kind": 0, "v": vscode_chat(vscode_request(1, "one?", "One."), vscode_request(2, "two?", "Tw"))},
        {"kind": 2, "k": ["requests", 1, "response"], "v": [{"value": "Two."}], "i": 0},
    ],
    "what follows is taken back": [
        {"kind": 0, "v": vscode_chat(*(vscode_request(at, "other?", "Other.") for at in (8, 9)))},
        {
            "kind": 2,
            "k": ["requests"],
            "v": [vscode_request(1, "one?", "One."), vscode_request(2, "two?", "Two.")],
            "i": 0,
        },
    ],
    "fields are set and deleted": [
        {"kind": 0, "v": vscode_chat(vscode_request(1, "one?"), vscode_request(2, "two?", "Two.", isHidden=True))},
        {"kind": 1, "k": ["requests", 0, "response"], "v": [{"value": "One."}]},
        {"kind": 3, "k": ["requests", 1, "isHidden"]},
    ],
    "it begins anew": [
        {"kind": 0, "v": vscode_chat(vscode_request(9, "other?"))},
        {"kind": 0, "v": vscode_chat(vscode_request(1, "one?", "One."), vscode_request(2, "two?", "Two."))},
    ],
    "paths lead nowhere": [
        {"kind": 0, "v": vscode_chat(vscode_request(1, "one?", "One."), vscode_request(2, "two?", "Two."))},
        {"kind": 1, "k": ["requests", 7, "response"], "v": []},
        {"kind": 2, "k": ["inputState", "attachments", 3], "v": [1]},
        {"kind": 3, "k": [0]},
    ],
    "the last line is half written": [
        {"kind": 0, "v": vscode_chat(vscode_request(1, "one?", "One."), vscode_request(2, "two?", "Two."))},
        '{"kind":1,"k":["requests",0',
    ],
}


@pytest.mark.parametrize("lines", LOGS.values(), ids=LOGS.keys())
def test_a_log_of_changes_says_what_the_chat_is_now(tmp_path: Path, lines: list[Any]) -> None:
    place = vscode_workspace(tmp_path / "User")
    path = write_lines(place / "a.jsonl", lines)
    # An older version of VS Code left the chat as it was then.
    (place / "a.json").write_text(json.dumps(vscode_chat(vscode_request(1, "one?", "On"))), encoding="utf-8")
    assert said(copilot.read(tmp_path / "User")) == TWO_TURNS
    assert said(copilot.read(path)) == TWO_TURNS


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no JSON"),
        ("[1]", "it has no requests"),
        ('{"requests": {}}', "it has no requests"),
        ("[" * 9999, "no JSON"),
    ],
)
def test_what_is_no_chat_is_wrong(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "a.json").write_text(text, encoding="utf-8")
    (said_wrong,) = wrong(copilot.read(tmp_path / "a.json"))
    assert reason in said_wrong


def test_only_chats_are_read_of_a_folder(tmp_path: Path) -> None:
    place = vscode_workspace(tmp_path / "User")
    chat = json.dumps(vscode_chat(vscode_request(1, "one?", "One.")))
    outside = tmp_path / "outside.json"
    for path in (outside, tmp_path / "User" / "settings.json", place.parent / "state.jsonl"):
        path.write_text(chat, encoding="utf-8")
    (place / "link.json").symlink_to(outside)
    assert list(copilot.read(tmp_path / "User")) == []


def test_the_folder_of_vs_code_is_not_taken_for_cursors(tmp_path: Path) -> None:
    place = vscode_workspace(tmp_path / "User")
    write_lines(place / "a.jsonl", LOGS["whole"])
    assert kind_of(tmp_path / "User") is Source.COPILOT
    check_kind(tmp_path / "User", Source.COPILOT)


JSON = st.recursive(
    st.none() | st.integers(-1, 3) | st.text(max_size=3) | st.sampled_from(["requests", "response", "v"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["kind", "k", "v", "i", "requests", "response", "message", "text", "value"]), inner
        )
    ),
    max_leaves=20,
)


@given(st.lists(st.fixed_dictionaries({"kind": st.integers(0, 4), "k": JSON, "v": JSON, "i": JSON}), max_size=6))
def test_no_log_whatever_it_holds_ends_the_reader(tmp_path_factory: pytest.TempPathFactory, lines: list[Any]) -> None:
    first = {"kind": 0, "v": vscode_chat(vscode_request(1, "one?", "One."))}
    path = write_lines(tmp_path_factory.mktemp("any") / "a.jsonl", [first, *lines])
    assert all(one.memory.content.encode() for one in found(copilot.read(path)))
