"""Each tool's files as memories: what is said, what is left out, what is wrong."""

from __future__ import annotations

import json
import tracemalloc
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummock_client.v1 import memory_pb2 as pb
from hummock_tools.importing import claude_code, codex, copilot, databases, formats
from hummock_tools.importing.conversations import Finding, Found, LeftOut, Wrong
from hummock_tools.importing.databases import NotRead
from hummock_tools.importing.sources import Source, check_kind, kind_of
from tests.importing import made
from tests.importing.made import FOLDER, SESSION, claude, claude_turn, codex_header, codex_message, moment, write_lines

ENVIRONMENT = "<environment_context>\n<cwd>/x</cwd>\n</environment_context>"


def found(parts: Iterable[Finding]) -> list[Found]:
    return [part for part in parts if isinstance(part, Found)]


def said(parts: Iterable[Finding]) -> list[tuple[str, str, str]]:
    """Speaker, text and message of each memory."""
    return [(one.memory.speaker, one.memory.content, one.message_id) for one in found(parts)]


def left_out(parts: Iterable[Finding]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for part in parts:
        if isinstance(part, LeftOut):
            counts[part.reason] += part.count
    return counts


def wrong(parts: Iterable[Finding]) -> list[str]:
    return [part.reason for part in parts if isinstance(part, Wrong)]


def test_a_turn_of_claude_code_is_a_question_and_all_that_was_answered(tmp_path: Path) -> None:
    lines = [
        claude("user", 1, "还款?"),
        claude("assistant", 2, [{"type": "text", "text": "I look."}]),
        claude("user", 3, [{"type": "tool_result", "content": "x"}]),
        claude("assistant", 4, [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Three ways."}]),
        claude("user", 5, [{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}]),
    ]
    parts = list(claude_code.read(write_lines(tmp_path / "x.jsonl", lines)))
    assert said(parts) == [
        ("user", "还款?", "user-1:user"),
        ("assistant", "I look.\n\nThree ways.", "user-1:agent"),
        ("user", "a\n\nb", "user-5:user"),
    ]
    times = [one.memory.create_time.ToJsonString() for one in found(parts)]
    assert times == [moment(number).replace(".000", "") for number in (1, 2, 5)]
    assert {(one.folder, one.memory.session_id) for one in found(parts)} == {(FOLDER, SESSION)}
    kept = {(one.memory.id, one.memory.metadata["imported_from"]) for one in found(parts)}
    assert ("claude-code:user-1:agent", "claude-code") in kept


def queued(number: int, prompt: str, **more: Any) -> dict[str, Any]:
    """A line of Claude Code with what came while the model worked."""
    attachment = {"type": "queued_command", "prompt": prompt, "commandMode": "prompt", **more}
    return claude("attachment", number, "", attachment=attachment)


def test_what_is_typed_while_claude_code_works_is_a_question_of_its_own(tmp_path: Path) -> None:
    first, _, _, last = claude_turn(1, "one?", "One.")
    lines = [first, queued(2, "and two?", origin={"kind": "human"}), last, *claude_turn(3, "three?", "Three.")]
    parts = claude_code.read(write_lines(tmp_path / "x.jsonl", lines))
    assert said(parts) == [
        ("user", "one?", "user-1:user"),
        ("assistant", "One.", "user-1:agent"),
        ("user", "and two?", "attachment-2:user"),
        ("user", "three?", "user-3:user"),
        ("assistant", "Three.", "user-3:agent"),
    ]


UNSAID = {
    "meta": claude("user", 1, "x", isMeta=True),
    "a summary of a compaction": claude("user", 1, "This session is being continued", isCompactSummary=True),
    "a subagent": claude("user", 1, "x", isSidechain=True),
    "an error of the API": claude("assistant", 1, [{"type": "text", "text": "529"}], isApiErrorMessage=True),
    "the tool's own answer": claude("assistant", 1, [], message={"model": "<synthetic>", "content": "No response"}),
    "a hook's context": {"type": "attachment", "sessionId": SESSION, "attachment": {"content": ["x"]}},
    "a notice in the queue": queued(1, "<task-notification>done</task-notification>"),
    "a task in the queue": queued(1, "done", origin={"kind": "task-notification"}),
    "another session": claude("user", 1, "Hold the deploy.", origin={"kind": "peer"}),
    "a tool's result": claude("user", 1, [{"type": "tool_result", "content": "x"}]),
    "an answer without a question": claude("assistant", 1, "x"),
    "half a character": claude("user", 1, "\ud800"),
    "a line of tomorrow": {"type": "tomorrow", "sessionId": SESSION},
}  # fmt: skip # a table


@pytest.mark.parametrize("case", UNSAID)
def test_what_nobody_said_to_claude_code_is_left_out(tmp_path: Path, case: str) -> None:
    line = json.dumps(UNSAID[case])
    parts = list(claude_code.read(write_lines(tmp_path / "x.jsonl", [line])))
    assert (found(parts), left_out(parts).total(), wrong(parts)) == ([], 1, [])


def test_what_is_private_is_left_out_and_its_answer_with_it(tmp_path: Path) -> None:
    lines = [
        *claude_turn(1, "which day? <private>my pin is 1234</private>", "The fifth. <private>1234</private>"),
        *claude_turn(2, "<private>is my pin 1234?</private>", "1234 it is."),
        claude("user", 3, "thanks"),
        queued(4, "<private>1234</private>", origin={"kind": "human"}),
        claude("assistant", 5, [{"type": "text", "text": "<private>1234</private>"}]),
    ]
    parts = list(claude_code.read(write_lines(tmp_path / "x.jsonl", lines)))
    assert said(parts) == [
        ("user", "which day?", "user-1:user"),
        ("assistant", "The fifth.", "user-1:agent"),
        ("user", "thanks", "user-3:user"),
    ]
    assert left_out(parts)["what is private"] == 3
    assert left_out(parts)["answers without a question"] == 1


def test_transcripts_of_subagents_and_links_are_not_read(tmp_path: Path) -> None:
    projects = tmp_path / "projects"
    write_lines(projects / "-a" / "s.jsonl", claude_turn(1, "one?", "One."))
    write_lines(projects / "-a" / "s" / "subagents" / "agent-1.jsonl", claude_turn(2, "two?", "Two."))
    outside = write_lines(tmp_path / "outside.jsonl", claude_turn(3, "three?", "Three."))
    (projects / "-a" / "link.jsonl").symlink_to(outside)
    parts = list(claude_code.read(projects))
    assert [text for _, text, _ in said(parts)] == ["one?", "One."]
    assert left_out(parts)["transcripts of subagents"] == 1


def test_a_resumed_session_is_called_as_its_file(tmp_path: Path) -> None:
    name = "99999999-2222-4333-8444-555555555555"
    parts = claude_code.read(write_lines(tmp_path / f"{name}.jsonl", claude_turn(1, "one?", "One.")))
    assert {one.memory.session_id for one in found(parts)} == {name}


def test_a_turn_of_codex_has_the_id_that_codex_gives_it(tmp_path: Path) -> None:
    lines = [
        codex_header(),
        codex_message(0, "developer", "be brief"),
        codex_message(0, "user", "# AGENTS.md instructions for /x\n<INSTRUCTIONS>\nx</INSTRUCTIONS>", ENVIRONMENT),
        made.codex(1, "turn_context", turn_id="turn-a", cwd="/elsewhere"),
        codex_message(1, "user", "one?"),
        made.codex(1, "event_msg", type="user_message", message="one?"),
        made.codex(2, "response_item", type="reasoning", summary=[]),
        made.codex(2, "response_item", type="function_call", name="shell"),
        made.codex(2, "response_item", type="function_call_output", output="x"),
        codex_message(3, "assistant", "One."),
        codex_message(4, "user", "and?"),
        codex_message(5, "assistant", "More."),
    ]
    parts = list(codex.read(write_lines(tmp_path / "2026/03/01/rollout-x.jsonl", lines)))
    assert said(parts) == [
        ("user", "one?", "turn-a:user"),
        ("assistant", "One.", "turn-a:agent"),
        ("user", "and?", "turn-a-2:user"),
        ("assistant", "More.", "turn-a-2:agent"),
    ]
    assert {(one.folder, one.memory.session_id) for one in found(parts)} == {(FOLDER, SESSION)}
    expected = {"thoughts": 1, "tool calls": 1, "tool output": 1, "bookkeeping": 1}
    assert left_out(parts) == {**expected, "what hooks and the tool injected": 2}


def test_both_sides_name_the_files_that_tools_changed_below_the_root(tmp_path: Path) -> None:
    edits = [f"{made.FOLDER}/src/pay.py", "src/pay.py", "/etc/hosts", "../other.py"]
    calls = [{"type": "tool_use", "name": "Edit", "input": {"file_path": path}} for path in edits]
    read = [{"type": "tool_use", "name": "Read", "input": {"file_path": "a.py"}}, {"type": "tool_use", "name": "Edit"}]
    lines = made.claude_turn(1, "Round it?", "It is rounded.")
    lines.insert(1, made.claude("assistant", 1, [*calls, *read]))
    other = made.claude_turn(2, "And?", "Nothing.")
    parts = list(claude_code.read(write_lines(tmp_path / "s.jsonl", [*lines, *other])))
    assert [list(one.memory.files) for one in parts if isinstance(one, Found)] == [["src/pay.py"]] * 2 + [[], []]

    patch = "*** Begin Patch\n*** Add File: src/还款.py\n+a\n*** Delete File: old.py\n*** End Patch"
    rollout = [
        made.codex_header(),
        made.codex_message(1, "user", "Move it"),
        made.codex(1, "response_item", type="custom_tool_call", name="apply_patch", input=patch),
        made.codex(1, "response_item", type="custom_tool_call", name="other", input=patch),
        made.codex_message(1, "assistant", "It is moved."),
    ]
    parts = list(codex.read(write_lines(tmp_path / "r.jsonl", rollout)))
    assert [list(one.memory.files) for one in parts if isinstance(one, Found)] == [["src/还款.py", "old.py"]] * 2


def test_files_of_a_call_that_failed_or_was_refused_are_left_out(tmp_path: Path) -> None:
    names = ("a.py", "b.py", "c.py")
    calls = [{"type": "tool_use", "id": name, "name": "Write", "input": {"file_path": name}} for name in names]
    results = [
        {"type": "tool_result", "tool_use_id": "a.py", "content": "The tool use was rejected.", "is_error": True},
        {"type": "tool_result", "tool_use_id": "b.py", "content": "done", "is_error": False},
    ]
    lines = made.claude_turn(1, "Round it?", "It is rounded.")
    lines[1:1] = [made.claude("assistant", 1, calls), made.claude("user", 1, results, uuid="results")]
    parts = list(claude_code.read(write_lines(tmp_path / "s.jsonl", lines)))
    assert [list(one.memory.files) for one in parts if isinstance(one, Found)] == [["b.py", "c.py"]] * 2


@pytest.mark.parametrize(
    ("output", "is_done"),
    [
        ("Success. Updated the following files:\nM a.py\n", True),
        ("Exit code: 0\nWall time: 0.1 seconds\nOutput:\nSuccess. Updated the following files:\nM a.py", True),
        ("Exit code: 1\nWall time: 0.1 seconds\nOutput:\nFailed to write file\n", False),
        ('{"output":"Success. Updated the following files:\\nM a.py\\n","metadata":{"exit_code":0}}', True),
        ('{"output":"Failed.","metadata":{"exit_code":1,"duration_seconds":0.0}}', False),
        ('{"output":"Failed."}', True),
        ("apply_patch verification failed: Failed to find expected lines in a.py", False),
        ("patch rejected by user", False),
        ("aborted by user after 3.1s", False),
        ([{"type": "input_text", "text": "aborted by user after 3.1s"}], False),
        ({"content": "patch rejected by user", "success": False}, False),
        ({"content": "done", "success": True}, True),
        (None, True),
    ],
)
def test_a_patch_of_codex_that_failed_has_changed_no_file(tmp_path: Path, output: object, is_done: bool) -> None:
    patch = "*** Begin Patch\n*** Update File: a.py\n@@\n-a\n+b\n*** End Patch"
    rollout = [
        made.codex_header(),
        made.codex_message(1, "user", "Round it"),
        made.codex(1, "response_item", type="custom_tool_call", call_id="p", name="apply_patch", input=patch),
        made.codex(1, "response_item", type="custom_tool_call_output", call_id="p", output=output),
        made.codex_message(1, "assistant", "It is rounded."),
    ]
    parts = list(codex.read(write_lines(tmp_path / "r.jsonl", rollout)))
    assert [list(one.memory.files) for one in parts if isinstance(one, Found)] == [["a.py"] if is_done else []] * 2


def test_a_rollout_without_envelopes_is_read_too(tmp_path: Path) -> None:
    lines = [
        {"id": SESSION, "timestamp": moment(7), "instructions": None},
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "one?"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "One."}]},
    ]
    parts = list(codex.read(write_lines(tmp_path / "rollout-x.jsonl", lines)))
    assert [text for _, text, _ in said(parts)] == ["one?", "One."]
    (user, _) = found(parts)
    assert (user.message_id, user.folder) == (f"{SESSION}-1:user", "")
    assert user.memory.create_time.ToJsonString() == moment(7).replace(".000", "")


