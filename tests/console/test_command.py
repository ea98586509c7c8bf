"""`hummock console` as a process: where it listens, how it ends, and what it says when it cannot begin."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hummock.access.tokens import TokenFile
from hummock.cli.main import app
from hummock.core.access import Scope
from hummock_tools.cli.background import CONSOLE_ON
from tests.cli.test_failures import python
from tests.console.browser import Browser
from tests.console.conftest import answering
from tests.service.calls import learn
from tests.service.inputs import note
from tests.service.running import Stubs, connected, in_process

pytestmark = pytest.mark.long


@pytest.fixture
def running(service: Stubs) -> Iterator[subprocess.Popen[str]]:
    environ = {**os.environ, "HUMMOCK_TARGET": service.target}
    command = (sys.executable, "-m", "hummock", "console", "--port", "0")
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_says_where_it_answers_and_ends_in_order(running: subprocess.Popen[str], number: signal.Signals) -> None:
    assert running.stdout is not None
    assert running.stderr is not None
    line = running.stdout.readline()
    assert line.startswith(f"{CONSOLE_ON}http://127.0.0.1:")
    browser = Browser(int(line.rpartition(":")[2]), "en")
    assert browser.open("/").all("h1")
    running.send_signal(number)
    assert running.wait(30) == 0
    assert running.stderr.read() == "ended\n"


def test_a_port_that_is_taken_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = CliRunner().invoke(app, ["console", "--port", str(taken.getsockname()[1])])
    assert done.exit_code == 1
    assert "Address already in use" in done.stderr


def test_its_token_is_its_right(tmp_path: Path, models_dir: Path, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with in_process(tmp_path, models_dir, model) as service:
        with connected(service.target) as stubs:
            learn(stubs, "shop", note("the lamp is lit", id="lamp"))
        _, secret = TokenFile(tmp_path).create("reader", [Scope.parse("shop:read")], now_s=1.0)
        with answering(service.target) as port:
            answer = Browser(port, "en").get("/ask", None, project="shop", q="lamp")
            assert (answer.status, "HUMMOCK_TOKEN" in answer.page.text) == (401, True)
        monkeypatch.setenv("HUMMOCK_TOKEN", secret)
        with answering(service.target) as port:
            browser = Browser(port, "en")
            projects = browser.get("/")
            assert projects.status == 403
            assert [each["name"] for each in projects.page.all("input") if each.get("id") == "open"] == ["project"]
            asked = browser.open("/ask", project="shop", q="lamp")
            assert len(asked.links("/memory")) == 1
            form = {"form_token": asked.hidden("form_token"), "project": "shop", "kind": "4", "content": "it is out"}
            assert browser.post("/memory/add", form).status == 403


def test_a_missing_package_is_named_with_its_extra() -> None:
    program = (
        "import sys\n"
        "sys.modules['jinja2'] = None\n"
        "from hummock.cli.main import main\n"
        "sys.argv = ['hummock', 'console', '--port', '0']\n"
        "main()"
    )
    done = python("-c", program)
    assert done.returncode == 1
    assert "pip install 'hummock[console]'" in done.stderr
