"""The client for TypeScript: its own tests, what is generated, and the snippets of its pages against a real service."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.alone import alone_in
from tests.client.consumers import require

pytestmark = pytest.mark.long

_ROOT = Path(__file__).parents[2]
_CLIENT = _ROOT / "clients/typescript"
_DOCUMENTED = (
    _ROOT / "docs/clients/typescript.md",
    *(_ROOT / f"docs/{folder}/{name}.md" for folder in ("start", "zh/start") for name in ("application", "ide")),
    _CLIENT / "README.md",
)
_TSC = str(_CLIENT / "node_modules/.bin/tsc")
_LIMIT_S = 600


def _run(command: Sequence[str], **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=_CLIENT, env={**os.environ, **env}, capture_output=True, text=True, timeout=_LIMIT_S
    )


@pytest.fixture(scope="module")
def npm() -> Iterator[str]:
    """Path of npm for the only process that builds, with the client's dependencies installed."""
    found = require("npm", "the client for TypeScript cannot be tested")
    with alone_in(_CLIENT):
        run = _run(["sh", "install.sh"])
        assert run.returncode == 0, run.stdout + run.stderr
        yield found


def test_its_own_tests_pass(npm: str) -> None:
    run = _run([npm, "test", "--silent"])
    assert run.returncode == 0, run.stdout + run.stderr


def test_its_code_is_formatted_and_what_is_generated_is_up_to_date(npm: str) -> None:
    run = _run([npm, "run", "--silent", "lint"])
    assert run.returncode == 0, run.stdout + run.stderr
    run = _run(["sh", "generate.sh", "--check"])
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.fixture(scope="module")
def project(npm: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with the package installed."""
    directory = tmp_path_factory.mktemp("project")
    package = directory / "node_modules/hummock"
    package.mkdir(parents=True)
    shutil.copy(_CLIENT / "package.json", package)
    for name in ("@bufbuild", "@connectrpc", "@types", "undici-types"):
        (directory / "node_modules" / name).symlink_to(_CLIENT / "node_modules" / name)
    run = _run([_TSC, "-p", "tsconfig.esm.json", "--outDir", str(package / "dist/esm")])
    assert run.returncode == 0, run.stdout + run.stderr
    return directory


@pytest.mark.parametrize("page", _DOCUMENTED, ids=lambda page: str(page.relative_to(_ROOT)))
def test_the_snippets_of_a_page_run_in_their_order(target: str, project: Path, page: Path) -> None:
    snippets = re.findall(r"^```ts\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert snippets
    program = project / "page.mts"
    program.write_text("\n".join(snippets), encoding="utf-8")
    types = ["--types", "node", "--typeRoots", str(project / "node_modules/@types")]
    run = _run([_TSC, "--ignoreConfig", "--strict", "--target", "es2022", "--module", "nodenext", *types, str(program)])
    assert run.returncode == 0, run.stdout + run.stderr
    run = _run(["node", str(program.with_suffix(".mjs"))], HUMMOCK_TARGET=target)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "parseDate" in run.stdout