def test_a_rollout_of_a_subagent_is_left_out(tmp_path: Path) -> None:
    lines = [codex_header(source={"subagent": "review"}), codex_message(1, "user", "one?")]
    parts = list(codex.read(write_lines(tmp_path / "rollout-x.jsonl", lines)))
    assert (found(parts), left_out(parts)["transcripts of subagents"]) == ([], 1)


@pytest.mark.parametrize("with_headers", [True, False])
def test_chats_of_cursor_are_read_in_their_order(tmp_path: Path, with_headers: bool) -> None:
    chat: list[dict[str, Any] | str] = [
        {"type": 1, "text": "one?", "createdAt": moment(1)},
        {"type": 2, "text": "", "thinking": {"text": "hm"}},
        {"type": 2, "text": "", "toolFormerData": {"name": "read_file_v2", "result": "x"}},
        {"type": 2, "text": "One.", "createdAt": moment(2)},
        "{half",
        {"type": 9, "text": "x"},
        {"type": 1, "text": "two?"},
    ]
    path = made.write_cursor(tmp_path / "state.vscdb", {"c": chat, "sub": []}, with_headers=with_headers)
    parts = list(databases.read_cursor(path))
    assert said(parts) == [
        ("user", "one?", "c-b0:user"),
        ("assistant", "One.", "c-b0:agent"),
        ("user", "two?", "c-b6:user"),
    ]
    assert {(one.folder, one.memory.session_id) for one in found(parts)} == {(FOLDER, "c")}
    assert {one.title for one in found(parts)} == ({"chat c"} if with_headers else {"one?", "two?"})
    # A message without a time is as old as its chat.
    assert found(parts)[2].memory.create_time.seconds == 1_772_323_200
    subagents = {"transcripts of subagents": 1} if with_headers else {}
    assert left_out(parts) == {"thoughts": 1, "tool calls": 1, "lines of unknown kinds": 1, **subagents}
    assert wrong(parts) == ["no JSON object"]


