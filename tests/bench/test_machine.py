from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from bench import machine
from bench.machine import Machine

pytestmark = pytest.mark.long

IDENTITY = ["-c", "user.name=test", "-c", "user.email=test@example.org"]


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(folder), *IDENTITY, *arguments], check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("bench/machine.py", "bench/results/eval.json", "service.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("first\n", encoding="utf-8")
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "-m", "all")
    monkeypatch.setattr(machine, "__file__", str(tmp_path / "bench/machine.py"))
    return tmp_path


@pytest.mark.parametrize(
    ("changed", "dirty"), [("service.py", True), ("bench/machine.py", True), ("bench/results/eval.json", False)]
)
def test_code_that_differs_makes_a_commit_dirty_and_results_do_not(repository: Path, changed: str, dirty: bool) -> None:
    assert len(Machine.here(repository).commit) == 12

    (repository / changed).write_text("second\n", encoding="utf-8")

    assert Machine.here(repository).commit.endswith("-dirty") is dirty


def test_outside_a_repository_the_commit_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "__file__", str(tmp_path / "machine.py"))
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))

    assert Machine.here(tmp_path).commit == "unknown"
