"""Commands whose output nobody can write: a full device, a reader that has left, a stream that the shell closed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.cli.fake_service import FakeService

pytestmark = pytest.mark.long

# Starts each command as a fork, so that all of them import once.
_FORKING = """
import json, os, sys
import typer.rich_utils
from hummock.cli.main import main
ended = []
for words, place in json.load(sys.stdin):
    said = os.memfd_create("stderr")
    if (child := os.fork()) == 0:
        reader, pipe = os.pipe()
        os.close(reader)
        os.dup2(said, 2)
        os.dup2(os.open("/dev/full", os.O_WRONLY) if place == "full" else pipe, 1)
        sys.argv = ["hummock", *words]
        try:
            main()
        except SystemExit as end:
            sys.stdout.flush()
            os._exit(end.code or 0)
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(70)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.lseek(said, 0, os.SEEK_SET)
    ended.append((status, os.read(said, 1 << 20).decode()))
print(json.dumps(ended))
"""

# Every way to write: a line, a table, JSON, a stream, help.
CHEAP: tuple[str, ...] = (
    "--version",
    "--help",
    "status",
    "status --json",
    "recall x",
    "render x",
    "learn x --json",
    "memories ls",
    "memories watch --json",
    "sessions watch 会话-1",
)


def run_all(commands: Sequence[tuple[list[str], str]], environ: dict[str, str]) -> list[tuple[int, str]]:
    """Status and stderr of each."""
    done = subprocess.run(
        [sys.executable, "-c", _FORKING],
        input=json.dumps(commands),
        env={**os.environ, "HUMMOCK_PROJECT": "还款", "NO_COLOR": "1", **environ},
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    return [(status, said) for status, said in json.loads(done.stdout)]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_every_command_ends_with_one_line_on_a_full_device(fake: FakeService, tmp_path: Path) -> None:
    commands = [line.split() for line in CHEAP]
    environ = {"HUMMOCK_TARGET": fake.target, "HUMMOCK_DATA": str(tmp_path)}
    for words, (status, said) in zip(commands, run_all([(each, "full") for each in commands], environ), strict=True):
        assert (status, said.splitlines()[-1:]) == (
            1,
            ["error: the output cannot be written: No space left on device"],
        ), (words, said)
        assert "Traceback" not in said, words


def test_every_command_ends_quietly_when_its_reader_has_left(fake: FakeService, tmp_path: Path) -> None:
    commands = [line.split() for line in CHEAP]
    environ = {"HUMMOCK_TARGET": fake.target, "HUMMOCK_DATA": str(tmp_path)}
    for words, (status, said) in zip(commands, run_all([(each, "left") for each in commands], environ), strict=True):
        assert status == 1, (words, said)
        assert "error" not in said.lower(), words
        assert "Traceback" not in said, words


@pytest.mark.parametrize(
    ("redirected", "status", "said"),
    [
        (">&-", 1, "error: stdout is closed\n"),
        ("2>&-", 0, ""),
        ("<&-", 0, ""),
        ("<&- 2>&-", 0, ""),
        ("<&- >&- 2>&-", 1, ""),
    ],
)
def test_a_stream_that_the_shell_closed_is_no_traceback(redirected: str, status: int, said: str) -> None:
    command = f'"{sys.executable}" -m hummock --version {redirected}'
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, encoding="utf-8", check=False)
    assert (done.returncode, done.stderr) == (status, said)
