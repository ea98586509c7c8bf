"""One Chromium for the session, at a `hummock console` over a `hummock serve`, both as processes."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest

from bench.chromium import PACKAGES, Window, chromium, missing_programs
from bench.service import console_at
from tests.alone import alone_in
from tests.console.test_pages import PAGES, remember
from tests.service.running import Stubs, connected, in_process

_AXE = Path(__file__).with_name("axe")
_INSTALL_S = 300


def _lack(said: str) -> None:
    """Skips the test, aloud; with REQUIRE_BROWSER=1 it fails."""
    if os.environ.get("REQUIRE_BROWSER") == "1":
        pytest.fail(f"REQUIRE_BROWSER=1, and {said}")
    pytest.skip(said)


# Of the package, not the session: a browser that shows a page that lives would take its share of a core until the end.
@pytest.fixture(scope="package")
def service(tmp_path_factory: pytest.TempPathFactory, models_dir: Path, model: str) -> Iterator[Stubs]:
    """A service of its own process, for all tests of this folder."""
    with in_process(tmp_path_factory.mktemp("data"), models_dir, model) as process, connected(process.target) as stubs:
        yield stubs


@pytest.fixture(scope="package")
def origin(chromium_window: Window, service: Stubs) -> Iterator[str]:
    """The address of a console of its own process."""
    with console_at(service.target) as address:
        yield address


@pytest.fixture(scope="package")
def chromium_window() -> Iterator[Window]:
    if missing := missing_programs():
        _lack(f"the console cannot be shown: {' and '.join(missing)} missing; Debian's {PACKAGES} have them")
    with chromium() as window:
        yield window


@pytest.fixture
def window(chromium_window: Window) -> Iterator[Window]:
    """The window, English and light unless a test says otherwise. Whatever it was shown, no page has complained."""
    chromium_window.speak("en")
    chromium_window.paint("light")
    yield chromium_window
    assert chromium_window.complaints() == []
    chromium_window.open("about:blank")


@pytest.fixture(scope="package")
def remembered(service: Stubs) -> str:
    """A project with something on every page; tests only look at it."""
    remember(service, "remembered")
    return "remembered"


@pytest.fixture(scope="package")
def pages(origin: str, remembered: str) -> dict[str, str]:
    """The address of each page of PAGES, by its name."""
    return {
        name: f"{origin}{name.partition('?')[0]}?{urlencode({'project': remembered, **query})}"
        for name, query in PAGES.items()
    }


@pytest.fixture(scope="package")
def axe() -> str:
    """The script of axe-core, which npm installs as axe/package-lock.json says."""
    npm = shutil.which("npm")
    if npm is None:
        _lack("npm is missing, which installs axe-core")
    script, lock = _AXE / "node_modules/axe-core/axe.min.js", _AXE / "package-lock.json"
    with alone_in(_AXE):
        if not script.exists() or script.stat().st_ctime < lock.stat().st_mtime:
            command = (str(npm), "ci", "--silent", "--ignore-scripts")
            run = subprocess.run(command, cwd=_AXE, capture_output=True, text=True, timeout=_INSTALL_S)
            assert run.returncode == 0, run.stdout + run.stderr
        return script.read_text(encoding="utf-8")
