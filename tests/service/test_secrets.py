"""Secrets that are sent to be stored, over a real socket (X6): none is kept, unless the project says so."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import pytest
from typer.testing import Result

from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import memory_pb2, settings_pb2
from tests.service.calls import change_settings, edit, hummock, learn
from tests.service.conversing import append, create, learn_turn, recent, texts, update
from tests.service.inputs import note
from tests.service.running import Stubs

pytestmark = pytest.mark.storeless

KEY = "AKIAABCDEFGHIJKLMNOP"
MARK = "[redacted: cloud key]"
GONE = "[redacted: password]"


def test_no_field_of_a_memory_keeps_a_secret(service: Stubs, project: str) -> None:
    sent = note(f"the key is {KEY}", id="n", title=f"key {KEY}", summary=f"of {KEY}")
    sent.raw = f"<b>{KEY}</b>"
    sent.metadata["password"] = "hunter2"
    learn(service, project, sent)
    stored = service.memory.GetMemory(project=project, id="n", view=memory_pb2.MEMORY_VIEW_RAW).memory
    assert KEY not in str(stored)
    assert (stored.content, stored.raw) == (f"the key is {MARK}", f"<b>{MARK}</b>")
    assert dict(stored.metadata) == {"password": "[redacted: password]"}


def test_no_message_and_neither_side_of_a_turn_keeps_a_secret(service: Stubs, talking: str) -> None:
    append(service, talking, "s", f"mein Schlüssel: {KEY}")
    assert texts(recent(service, talking, "s").messages) == [f"mein Schlüssel: {MARK}"]
    learn_turn(service, talking, "s", f"密钥 {KEY}", f"I keep {KEY} in mind, as you asked.")
    assert KEY not in str(recent(service, talking, "s"))
    assert KEY not in str(service.memory.ListMemories(project=talking))
    turn = learn_turn(service, talking, "s", "where is the harbour?", f"the harbour opens with {KEY}")
    assert (found(turn.user), found(turn.assistant)) == ([], [("cloud key", 1, True)])


def test_texts_that_differ_in_a_secret_alone_are_one_memory(service: Stubs, project: str) -> None:
    """What is compared is what is stored."""
    learn(service, project, note(f"deploy with {KEY}", id="n"))
    (second,) = learn(service, project, note("deploy with AKIAZZZZZZZZZZZZZZZZ")).results
    assert (second.status, second.duplicate_of) == (context.LEARN_STATUS_DUPLICATE, "n")


POLICIES = ("off", "warn", "redact")
WIFI = "our wifi password is: hunter2!"
AS_GIVEN = pytest.mark.parametrize("policy", ["off", "warn"])


def choose(service: Stubs, project: str, policy: str) -> None:
    change_settings(service, project, "secrets", secrets={"policy": f"SECRET_POLICY_{policy.upper()}"})


def stored(service: Stubs, project: str, memory_id: str) -> str:
    return service.memory.GetMemory(project=project, id=memory_id).memory.content


def found(result: context.LearnResult | context.TurnSideResult) -> list[tuple[str, int, bool]]:
    return [(each.kind, each.count, each.redacted) for each in result.secrets]


@pytest.mark.parametrize(
    ("policy", "kept", "said"),
    [
        ("off", f"use {KEY}, {WIFI}", []),
        ("warn", f"use {KEY}, {WIFI}", [("cloud key", 2, False), ("password", 1, False)]),
        ("redact", f"use {MARK}, our wifi password is: {GONE}", [("cloud key", 2, True), ("password", 1, True)]),
    ],
)
def test_a_project_says_what_becomes_of_secrets(
    service: Stubs, project: str, policy: str, kept: str, said: list[tuple[str, int, bool]]
) -> None:
    choose(service, project, policy)
    plain, telling = learn(
        service, project, note("the tide turns", id="t"), note(f"use {KEY}, {WIFI}", id="n", title=f"of {KEY}")
    ).results
    assert found(plain) == []
    assert found(telling) == said
    assert stored(service, project, "n") == kept
    assert KEY not in str(telling)


def test_without_a_setting_secrets_are_redacted_and_counted(service: Stubs, project: str) -> None:
    (result,) = learn(service, project, note(f"use {KEY}", id="n")).results
    assert found(result) == [("cloud key", 1, True)]
    assert stored(service, project, "n") == f"use {MARK}"
    shown = service.project.GetProjectSettings(project=project)
    assert shown.effective.secrets.policy == settings_pb2.SECRET_POLICY_REDACT
    assert not shown.settings.HasField("secrets")


def test_what_was_lost_is_kept_when_it_is_learnt_again(service: Stubs, project: str) -> None:
    learn(service, project, note(WIFI, id="n"))
    assert "hunter2" not in stored(service, project, "n")
    choose(service, project, "warn")
    (again,) = learn(service, project, note(WIFI, id="n")).results
    assert (again.status, found(again)) == (context.LEARN_STATUS_UPDATED, [("password", 1, False)])
    assert stored(service, project, "n") == WIFI
    choose(service, project, "redact")
    (last,) = learn(service, project, note(WIFI, id="n")).results
    assert last.status == context.LEARN_STATUS_UPDATED
    assert "hunter2" not in stored(service, project, "n")


def test_a_repeated_learn_says_what_it_said(service: Stubs, project: str) -> None:
    request = context.LearnRequest(project=project, request_id=str(uuid.uuid4()), memories=[note(f"use {KEY}", id="n")])
    first = service.context.Learn(request)
    choose(service, project, "off")
    assert service.context.Learn(request) == first
    assert found(first.results[0]) == [("cloud key", 1, True)]


@AS_GIVEN
def test_conversations_are_stored_as_given_where_the_project_says_so(service: Stubs, project: str, policy: str) -> None:
    choose(service, project, policy)
    create(service, project, "s", title=f"of {KEY}")
    append(service, project, "s", f"use {KEY}")
    turn = learn_turn(service, project, "s", f"and {KEY}?", f"I keep {KEY} in mind, as you asked.")
    said = [] if policy == "off" else [("cloud key", 1, False)]
    assert (found(turn.user), found(turn.assistant)) == (said, said)
    kept = [f"use {KEY}", f"and {KEY}?", f"I keep {KEY} in mind, as you asked."]
    assert texts(recent(service, project, "s").messages) == kept
    assert stored(service, project, turn.user.memory_id) == f"and {KEY}?"
    renamed = update(service, project, "s", ["title"], title=f"again {KEY}")
    assert renamed.session.title == f"again {KEY}"


@pytest.mark.parametrize("policy", POLICIES)
def test_feedback_follows_the_policy(service: Stubs, project: str, policy: str) -> None:
    learn(service, project, note("the tide turns", id="n"))
    choose(service, project, policy)
    service.context.Feedback(project=project, query_text="tide", note=f"wrong: {KEY}")
    log = service.learning.ListLearningEvents(project=project, newest_first=True)
    assert (KEY in str(log), MARK in str(log)) == (policy != "redact", policy == "redact")


def test_an_edit_follows_the_policy(service: Stubs, project: str) -> None:
    choose(service, project, "warn")
    learn(service, project, note(WIFI, id="n"))
    edit(service, project, memory_pb2.Memory(id="n", title="wifi"), "title")
    assert stored(service, project, "n") == WIFI
    choose(service, project, "redact")
    edit(service, project, memory_pb2.Memory(id="n", title="the wifi"), "title")
    assert "hunter2" not in stored(service, project, "n")


@pytest.mark.long
def test_the_policy_moves_with_its_project(service: Stubs, project: str) -> None:
    """S1-07."""
    choose(service, project, "warn")
    learn(service, project, note(WIFI, id="n"))
    create(service, project, "s", title="wifi")
    append(service, project, "s", WIFI)
    exported = run(service, "export", project).stdout_bytes
    moved, kept = f"{project}-moved", f"{project}-kept"
    run(service, "import", moved, "-", stdin=exported)
    assert stored(service, moved, "n") == WIFI
    assert texts(recent(service, moved, "s").messages) == [WIFI]
    # As an export of a project that redacts, in which older texts are.
    first, *others = exported.splitlines(keepends=True)
    header = json.loads(first)
    del header["header"]["settings"]["secrets"]
    run(service, "import", kept, "-", stdin=json.dumps(header).encode() + b"\n" + b"".join(others))
    assert "hunter2" not in stored(service, kept, "n")
    assert "hunter2" not in str(recent(service, kept, "s"))


def run(service: Stubs, *arguments: str, stdin: bytes | None = None) -> Result:
    result = hummock(service, *arguments, stdin=stdin)
    assert result.exit_code == 0, result.output
    return result


@pytest.mark.long
def test_the_commands_say_sums_and_how_to_keep(service: Stubs, project: str, tmp_path: Path) -> None:
    said = run(service, "learn", "-p", project, WIFI, f"use {KEY} or {KEY[:-1]}Q").stderr.splitlines()
    assert said[0] == "redacted 3 secrets: 2 cloud key, 1 password"
    assert f"settings set {project} secrets.policy=warn" in said[1]
    run(service, "projects", "settings", "set", project, "secrets.policy=warn")
    lines = tmp_path / "lines.jsonl"
    lines.write_text(json.dumps({"content": WIFI, "kind": "MEMORY_KIND_NOTE", "origin": "ORIGIN_MANUAL"}) + "\n")
    said = run(service, "learn", "-p", project, "--file", str(lines)).stderr.splitlines()
    assert "stored as given 1 secret: 1 password" in said
    assert not any("secrets.policy" in line for line in said)
    run(service, "projects", "settings", "set", project, "secrets.policy=off")
    assert "secret" not in run(service, "learn", "-p", project, f"{WIFI} indeed").stderr


@pytest.mark.long
def test_an_index_run_says_sums(service: Stubs, project: str, tmp_path: Path) -> None:
    pytest.importorskip("tree_sitter")
    (tmp_path / "deploy.py").write_text(f'def deploy():\n    run("{KEY}")\n')
    (tmp_path / "login.py").write_text(f'def login():\n    password = "hunter2!"\n    run("{KEY}")\n')
    first = run(service, "index", str(tmp_path), "-p", project).stdout.splitlines()
    assert "redacted 3 secrets: 2 cloud key, 1 password" in first
    # Nothing is sent again, so that there is nothing to say.
    assert "secret" not in run(service, "index", str(tmp_path), "-p", project).stdout
    (tmp_path / "deploy.py").write_text(f'def deploy():\n    walk("{KEY}")\n')
    report = json.loads(run(service, "index", str(tmp_path), "-p", project, "--json").stdout)
    assert report["secrets"] == [{"kind": "cloud key", "count": 1, "redacted": True}]
