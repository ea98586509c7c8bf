"""The clients for Python, TypeScript and Go in somebody else's empty folder, installed as their pages tell."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.client.consumers import ROOT, blocks, install_as_told, require, run, sources

pytestmark = pytest.mark.long


def test_the_wheel_runs_the_page_in_an_empty_environment(target: str, tmp_path: Path) -> None:
    page = "docs/clients/python.md"
    run([sys.executable, "-m", "venv", "environment"], tmp_path)
    binaries = tmp_path / "environment/bin"
    environ = {**_first_in_path(binaries), "PYTHONPATH": "", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    install_as_told(page, clone=ROOT, folder=tmp_path, environ=environ)
    program = tmp_path / "page.py"
    program.write_text("\n".join(blocks(page, "python")), encoding="utf-8")
    printed = run([binaries / "python", program], tmp_path, {**environ, "HUMMOCK_TARGET": target})
    assert "parseDate takes ISO 8601 alone" in printed
    known = run([binaries / "hummock", "status", "--target", target, "--json"], tmp_path, environ)
    assert '"version"' in known


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the packed tarball installed, from what a fresh clone has."""
    npm = require("npm", "the client for TypeScript cannot be packed")
    directory = tmp_path_factory.mktemp("typescript")
    sources("clients", directory / "clone")
    sources("LICENSE", directory / "clone")
    sources("NOTICE", directory / "clone")
    folder = directory / "project"
    folder.mkdir()
    run([npm, "init", "--yes"], folder)
    install_as_told("docs/clients/typescript.md", clone=directory / "clone", folder=folder)
    return folder


@pytest.mark.parametrize(("language", "name"), [("ts", "index.mjs"), ("js", "index.cjs")])
def test_the_tarball_runs_the_first_program_of_the_page(language: str, name: str, installed: Path, target: str) -> None:
    program = installed / name
    program.write_text(blocks("docs/clients/typescript.md", language)[0], encoding="utf-8")
    assert "parseDate" in run(["node", program], installed, {"HUMMOCK_TARGET": target})


def test_the_module_runs_the_program_of_the_page(target: str, tmp_path: Path) -> None:
    go = require("go", "the client for Go cannot be built")
    page = "docs/clients/go.md"
    (tmp_path / "main.go").write_text(blocks(page, "go")[0], encoding="utf-8")
    install_as_told(page, clone=ROOT, folder=tmp_path)
    run([go, "build", "-o", "example", "."], tmp_path)
    assert "先本后息" in run([tmp_path / "example"], tmp_path, {"HUMMOCK_TARGET": target})


def _first_in_path(folder: Path) -> Mapping[str, str]:
    return {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
