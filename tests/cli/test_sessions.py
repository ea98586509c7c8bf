from __future__ import annotations

import pytest
from google.protobuf.json_format import Parse

from hummock_client.v1 import session_pb2
from hummock_client.v1 import session_service_pb2 as pb
from tests.cli.conftest import Run
from tests.cli.fake_service import FakeService

pytestmark = pytest.mark.long


def test_sessions_are_listed_with_their_titles_and_archived_ones_apart(run: Run) -> None:
    """S4-07."""
    result = run("sessions", "ls")
    assert result.exit_code == 0
    assert "会话-1" in result.stdout
    assert "2026-01-02 03:05" in result.stdout
    assert "\x1b" not in result.stdout
    assert "--page t1" in result.stderr
    assert "no archived sessions" in run("sessions", "ls", "--archived").stderr


def test_messages_are_shown_with_who_said_them_and_nothing_a_terminal_would_obey(run: Run) -> None:
    """S4-13."""
    result = run("sessions", "show", "会话-1", "--limit", "2")
    assert result.stdout.splitlines() == [
        "1  user  2026-01-02 03:05:05",
        r"    还款日是哪天?\u001b[2J",
        "    and why",
        "2  assistant  2026-01-02 03:05:06",
        "    The tenth.",
    ]
    assert "--page t2" in result.stderr


def test_without_an_id_the_active_session_is_shown(run: Run, fake: FakeService) -> None:
    """S4-11."""
    assert run("sessions", "show").exit_code == 0
    listed, shown = fake.asked
    assert isinstance(listed, pb.ListSessionsRequest)
    assert isinstance(shown, pb.ListMessagesRequest)
    assert (listed.page_size, shown.session_id) == (1, "会话-1")


def test_a_watch_prints_messages_as_they_come_and_json_is_the_services_reply(run: Run) -> None:
    """S4-12."""
    result = run("sessions", "watch", "会话-1", "--after", "0")
    assert result.exit_code == 0
    assert "    The tenth." in result.stdout.splitlines()
    lines = run("sessions", "watch", "--json").stdout.splitlines()
    messages = [Parse(line, session_pb2.ChatMessage()) for line in lines]
    assert [message.raw for message in messages] == ["", "[calm]The tenth."]
    sessions = Parse(run("sessions", "ls", "--json").stdout, pb.ListSessionsResponse())
    assert sessions.sessions[0].id == "会话-1"
    shown = Parse(run("sessions", "show", "--json").stdout, pb.ListMessagesResponse())
    assert shown.next_page_token == "t2"


def test_a_message_is_changed_and_deleted_by_its_id(run: Run, fake: FakeService) -> None:
    assert "changed message 1, deleted 2" in run("sessions", "edit", "s", "m1", "new text", "--following").stdout
    assert "deleted 3 messages" in run("sessions", "rm", "s", "m1").stdout
    updated, deleted = fake.asked
    assert isinstance(updated, pb.UpdateMessageRequest)
    assert isinstance(deleted, pb.DeleteMessageRequest)
    assert (updated.message.id, updated.message.content, updated.delete_following) == ("m1", "new text", True)
    assert list(updated.update_mask.paths) == ["content"]
    assert (deleted.session_id, deleted.id, deleted.delete_following) == ("s", "m1", False)
    changed = Parse(run("sessions", "edit", "s", "m1", "x", "--json").stdout, pb.UpdateMessageResponse())
    gone = Parse(run("sessions", "rm", "s", "m1", "--json").stdout, pb.DeleteMessageResponse())
    assert (changed.position, gone.deleted_count) == (1, 3)
