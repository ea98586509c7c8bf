"""Programs of people who use a client: in an empty folder, from what its own tools build, as its page tells them to."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_LIMIT_S = 900
"""Time limit of one command, which may fetch what it builds with."""


def blocks(page: str, language: str) -> list[str]:
    """The page's blocks in this language, in their order."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert found, f"{page} has no block in {language}"
    return found


def require(tool: str, without: str) -> str:
    """Path of a tool; skips, aloud, if it is missing, or fails with REQUIRE_CLIENTS."""
    found = shutil.which(tool)
    if found is None:
        said = f"{tool} is missing, without which {without}"
        assert not os.environ.get("REQUIRE_CLIENTS"), said
        pytest.skip(said)
    return found


def run(command: Sequence[str | Path], folder: Path, environ: Mapping[str, str] | None = None) -> str:
    """What the command prints, run in the folder; the test fails with all it said if it does."""
    env = {**os.environ, **(environ or {})}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=_LIMIT_S, check=False)
    assert done.returncode == 0, f"{command} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def install_as_told(page: str, *, clone: Path, folder: Path, environ: Mapping[str, str] | None = None) -> None:
    """Run the page's first block of commands in a folder; HUMMOCK is the clone."""
    commands = blocks(page, "console")[0]
    run(["sh", "-euc", commands], folder, {"HUMMOCK": str(clone), **(environ or {})})


def sources(folder: str, into: Path) -> Path:
    """A copy of a folder or file of the repository as a fresh clone has it: what git does not ignore."""
    listed = run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", folder], ROOT)
    for name in filter(None, listed.split("\0")):
        if not (ROOT / name).is_file():  # deleted, and not committed yet
            continue
        target = into / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target)
    return into / folder
