"""`hummock stop`: the service of a directory ends in order, whoever started it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from hummock.cli.main import app
from hummock_client import Client
from tests.service.running import in_process

pytestmark = [pytest.mark.long, pytest.mark.timed]

HOLDS = """
import fcntl, os, sys
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o600)
fcntl.flock(file, fcntl.LOCK_EX)
os.write(file, f"{sys.argv[2] or os.getpid()}\\n".rjust(20).encode())
print("held", flush=True)
sys.stdin.read()
"""


def stop(data: Path) -> Result:
    return CliRunner().invoke(app, ["stop", "--data", str(data)])


def test_the_service_ends_in_order_and_once_is_enough(tmp_path: Path, models_dir: Path, model: str) -> None:
    """D9."""
    with in_process(tmp_path, models_dir, model) as service:
        with Client(service.target) as client:
            client.note("shop", "the lamp is lit")
        ended = stop(tmp_path)
        assert (ended.exit_code, service.popen.wait(60)) == (0, 0)
        assert f"stopped (process {service.popen.pid}, over {tmp_path})" in ended.stderr
    again = stop(tmp_path)
    assert again.exit_code == 0
    assert f"no service runs over {tmp_path}" in again.stderr
    with in_process(tmp_path, models_dir, model) as service, Client(service.target) as client:
        assert client.recall("shop", "which lamp?").hits


def test_no_service_is_stopped_where_there_is_no_directory(tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere"
    assert stop(nowhere).exit_code == 0
    assert not nowhere.exists()


@pytest.mark.parametrize(
    ("pid", "said"), [("", "which is no hummock on this machine"), ("?", "does not say by which process")]
)
def test_another_program_is_left_alone(tmp_path: Path, pid: str, said: str) -> None:
    """A number in a file may be anybody's."""
    command = [sys.executable, "-c", HOLDS, str(tmp_path / "lock"), pid]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        refused = stop(tmp_path)
        assert refused.exit_code == 1
        assert said in refused.stderr
        assert holder.poll() is None
        holder.communicate()
    assert holder.returncode == 0
