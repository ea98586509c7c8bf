"""hummock feedback, against a service with canned answers."""

from __future__ import annotations

import json

import pytest

from hummock_client.v1 import context_service_pb2 as pb
from tests.cli.conftest import Run
from tests.cli.fake_service import FakeService


def test_feedback_sends_each_verdict_and_names_what_is_not_there(run: Run, fake: FakeService) -> None:
    """S1-17."""
    result = run(
        "feedback", "--query", "还款", "--helpful", "m1", "--helpful", "m2", "--wrong", "gone", "--session", "s"
    )
    assert result.exit_code == 0, result.stderr
    assert result.stdout == "kept 2 verdicts\n"
    assert "the project has no memory gone" in result.stderr
    request = fake.request(pb.FeedbackRequest)
    assert [(one.memory_id, one.judgement) for one in request.verdicts] == [
        ("m1", pb.JUDGEMENT_HELPFUL),
        ("m2", pb.JUDGEMENT_HELPFUL),
        ("gone", pb.JUDGEMENT_WRONG),
    ]
    assert (request.query_text, request.session_id, len(request.request_id)) == ("还款", "s", 36)


@pytest.mark.long
def test_a_note_is_enough_and_nothing_is_not(run: Run, fake: FakeService) -> None:
    """S1-17."""
    assert json.loads(run("feedback", "--note", "很有用", "--json").stdout)["recordedCount"] == 2
    asked = len(fake.asked)
    result = run("feedback", "--query", "还款")
    assert result.exit_code == 2
    assert "--not-helpful" in result.stderr
    assert len(fake.asked) == asked


def test_a_project_shows_what_feedback_has_said(run: Run) -> None:
    """S1-17."""
    assert "feedback    4 helpful, 0 not helpful, 1 wrong" in run("projects", "show", "还款").stdout
