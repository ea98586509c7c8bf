"""Commands that work on a data directory, as who runs them sees them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from hummock.cli.main import app
from hummock.store.lmdb.files import DirectoryLock
from tests.store.opening import opened
from tests.store.test_fsck import altered
from tests.store.test_project_removal import fill

pytestmark = pytest.mark.long


@pytest.fixture
def data(tmp_path: Path) -> Path:
    with opened(tmp_path / "data") as store:
        fill(store)
    return tmp_path / "data"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_a_directory_is_backed_up_and_restored(data: Path, tmp_path: Path) -> None:
    """S13."""
    made = run("backup", tmp_path / "b", "--data", data)
    assert made.exit_code == 0, made.output
    name = made.stdout.strip()
    assert name in run("restore", tmp_path / "b", "--list").stdout
    done = run("restore", tmp_path / "b", "--data", tmp_path / "new", "--backup", name)
    assert done.exit_code == 0, done.output
    assert "22 memories of 1 projects, all digests equal" in done.stdout
    assert run("fsck", "--data", tmp_path / "new").exit_code == 0


def test_backups_speak_json_and_none_is_restored_into_a_used_directory(data: Path, tmp_path: Path) -> None:
    made = json.loads(run("backup", tmp_path / "b", "--data", data, "--json").stdout)
    restored = json.loads(run("restore", tmp_path / "b", "--data", tmp_path / "new", "--json").stdout)
    assert restored["projects"] == made["projects"]
    assert (made["name"], made["projects"][0]["memories"]) == (restored["name"], 22)
    refused = run("restore", tmp_path / "b", "--data", data)
    assert refused.exit_code == 1
    assert "restore into a new directory" in refused.stderr


def test_a_damage_ends_with_one_and_says_how_to_go_on(data: Path) -> None:
    assert run("fsck", "--data", data).exit_code == 0
    altered(data, lambda tables: tables.drop("payload"))
    found = run("fsck", "--data", data)
    assert found.exit_code == 1
    assert "project p: a memory has no payload, 1 times (numbers 2)" in found.stdout
    assert "hummock restore" in found.stderr
    problems = json.loads(run("fsck", "--data", data, "--json").stdout)["problems"]
    assert problems[0] == {"project": "p", "what": "a memory has no payload", "count": 1, "examples": [2]}


def test_a_purge_asks_first_and_says_what_is_gone(data: Path, tmp_path: Path) -> None:
    """X7."""
    name = run("backup", tmp_path / "b", "--data", data).stdout.strip()
    kept = run("purge", "--data", data)
    assert (kept.exit_code, "nothing was erased" in kept.stderr) == (1, True)
    done = run("purge", "--data", data, "--yes")
    assert done.exit_code == 0, done.output
    assert "MiB before" in done.stdout
    assert name in done.stderr
    assert json.loads(run("purge", "--data", data, "--yes", "--json").stdout)["left_out"] == {}
    assert run("fsck", "--data", data).exit_code == 0


def test_a_running_service_is_named_with_what_to_do(data: Path) -> None:
    lock = DirectoryLock(data)
    for command in (["purge", "--yes"], ["compact"]):
        refused = run(*command, "--data", data)
        assert refused.exit_code == 1
        assert "stop that process" in refused.stderr
    lock.release()
    assert "compacted:" in run("compact", "--data", data).stdout


@pytest.mark.parametrize("command", [("fsck",), ("purge", "--yes"), ("compact",), ("backup", "there")])
def test_what_is_done_to_a_directory_is_refused_where_memories_are_in_postgresql(
    command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HUMMOCK_STORE", "postgresql://hummock:secret@db/hummock")
    refused = run(*command)
    assert refused.exit_code == 1
    assert "pg_dump" in refused.output
    assert "secret" not in refused.output