@pytest.mark.parametrize("is_old", [True, False])
def test_observations_of_claude_mem_are_learning_records(tmp_path: Path, is_old: bool) -> None:
    parts = list(databases.read_claude_mem(made.write_claude_mem(tmp_path / "claude-mem.db", is_old=is_old)))
    observed, summary = (one.memory for one in found(parts))
    assert {one.project for one in found(parts)} == {"shop"}
    assert (observed.kind, observed.origin) == (pb.MEMORY_KIND_LEARNING_RECORD, pb.ORIGIN_SUMMARY)
    assert observed.learning_record.question == "Dates are ISO 8601"
    assert "1234" not in observed.learning_record.answer
    assert list(observed.learning_record.source_files) == ["src/dates.py"]
    assert list(observed.tags) == ["bugfix", "how-it-works", "gotcha"]
    assert (observed.session_id, observed.event_time.seconds) == (SESSION, 1_772_323_200)
    assert summary.learning_record.answer == "Learned: ISO 8601 only\n\nCompleted: A test"
    assert wrong(parts) == ["has no title"]
    assert left_out(parts).total() == 1


def test_an_openmemory_export_is_read_as_it_is(tmp_path: Path) -> None:
    parts = list(formats.read_mem0(made.write_openmemory(tmp_path / "export.zip")))
    (one,) = found(parts)
    assert (one.memory.id, one.memory.content) == ("o1", "Drinks oolong")
    assert left_out(parts) == {"memories that are archived": 1}


