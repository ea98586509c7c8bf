"""The packed extension inside a real editor: code-server, driven by Chromium; skipped, aloud, where one is missing."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

from bench.chromium import PROGRAMS, Window, chromium
from hummock_client.client import Client
from hummock_client.v1 import memory_pb2
from tests.alone import alone_in
from tests.client.consumers import ROOT, require, run

pytestmark = pytest.mark.long

_WITHOUT = "the extension cannot be tried in an editor"
_LISTENS = "HTTP server listening on "
_WAIT_S = 60
_NOTE = "parseDate takes ISO 8601 only"


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
        run(["npm", "run", "--silent", "package", "--", "--out", path], ROOT / "clients/vscode")
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A repository with one source file; its name is the project's."""
    folder = tmp_path / "shop"
    (folder / ".git").mkdir(parents=True)
    (folder / "dates.ts").write_text("export function parseDate(text: string) {}\n", encoding="utf-8")
    return folder


@contextmanager
def _editor(home: Path, package: Path, target: str) -> Iterator[str]:
    """Address of an editor with the extension alone, and no folder of the user's own."""
    settings = {
        "hummock.target": target,
        "hummock.command": str(Path(sys.executable).with_name("hummock")),
        "security.workspace.trust.enabled": False,
        "workbench.startupEditor": "none",
    }
    user = home / "user"
    (user / "User").mkdir(parents=True)
    (user / "User/settings.json").write_text(json.dumps(settings), encoding="utf-8")
    places = ["--config", home / "config.yaml", "--user-data-dir", user, "--extensions-dir", home / "extensions"]
    command = [str(shutil.which("code-server")), *map(str, places)]
    run([*command, "--install-extension", package], home)
    offline = ["--auth", "none", "--bind-addr", "127.0.0.1:0", "--disable-telemetry", "--disable-update-check"]
    env = {**os.environ, "HUMMOCK_PROJECT": "", "HUMMOCK_TOKEN": ""}
    with subprocess.Popen(
        [*command, *offline], env=env, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as popen:
        try:
            assert popen.stdout is not None
            line = next((line for line in popen.stdout if _LISTENS in line), "")
            assert line, "code-server did not start"
            yield line.partition(_LISTENS)[2].strip()
        finally:
            os.killpg(popen.pid, signal.SIGKILL)


def _texts(window: Window, selector: str) -> list[str]:
    script = "return [...document.querySelectorAll(arguments[0])].map(each => each.innerText)"
    texts: list[str] = window.run(script, selector)
    return texts


def _shown(window: Window, selector: str, text: str) -> None:
    """Returns when an element holds the text. Raises: TimeoutException."""
    wait = WebDriverWait(window.driver, _WAIT_S, poll_frequency=0.1)
    wait.until(lambda _: any(text in each for each in _texts(window, selector)), f"no {selector} with {text}")


def _command(window: Window, title: str) -> None:
    """Runs a command of the palette."""
    window.press(Keys.F1)
    _shown(window, ".quick-input-widget", "")
    window.press(title)
    _shown(window, ".quick-input-list .monaco-list-row", title)
    window.press(Keys.ENTER)


def test_a_note_is_listed_for_its_file_and_found_by_a_question(
    package: Path, folder: Path, tmp_path: Path, target: str
) -> None:
    with Client(target) as client:
        place = {"path": "dates.ts", "start_line": "1"}
        client.learn("shop", [memory_pb2.Memory(content=_NOTE, metadata=place)])
    home = tmp_path / "home"
    home.mkdir()
    with _editor(home, package, target) as address, chromium() as window:
        window.open(f"{address}?folder={folder}")
        _shown(window, ".statusbar-item", "Hummock")
        _command(window, "Explorer: Focus on Memories of the File View")
        window.driver.find_element(By.XPATH, "//*[contains(@class,'monaco-list-row')]//*[text()='dates.ts']").click()
        _shown(window, ".pane .monaco-list-row", f"{_NOTE}note · line 1")
        _command(window, "Hummock: Ask")
        _shown(window, ".quick-input-message", "What do you want to know?")
        window.press("which formats does parseDate take?", Keys.ENTER)
        _shown(window, ".quick-input-list .monaco-list-row", "note · dates.ts:1")
        window.press(Keys.ENTER)
        _shown(window, ".tab .label-name", f"{_NOTE}.md")
