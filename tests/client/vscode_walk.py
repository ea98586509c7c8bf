"""`python -m tests.client.vscode_walk`: the packed extension in a real editor, with pictures for docs/clients/vscode.

Needs code-server on the PATH, npm, and Debian's chromium and chromium-driver. The test of the editor goes the same way.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

from bench.chromium import Window, chromium
from hummock import models
from tests.client.consumers import ROOT, run
from tests.console.pictures import with_few_colours
from tests.service.running import in_process

FOLDER: Final = ROOT / "docs" / "clients" / "vscode"
PICTURES: Final = ("follow", "remember", "memories", "ask", "memory")
"""Names of the pictures, in the order in which they are taken."""
REMARK: Final = "Dates of partners without a zone mean UTC"

Shoot = Callable[[str], None]

_LISTENS = "HTTP server listening on "
_WAIT_S = 60
_SIZE = (1120, 640)
_SOURCE = """export interface Refund { asked: Date }

/** Reads a date of a partner's file. */
export function parseDate(text: string): Date {
  return new Date(/[Z+]/.test(text) ? text : `${text}Z`);
}

/** A refund is late on the fifteenth day. */
export function isLate(refund: Refund, now: Date): boolean {
  return now.getTime() - refund.asked.getTime() >= 14 * 86_400_000;
}
"""


def make_folder(folder: Path) -> Path:
    """A repository with one source file; its name is the project's."""
    (folder / ".git").mkdir(parents=True)
    (folder / "dates.ts").write_text(_SOURCE, encoding="utf-8")
    return folder


def pack(path: Path) -> None:
    """Build the extension as it is installed."""
    run(["npm", "run", "--silent", "package", "--", "--out", path], ROOT / "clients/vscode")


@contextmanager
def editor(home: Path, package: Path, target: str) -> Iterator[str]:
    """Address of an editor with the extension alone, and no folder of the user's own."""
    settings = {
        "hummock.target": target,
        "hummock.command": str(Path(sys.executable).with_name("hummock")),
        "security.workspace.trust.enabled": False,
        "workbench.startupEditor": "none",
        "editor.minimap.enabled": False,
        "editor.fontLigatures": False,
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


def walk(window: Window, address: str, folder: Path, shoot: Shoot) -> None:
    """Follow the folder, remember a selection, see it beside its file, ask for it and open it.

    `shoot` is called with each of PICTURES when the editor shows it. Raises: TimeoutException for what is never shown.
    """
    window.resize(*_SIZE)
    window.open(f"{address}?folder={folder}")
    _shown(window, ".statusbar-item", "Hummock")
    _command(window, "Explorer: Focus on Memories of the File View")
    window.driver.find_element(By.XPATH, "//*[contains(@class,'monaco-list-row')]//*[text()='dates.ts']").click()
    _shown(window, ".view-lines", "parseDate")
    _command(window, "Hummock: Index and Follow the Folder")
    _shown(window, ".pane .monaco-list-row", "parseDate")
    shoot("follow")

    window.driver.find_element(By.XPATH, "//*[contains(@class,'view-line')]//*[contains(text(),'parseDate')]").click()
    window.press(Keys.HOME)
    for _ in range(3):
        window.chord(Keys.SHIFT, Keys.ARROW_DOWN)
    _command(window, "Hummock: Remember Selection")
    _shown(window, ".quick-input-message", "What should be known about it?")
    window.press(REMARK)
    shoot("remember")
    window.press(Keys.ENTER)
    _shown(window, ".pane .monaco-list-row", "note · line 4")
    shoot("memories")

    _command(window, "Hummock: Ask")
    _shown(window, ".quick-input-message", "What do you want to know?")
    window.press("which zone has a date without one?", Keys.ENTER)
    _shown(window, ".quick-input-list .monaco-list-row", "note · dates.ts:4")
    shoot("ask")
    window.press(Keys.ENTER)
    _shown(window, ".tab .label-name", f"{REMARK}.md")
    _shown(window, ".view-lines", "UTC")
    shoot("memory")


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


def main() -> None:
    """Writes the pictures, of a service with the models that HUMMOCK_MODELS names."""
    models_dir = Path(os.environ.get("HUMMOCK_MODELS", ROOT / ".demo" / "models")).absolute()
    with TemporaryDirectory() as name:
        home = Path(name, "home")
        home.mkdir()
        package = home / "hummock.vsix"
        pack(package)
        folder = make_folder(Path(name, "shop"))
        taken: dict[str, str] = {}
        with (
            in_process(Path(name, "data"), models_dir, models.AUTO) as service,
            editor(home, package, service.target) as address,
            chromium() as window,
        ):
            walk(window, address, folder, lambda each: taken.update({each: window.driver.get_screenshot_as_base64()}))
            FOLDER.mkdir(exist_ok=True)
            for each, png in taken.items():
                (FOLDER / f"{each}.png").write_bytes(with_few_colours(window, png))


if __name__ == "__main__":
    main()