def test_a_file_that_is_cut_off_is_wrong_and_no_crash(tmp_path: Path) -> None:
    whole = made.write_cursor(tmp_path / "whole", {"c": [{"type": 1, "text": "one?"}] * 500}).read_bytes()
    broken = tmp_path / "state.vscdb"
    broken.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(NotRead, match=r"state\.vscdb"):
        list(databases.read_cursor(broken))


KINDS = {
    Source.CLAUDE_CODE: lambda path: write_lines(path / "s.jsonl", claude_turn(1, "a", "b")),
    Source.CODEX: lambda path: write_lines(path / "rollout-x.jsonl", [codex_header()]),
    Source.CURSOR: lambda path: made.write_cursor(path / "state.vscdb", {}),
    Source.COPILOT: lambda path: write_lines(path / "events.jsonl", [made.copilot_header()]),
    Source.CLAUDE_MEM: lambda path: made.write_claude_mem(path / "claude-mem.db"),
    Source.OPENMEMORY: lambda path: made.write_openmemory(path / "export.zip"),
    Source.MEM0: lambda path: write_lines(path / "m.jsonl", made.MEM0),
    Source.MARKDOWN: lambda path: write_lines(path / "note.md", ["# A"]),
}


@pytest.mark.parametrize("source", KINDS)
def test_a_file_is_known_for_its_tools(tmp_path: Path, source: Source) -> None:
    path = KINDS[source](tmp_path)
    assert kind_of(path) is source
    check_kind(path, source)
    other = Source.CODEX if source is Source.CLAUDE_CODE else Source.CLAUDE_CODE
    with pytest.raises(NotRead, match=f"use --from {source}"):
        check_kind(path, other)


