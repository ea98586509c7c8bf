"""The packed extension inside a real editor: code-server, driven by Chromium; skipped, aloud, where one is missing."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from bench.chromium import PROGRAMS, chromium
from hummock_client.client import Client
from tests.alone import alone_in
from tests.client.consumers import ROOT, require
from tests.client.vscode_walk import FOLDER, PICTURES, REMARK, editor, make_folder, pack, walk

pytestmark = pytest.mark.long

_WITHOUT = "the extension cannot be tried in an editor"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The extension as it is installed; all that the test needs is there."""
    if shutil.which("code-server") is None:
        # Nothing of the project needs it, and few machines have it: missing it is no failure, not even in CI.
        pytest.skip(f"code-server is missing, without which {_WITHOUT}")
    for tool in ("npm", *PROGRAMS):
        require(tool, _WITHOUT)
    path = tmp_path_factory.mktemp("package") / "hummock.vsix"
    with alone_in(ROOT / "clients/typescript"), alone_in(ROOT / "clients/vscode"):
        pack(path)
    return path


def test_a_selection_is_remembered_listed_for_its_file_and_found_by_a_question(
    package: Path, tmp_path: Path, target: str
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    folder = make_folder(tmp_path / "shop")
    seen: list[str] = []
    with editor(home, package, target) as address, chromium() as window:
        walk(window, address, folder, seen.append)
    assert seen == list(PICTURES)
    with Client(target) as client:
        (found,) = client.recall("shop", REMARK, top_k=1).hits
    assert REMARK in found.memory.text


def test_the_page_shows_every_picture_of_the_walk() -> None:
    page = FOLDER.with_suffix(".md").read_text(encoding="utf-8")
    assert sorted(each.name for each in FOLDER.iterdir()) == sorted(f"{name}.png" for name in PICTURES)
    assert [name for name in PICTURES if f"vscode/{name}.png" not in page] == []
    assert sum(each.stat().st_size for each in FOLDER.iterdir()) <= 600_000
