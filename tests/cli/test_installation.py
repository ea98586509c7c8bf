"""The command that adds an extra, in the words of the tool that Hummock was installed with."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from hummock.installation import command_for

UV = """\
[tool]
requirements = [{ name = "other" }, { name = "hummock", extras = ["server"], path = "/w/hummock.whl" }]
"""
PIPX = json.dumps({"main_package": {"package_or_url": "/w/hummock.whl[server, code]"}})
WHEEL = json.dumps({"url": "file:///w/my%20wheels/hummock.whl", "archive_info": {}})
CLONE = json.dumps({"url": "file:///w/clone", "dir_info": {"editable": True}})


class Installed:
    """What a package manager has noted of a package."""

    def __init__(self, origin: str | None) -> None:
        self._origin = origin

    def read_text(self, name: str) -> str | None:
        assert name == "direct_url.json"
        return self._origin


@pytest.mark.parametrize(
    ("file", "text", "origin", "expected"),
    [
        ("", "", None, "pip install 'hummock[mcp]'"),
        ("", "", CLONE, "pip install 'hummock[mcp]'"),
        ("", "", "{", "pip install 'hummock[mcp]'"),
        ("", "", WHEEL, "pip install 'hummock[mcp] @ file:///w/my%20wheels/hummock.whl'"),
        ("uv-receipt.toml", UV, None, "uv tool install 'hummock[mcp,server]'"),
        ("uv-receipt.toml", UV, WHEEL, "uv tool install 'hummock[mcp,server] @ file:///w/my%20wheels/hummock.whl'"),
        ("uv-receipt.toml", "tool = 1", None, "uv tool install 'hummock[mcp]'"),
        ("pipx_metadata.json", PIPX, None, "pipx install --force 'hummock[code,mcp,server]'"),
        ("pipx_metadata.json", "[]", None, "pipx install --force 'hummock[mcp]'"),
    ],
)
def test_the_command_keeps_extras_and_names_the_file_it_came_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, text: str, origin: str | None, expected: str
) -> None:
    if file:
        (tmp_path / file).write_text(text, encoding="utf-8")
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr("importlib.metadata.distribution", lambda name: Installed(origin))
    assert command_for("mcp") == expected


def test_cmd_exe_knows_double_quotes_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "win32")
    assert command_for("mcp", "server") == 'pip install "hummock[mcp,server]"'
