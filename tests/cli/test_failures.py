"""Messages that the user reads when something is wrong, and imports of the light commands."""

from __future__ import annotations

import os
import subprocess
import sys

import grpc
import pytest
from typer.testing import CliRunner

from hummock.cli.main import app
from hummock_tools.cli.connection import CommandFailed, packages_of
from tests.cli.conftest import Run
from tests.cli.fake_service import FakeService

pytestmark = pytest.mark.long

NOBODY = "unix:/nonexistent/hummock.sock"
HEAVY = "numba", "numpy", "onnxruntime", "lmdb", "tokenizers", "structlog"


def python(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A Python process of its own that finds the packages of this one."""
    paths = os.pathsep.join(path for path in sys.path if path)
    return subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": paths, "COLUMNS": "80", **environment},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


def test_an_unreachable_service_is_named_with_the_fix() -> None:
    result = CliRunner().invoke(app, ["recall", "x", "--project", "p", "--target", NOBODY])
    assert result.exit_code == 1
    assert result.stderr == f"error: the service cannot be reached: is `hummock serve` running? target {NOBODY}\n"
    assert result.stdout == ""


def test_a_target_that_is_none_is_explained() -> None:
    result = CliRunner().invoke(app, ["status", "--target", "host:port"])
    assert result.exit_code == 1
    assert "error: host:port is no target" in result.stderr


def test_a_refusal_is_one_line_with_the_services_words(run: Run, fake: FakeService) -> None:
    fake.refusal = (grpc.StatusCode.INVALID_ARGUMENT, "top_k: must be at most 200")
    result = run("recall", "x", "--top-k", "5000")
    assert result.exit_code == 1
    assert result.stderr == "error: top_k: must be at most 200\n"


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("it must be 0 to", ("recall", "x", "--top-k", "-1")),
        ("it must be 0 to", ("render", "x", "--budget", "-5")),
        ("it must be 0 to", ("render", "x", "--budget", str(1 << 32))),
        ("it must be 0 to", ("learning", "status", "--turn", str(1 << 32))),
        ("it must be 0 to", ("learning", "set", "--high-above", str(1 << 32))),
        ("it must be 0 to", ("sessions", "watch", "s", "--after", str(1 << 64))),
        ("it must be 0 to", ("memories", "watch", "--after", "-1")),
        ("is not valid UTF-8", ("recall", "\udcff")),
        ("is not valid UTF-8", ("recall", "x", "--tag", "\udcff")),
        ("is not valid UTF-8", ("search", "x", "--session", "\udcff")),
        ("is not valid UTF-8", ("render", "--id", "\udcff")),
        ("is not valid UTF-8", ("memories", "get", "\udcff")),
        ("is not valid UTF-8", ("memories", "edit", "a", "--title", "\udcff")),
        ("is not valid UTF-8", ("memories", "ls", "--page", "\udcff")),
        ("is not valid UTF-8", ("forget", "--speaker", "\udcff")),
        ("is not valid UTF-8", ("sessions", "show", "s", "--page", "\udcff")),
    ],
)
def test_what_no_request_can_hold_is_a_usage_error(
    run: Run, fake: FakeService, said: str, words: tuple[str, ...]
) -> None:
    """S0-36."""
    result = run(*words)
    assert (result.exit_code, fake.asked) == (2, [])
    assert "Invalid value" in result.stderr
    assert said in result.stderr


def test_a_missing_package_names_the_extra() -> None:
    expected = r"lmdb, which is not installed; pip install 'hummock\[server\]'"
    with pytest.raises(CommandFailed, match=expected), packages_of("server"):
        raise ModuleNotFoundError("No module named 'lmdb'", name="lmdb")
    with pytest.raises(ModuleNotFoundError), packages_of("server"):
        raise ModuleNotFoundError("No module named 'hummock.mistake'", name="hummock.mistake")


def test_light_commands_import_nothing_of_the_server() -> None:
    program = (
        "import sys; import hummock.cli.main; import hummock_client; "
        f"print([name for name in ('pydantic', *{HEAVY!r}) if name in sys.modules])"
    )
    done = python("-c", program)
    assert (done.stdout, done.returncode) == ("[]\n", 0), done.stderr


def test_help_is_printed_without_the_servers_packages() -> None:
    blocker = (
        "import sys\n"
        f"sys.modules.update(dict.fromkeys({HEAVY!r}))\n"  # None makes an import fail
        "sys.argv = ['hummock', *sys.argv[1:]]\n"
        "from hummock.cli.main import main\n"
        "main()\n"
    )
    helped = python("-c", blocker, "recall", "--help")
    assert helped.returncode == 0, helped.stderr
    assert "--preset" in helped.stdout
    refused = python("-c", blocker, "serve")
    assert refused.returncode == 1
    assert refused.stderr.startswith("error: this command needs the package ")
    assert "pip install 'hummock[server]'" in refused.stderr


def test_no_home_and_no_data_directory_names_the_variable() -> None:
    done = python("-m", "hummock", "models", "ls", HOME="", XDG_DATA_HOME="")
    assert done.returncode == 1
    assert done.stderr.startswith("error: there is no HOME")
    assert "HUMMOCK_DATA" in done.stderr


def test_an_unknown_variable_is_a_line_on_stderr_and_keeps_nothing_from_running() -> None:
    links = {"HUMMOCK_SERVICE_HOST": "10.0.0.7", "HUMMOCK_PORT": "tcp://10.0.0.7:7420"}
    done = python("-m", "hummock", "models", "ls", HUMMOCK_DATA="/nowhere", HUMMOCK_PROT="1", **links)
    assert done.returncode == 0
    assert done.stderr.startswith("HUMMOCK_PROT is no setting and does nothing; did you mean HUMMOCK_PORT?\n")
    assert done.stderr.count("HUMMOCK_") == 2


def test_an_ascii_terminal_gets_escapes_instead_of_a_traceback(fake: FakeService) -> None:
    done = python("-m", "hummock", "projects", "ls", "--target", fake.target, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert done.returncode == 0, done.stderr
    assert "\\u8fd8" in done.stdout
