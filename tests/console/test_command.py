"""`hummock console` and `hummock serve --console` as processes: where they listen, how they end, what they say."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

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
from tests.service.running import Process, Stubs, connected, in_process

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
    assert (running.wait(30), running.stderr.read()) == (0, "ended\n")


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


@contextmanager
def heard(data: Path, models_dir: Path, model: str, port: int) -> Iterator[tuple[Process, IO[str]]]:
    """A service with a console on a port, and what both say; that ends when both are gone."""
    reading, writing = os.pipe()
    environ = {"HUMMOCK_CONSOLE_PORT": str(port)}
    with (
        os.fdopen(reading) as lines,
        os.fdopen(writing, "w") as said,
        in_process(data, models_dir, model, environ, said) as service,
    ):
        said.close()
        yield service, lines


def _line_of(lines: IO[str], beginning: str) -> str:
    return next(line.rstrip() for line in lines if line.startswith(beginning))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_it_ends_with_its_service_however(tmp_path: Path, models_dir: Path, model: str, number: signal.Signals) -> None:
    with heard(tmp_path, models_dir, model, 0) as (service, lines):
        port = int(_line_of(lines, CONSOLE_ON).rpartition(":")[2])
        with connected(service.target) as stubs:
            learn(stubs, "shop", note("the lamp is lit", id="lamp"))
        assert "the lamp is lit" in Browser(port, "en").open("/garden", project="shop").text
        service.popen.send_signal(number)
        assert service.popen.wait(60) == (0 if number is signal.SIGTERM else -number)
        # Both have let go of it.
        assert "without it" not in lines.read()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), timeout=60)


def test_a_port_that_is_taken_is_said_and_the_service_serves_on(tmp_path: Path, models_dir: Path, model: str) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        heard(tmp_path, models_dir, model, taken.getsockname()[1]) as (service, lines),
    ):
        assert "Address already in use" in _line_of(lines, "error: 127.0.0.1")
        assert "the service runs without it" in _line_of(lines, "the console has ended")
        with connected(service.target) as stubs:
            learn(stubs, "shop", note("the lamp is lit", id="lamp"))


@pytest.mark.parametrize(
    ("missing", "flags", "extra"),
    [("jinja2", "'--console'", "console"), ("opentelemetry.sdk", "'--traces', 'http://127.0.0.1:4317'", "traces")],
)
def test_a_missing_package_is_named_before_anything_starts(
    tmp_path: Path, missing: str, flags: str, extra: str
) -> None:
    program = (
        "import sys\n"
        f"sys.modules[{missing!r}] = None\n"
        "from hummock.cli.main import main\n"
        f"sys.argv = ['hummock', 'serve', '--data', {str(tmp_path)!r}, {flags}]\n"
        "main()"
    )
    done = python("-c", program)
    assert done.returncode == 1
    assert f"pip install 'hummock[{extra}]'" in done.stderr
    assert list(tmp_path.iterdir()) == []
