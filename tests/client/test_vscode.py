"""The extension for VS Code: its own tests against a real service and the real `hummock index`, and what is packed."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.alone import alone_in
from tests.client.consumers import require

pytestmark = pytest.mark.long

_ROOT = Path(__file__).parents[2]
_EXTENSION = _ROOT / "clients/vscode"
_LIMIT_S = 300
_LARGEST_BYTES = 128 << 10
_FILES = {
    "[Content_Types].xml",
    "extension.vsixmanifest",
    "extension/LICENSE.txt",
    "extension/NOTICE",
    "extension/dist/extension.js",
    "extension/images/memory.svg",
    "extension/l10n/bundle.l10n.zh-cn.json",
    "extension/package.json",
    "extension/package.nls.json",
    "extension/package.nls.zh-cn.json",
    "extension/readme.md",
}


def _run(command: Sequence[str], **env: str) -> None:
    run = subprocess.run(
        command, cwd=_EXTENSION, env={**os.environ, **env}, capture_output=True, text=True, timeout=_LIMIT_S
    )
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.fixture(scope="module")
def npm() -> Iterator[str]:
    """Path of npm for the only process that builds here and in the client, with the dependencies of both installed."""
    found = require("npm", "the extension for VS Code cannot be tested")
    with alone_in(_ROOT / "clients/typescript"), alone_in(_EXTENSION):
        _run(["sh", "install.sh"])
        yield found


def test_its_own_tests_pass(npm: str, target: str) -> None:
    hummock = str(Path(sys.executable).with_name("hummock"))
    _run(
        [npm, "test", "--silent"], HUMMOCK_TARGET=target, HUMMOCK_COMMAND=hummock, HUMMOCK_PROJECT="", HUMMOCK_TOKEN=""
    )


def test_its_code_is_formatted_and_has_types(npm: str) -> None:
    _run([npm, "run", "--silent", "lint"])


def test_the_package_holds_what_is_run_and_its_licence_and_is_the_same_each_time(npm: str, tmp_path: Path) -> None:
    packed = [tmp_path / "one.vsix", tmp_path / "two.vsix"]
    for path in packed:
        _run([npm, "run", "--silent", "package", "--", "--out", str(path)], SOURCE_DATE_EPOCH="1795000000")
    with zipfile.ZipFile(packed[0]) as archive:
        assert set(archive.namelist()) == _FILES
        bundle = archive.read("extension/dist/extension.js")
    assert packed[0].stat().st_size < _LARGEST_BYTES
    assert str(_ROOT).encode() not in bundle
    assert packed[0].read_bytes() == packed[1].read_bytes()
