"""The client for Go: its own tests, and its examples against a real service; its documentation shows those examples."""

from __future__ import annotations

import os
import re
import subprocess
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench import toy_models
from tests.service.running import in_process

pytestmark = pytest.mark.long

_ROOT = Path(__file__).parents[2]
_CLIENT = _ROOT / "clients/go"
_STARTS = (_ROOT / "docs/start/application.md", _ROOT / "docs/zh/start/application.md")
_DOCUMENTED = (_ROOT / "docs/clients/go.md", *_STARTS, _CLIENT / "README.md")
_LIMIT_S = 900


def test_its_tests_and_examples_pass_against_a_real_service(go: str, tmp_path: Path) -> None:
    model = toy_models.build_tiny(tmp_path / "models").name
    with in_process(tmp_path / "service", tmp_path / "models", model) as service:
        env = {**os.environ, "HUMMOCK_TARGET": service.target}
        command = [go, "test", "-count=1", "-v", "./..."]
        run = subprocess.run(command, cwd=_CLIENT, env=env, capture_output=True, text=True, timeout=_LIMIT_S)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "--- PASS: ExampleClient_WithMemory" in run.stdout
    assert "--- SKIP" not in run.stdout


@pytest.mark.parametrize("system", ["windows", "darwin"])
def test_client_and_hook_are_built_for_other_systems(go: str, tmp_path: Path, system: str) -> None:
    env = {**os.environ, "GOOS": system, "GOARCH": "amd64", "CGO_ENABLED": "0"}
    for command in (["vet", "./..."], ["build", "-o", str(tmp_path / "hummock-hook.exe"), "./cmd/hummock-hook"]):
        run = subprocess.run([go, *command], cwd=_CLIENT, env=env, capture_output=True, text=True, timeout=_LIMIT_S)
        assert run.returncode == 0, run.stdout + run.stderr
    assert (tmp_path / "hummock-hook.exe").stat().st_size > 1_000_000


@pytest.mark.parametrize("page", _DOCUMENTED, ids=lambda page: str(page.relative_to(_ROOT)))
def test_each_snippet_stands_in_an_example(page: Path) -> None:
    examples = "\n".join(_bodies((_CLIENT / "hummock/example_test.go").read_text(encoding="utf-8")))
    snippets = re.findall(r"^```go\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert snippets
    # A whole program is run by test_consumers.py.
    for snippet in (each for each in snippets if not each.startswith("package main")):
        assert snippet in examples, f"{page.name} shows what no example of the client runs:\n{snippet}"


def _bodies(source: str) -> Iterator[str]:
    """Body of each function, dedented."""
    for body in re.findall(r"^func [^\n]*\{\n(.*?)^\}$", source, re.MULTILINE | re.DOTALL):
        yield textwrap.dedent(body)