@pytest.mark.long
def test_reading_holds_a_turn_at_a_time(tmp_path: Path) -> None:
    result = [{"type": "tool_result", "content": "x" * 2_000}]
    lines = (
        line
        for number in range(5_000)
        for line in (
            claude("user", number, f"question {number}?"),
            claude("user", number, result),
            claude("assistant", number, "Answer."),
        )
    )
    path = write_lines(tmp_path / "x.jsonl", lines)
    tracemalloc.start()
    try:
        count = sum(isinstance(part, Found) for part in claude_code.read(path))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert count == 10_000
    assert path.stat().st_size > 10 << 20
    assert peak < 1 << 20


NAMES = st.sampled_from(
    ["type", "message", "content", "role", "text", "uuid", "sessionId", "cwd", "timestamp", "payload", "id", "source",
     "isSidechain", "turn_id", "bubbleId", "workspaceUris", "thinking", "createdAt", "trackedGitRepos",
     "workspaceIdentifier", "fullConversationHeadersOnly", "attachment", "origin", "prompt", "kind"]
)  # fmt: skip
WORDS = st.sampled_from(
    ["user", "assistant", "message", "response_item", "session_meta", "turn_context", "text", "input_text", "tool_use",
     "2026-03-01", "file:///a", "attachment", "queued_command", "human"]
)  # fmt: skip
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=5),
    max_leaves=12,
)


@pytest.mark.long
@given(st.lists(st.dictionaries(NAMES, ANYTHING, max_size=6), max_size=4))
def test_no_line_whatever_it_holds_ends_a_reader(tmp_path_factory: pytest.TempPathFactory, values: list[Any]) -> None:
    folder = tmp_path_factory.mktemp("any")
    path = write_lines(folder / "x.jsonl", [json.dumps(value) for value in values])
    for read in (claude_code.read, codex.read, copilot.read):
        for part in read(path):
            if isinstance(part, Found):
                # What is sent is what the contract takes: text without half characters, printable ids.
                assert part.memory.content.encode()
                assert part.memory.id.isprintable()
    bubbles: list[dict[str, Any] | str] = [json.dumps(value) for value in values]
    list(databases.read_cursor(made.write_cursor(folder / "state.vscdb", {"c": bubbles})))
