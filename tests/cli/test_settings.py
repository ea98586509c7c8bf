"""hummock projects settings, against a service with canned answers."""

from __future__ import annotations

import json

import pytest

from hummock_client.v1 import memory_pb2, recall_pb2, settings_pb2
from hummock_client.v1 import project_service_pb2 as pb
from tests.cli.conftest import Run
from tests.cli.fake_service import FakeService


def test_get_shows_every_value_and_who_says_it(run: Run) -> None:
    """S4-46."""
    result = run("projects", "settings", "get", "还款")
    assert result.exit_code == 0, result.stderr
    rows = [line.split() for line in result.stdout.splitlines()]
    assert ["chat.top_k", "8", "project", "5"] in rows
    assert ["chat.origins", "manual,", "ai_output", "project", "manual"] in rows
    assert ["code.top_k", "10", "default"] in rows
    assert ["code.min_similarity", "0.3", "default"] in rows


@pytest.mark.long
def test_get_shows_one_group_or_setting_alone(run: Run) -> None:
    stdout = run("projects", "settings", "get", "还款", "code").stdout
    assert "code.top_k" in stdout
    assert "chat.top_k" not in stdout
    shown = json.loads(run("projects", "settings", "get", "还款", "code.top_k", "--json").stdout)
    assert shown["effective"] == {"code": {"topK": 10}}
    result = run("projects", "settings", "get", "还款", "chat.colour")
    assert result.exit_code == 2
    assert "there is no setting" in result.stderr


@pytest.mark.long
def test_set_sends_the_values_under_a_request_id_and_names_their_paths(run: Run, fake: FakeService) -> None:
    """S4-46, S4-53."""
    result = run(
        "projects",
        "settings",
        "set",
        "还款",
        "chat.min_similarity=0.25",
        "chat.origins=manual, ai_output",
        "agent.decay_mode=off",
        "quotas.domains=0",
        "secrets.policy=warn",
        "review.policy=off",
    )
    assert result.exit_code == 0, result.stderr
    request = fake.request(pb.UpdateProjectSettingsRequest)
    assert list(request.update_mask.paths) == [
        "chat.min_similarity",
        "chat.origins",
        "agent.decay_mode",
        "quotas.domains",
        "secrets.policy",
        "review.policy",
    ]
    assert request.request_id
    assert request.settings.chat.min_similarity == 0.25
    assert list(request.settings.chat.origins) == [memory_pb2.ORIGIN_MANUAL, memory_pb2.ORIGIN_AI_OUTPUT]
    assert request.settings.agent.decay_mode == recall_pb2.DECAY_MODE_OFF
    assert request.settings.quotas.HasField("domains")
    assert request.settings.secrets.policy == settings_pb2.SECRET_POLICY_WARN
    assert request.settings.review.policy == settings_pb2.REVIEW_POLICY_OFF


@pytest.mark.long
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("chat.top_k", "is not PATH=VALUE"),
        ("top_k=3", "is not PATH=VALUE"),
        ("chat.colour=3", "is not PATH=VALUE"),
        ("chat.top_k=many", "it takes a number"),
        ("chat.top_k=1.5", "it takes a number"),
        ("chat.decay_mode=soon", "off, exponential"),
        ("chat.origins=manual;summary", "manual, summary, user_input"),
    ],
)
def test_what_cannot_be_read_is_refused_before_anything_is_sent(
    run: Run, fake: FakeService, given: str, said: str
) -> None:
    result = run("projects", "settings", "set", "还款", given)
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.replace("│", " ").split())
    assert not fake.asked
