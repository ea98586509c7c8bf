"""`hummock learning` against the service itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from hummock.cli.main import app
from hummock_client.v1 import context_service_pb2 as pb
from hummock_client.v1 import memory_pb2, recall_pb2
from tests.service.calls import learn
from tests.service.models import install_model
from tests.service.running import Stubs, in_thread, settings

pytestmark = pytest.mark.long


LAMP = "世界.图鉴.物品.长明灯"
PROJECTS = count()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stubs]:
    models: Path = tmp_path_factory.mktemp("models")
    chosen = settings(tmp_path_factory.mktemp("data"), models, install_model(models))
    with in_thread(chosen) as stubs:
        yield stubs


@pytest.fixture
def project(service: Stubs, monkeypatch: pytest.MonkeyPatch) -> str:
    """A project with one entry, whose title would move the cursor; the commands ask for it."""
    name = f"learning-{next(PROJECTS)}"
    title, content = "长明灯\u001b[2J", "燃鲸油，风吹不灭。"
    learn(service, name, memory_pb2.Memory(id=LAMP, kind=memory_pb2.MEMORY_KIND_ENTRY, title=title, content=content))
    for variable, value in {
        "HUMMOCK_TARGET": service.target,
        "HUMMOCK_PROJECT": name,
        "COLUMNS": "160",
        "NO_COLOR": "1",
    }.items():
        monkeypatch.setenv(variable, value)
    return name


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["learning", *arguments])


def use(service: Stubs, project: str, turn: int, text: str = "鲸油") -> None:
    request = pb.RenderRequest(
        project=project, recall=recall_pb2.RecallRequest(query_text=text, preset=recall_pb2.PRESET_CODEX)
    )
    service.context.RenderTurn(pb.RenderTurnRequest(render=request, scope="s", turn=turn))


def test_the_status_is_a_table(service: Stubs, project: str) -> None:
    """S3-40."""
    run("on")
    run("keywords", LAMP, "鲸油", "whale light")
    use(service, project, 1)
    shown = run("status", "--scope", "s")
    assert shown.exit_code == 0
    assert r"长明灯\u001b[2J" in shown.stdout
    assert "\u001b" not in shown.stdout
    for part in ("鲸油, whale light", "cooling down", "last sent 1 turn ago"):
        assert part in shown.stdout
    assert "learning is on · turn 2 · 1 turns seen · 3 events" in shown.stderr


def test_the_status_as_json_is_the_reply(service: Stubs, project: str) -> None:
    """S3-40."""
    shown = json.loads(run("status", "--json").stdout)
    assert [entry["memoryId"] for entry in shown["entries"]] == [LAMP]
    assert shown["state"]["settings"]["highAbove"] == 10


def test_switching_on_again_says_what_was_missed(service: Stubs, project: str) -> None:
    """S3-44."""
    assert "no language model is configured" in run("on").stderr
    use(service, project, 1)
    assert "every entry is injected" in run("off").stdout
    use(service, project, 2)
    use(service, project, 3)
    assert "2 turns came while learning was off" in run("on").stderr


def test_numbers_are_set_one_by_one_and_keywords_of_known_entries(service: Stubs, project: str) -> None:
    """S3-44, S3-39. Params editable and persisted."""
    assert "high above 5 · mid above 3" in run("set", "--high-above", "5").stdout
    assert "pause 0.25 s" in run("set", "--cold-start-pause", "0.25").stdout
    refused = run("set", "--mid-above", "6")
    assert refused.exit_code == 1
    assert "settings.high_above" in refused.stderr
    assert run("set").exit_code == 2
    refused = run("keywords", "nobody", "鲸油")
    assert refused.exit_code == 1
    assert "nobody" in refused.stderr


def test_the_log_says_what_happened(service: Stubs, project: str) -> None:
    """S3-28."""
    run("on")
    run("keywords", LAMP, "鲸油")
    use(service, project, 1)
    lines = run("log").stdout.splitlines()
    assert "injected" in lines[2]
    assert f"s turn 1; referenced {LAMP}; injected {LAMP}" in lines[2]
    assert f"{LAMP}: 鲸油" in lines[3]
    assert lines[4].rstrip().endswith("on")
    assert "there are more" in run("log", "--limit", "1", "--oldest").stderr


def test_a_replay_compares_and_forks(service: Stubs, project: str) -> None:
    """S3-28, S3-41."""
    run("on")
    run("keywords", LAMP, "鲸油")
    for turn, text in enumerate(("鲸油", "鲸油", "别的", "别的"), start=1):
        use(service, project, turn, text)
    replayed = run("replay", "--high-above", "1", "--mid-above", "1")
    assert replayed.exit_code == 0
    assert "6 events give the same state" in replayed.stdout
    assert "2 of 4 turns would have differed: 4 injections instead of 2" in replayed.stdout
    assert f"#5  s turn 3  +{LAMP}" in replayed.stdout


def test_a_project_without_entries_shows_nothing(service: Stubs, project: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUMMOCK_PROJECT", "nobody")
    assert "project nobody does not exist" in run("status").stderr
    learn(service, "nobody", memory_pb2.Memory(content="a note is no entry"))
    assert run("status").stdout == ""
    assert "no events" in run("log").stderr
    assert "0 events give the same state" in run("replay").stdout


def test_a_run_says_what_became_of_each_entry(service: Stubs, project: str) -> None:
    """S3-30, S3-36."""
    run("on")
    shown = run("run", "--all")
    assert shown.exit_code == 0
    assert shown.stdout.splitlines() == [f"nothing new  {LAMP}"]
    assert "1 entries were read" in shown.stderr
    chosen = run("run", LAMP, "absent", "--json")
    told = [json.loads(line) for line in chosen.stdout.splitlines()]
    assert {one["entry"]["memoryId"] for one in told if "entry" in one} == {LAMP, "absent"}
    assert told[-1]["end"] == "SCAN_END_DONE"


def test_a_run_is_of_all_or_of_some_of_a_project_that_learns(project: str) -> None:
    """S3-31."""
    assert "either IDs or --all" in run("run", LAMP, "--all").stderr
    refused = run("run")
    assert refused.exit_code == 1
    assert "learning is off in this project; switch it on with: hummock learning on" in refused.stderr
    assert CliRunner().invoke(app, ["learn", "--help"]).exit_code == 0
