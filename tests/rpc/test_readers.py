"""Processes alongside the service: when they start, when one dies, and when all end."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from threading import Thread

import pytest

from hummock.core.errors import StartError
from hummock.rpc import readers
from hummock.rpc.listening import TcpAddress, UnixAddress
from hummock.rpc.readers import LISTENING_ON, Readers

pytestmark = pytest.mark.timed

ADDRESS, SERVICE = TcpAddress(host="127.0.0.1", port=7420), UnixAddress(path=Path("/run/service.sock"))

_BEATS = """
import threading
def beat():
    while True:
        os.write(1, b".")
        threading.Event().wait(0.05)
threading.Thread(target=beat, daemon=True).start()
"""

OBEDIENT = f"""
import os, sys
told = sys.stdin.readline() + sys.stdin.readline()
with open(sys.argv[1], "w") as pipe:
    pipe.write(f"{{os.getpid()}}\\n{{told}}")
print({LISTENING_ON!r} + "here", flush=True)
{_BEATS}
sys.stdin.read()
"""
"""Tells the pipe who it is and what it was told, listens, and ends when its stdin does."""


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    return path


def begun(pipe: Path) -> tuple[int, list[str]]:
    """Waits for a reader to begin: its process and what it was told."""
    process, *told = pipe.read_text().splitlines()
    return int(process), told


def command(program: str, *arguments: str) -> list[str]:
    return [sys.executable, "-c", program, *arguments]


def is_there(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_reader_that_dies_is_followed_by_another_with_the_same_orders(
    pipe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers, "_PAUSES_S", (0.0, 0.0))
    told = ["the settings", '{"address": "127.0.0.1:7420", "service": "unix:/run/service.sock"}']
    with Readers(1, command(OBEDIENT, str(pipe)), "the settings") as beside:
        seen: list[int] = []
        thread = Thread(target=beside.listen, args=(ADDRESS, SERVICE))
        thread.start()
        for _ in range(3):
            process, heard = begun(pipe)
            seen.append(process)
            assert heard == told
            thread.join()
            if len(seen) < 3:
                os.kill(process, signal.SIGKILL)
    assert len(set(seen)) == 3
    assert not any(map(is_there, seen))


@pytest.mark.long
@pytest.mark.parametrize("rest", ["sys.stdin.read()", "import signal\nsignal.pause()"])
def test_all_ends_while_a_reader_begins_anew(pipe: Path, monkeypatch: pytest.MonkeyPatch, rest: str) -> None:
    """The second one never listens; it goes with the others, whether it looks at its stdin or not."""
    monkeypatch.setattr(readers, "_PAUSES_S", (0.0, 0.0))
    monkeypatch.setattr(readers, "_STOP_S", 0.5)
    first_time = pipe.parent / "first time"
    first_time.touch()
    silent = f"""
import os, sys
told = sys.stdin.readline() + sys.stdin.readline()
is_first = os.path.exists({str(first_time)!r})
if is_first:
    os.remove({str(first_time)!r})
    print({LISTENING_ON!r} + "here", flush=True)
with open(sys.argv[1], "w") as pipe:
    pipe.write(f"{{os.getpid()}}\\n")
{rest}
"""
    with Readers(1, command(silent, str(pipe)), "the settings") as beside:
        beside.listen(ADDRESS, SERVICE)
        first, _ = begun(pipe)
        os.kill(first, signal.SIGKILL)
        second, _ = begun(pipe)
    assert not is_there(first)
    assert not is_there(second)


@pytest.mark.long
def test_a_reader_that_falls_silent_is_killed_and_followed_by_another(
    pipe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """V12: stopped, it would keep its share of the port, and whoever is given to it would wait."""
    monkeypatch.setattr(readers, "_PAUSES_S", (0.0, 0.0))
    with Readers(1, command(OBEDIENT, str(pipe)), "the settings") as beside:
        thread = Thread(target=beside.listen, args=(ADDRESS, SERVICE))
        thread.start()
        first, _ = begun(pipe)
        thread.join()
        os.kill(first, signal.SIGSTOP)
        second, _ = begun(pipe)
        assert not is_there(first)
    assert not is_there(second)


@pytest.mark.parametrize(
    ("count", "program", "start_s"), [(1, "import signal; signal.pause()", 0.1), (2, "raise SystemExit(1)", 60.0)]
)
def test_a_reader_that_does_not_start_or_takes_too_long_fails_the_start(
    monkeypatch: pytest.MonkeyPatch, count: int, program: str, start_s: float
) -> None:
    monkeypatch.setattr(readers, "_START_S", start_s)
    with (
        Readers(count, command(program), "the settings") as beside,
        pytest.raises(StartError, match="a reader did not start"),
    ):
        beside.listen(ADDRESS, SERVICE)


def test_one_that_does_not_end_is_ended(pipe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "_STOP_S", 0.0)
    stubborn = OBEDIENT + "import signal\nsignal.pause()\n"
    with Readers(1, command(stubborn, str(pipe)), "the settings") as beside:
        thread = Thread(target=beside.listen, args=(ADDRESS, SERVICE))
        thread.start()
        process, _ = begun(pipe)
        thread.join()
    assert not is_there(process)


def test_readers_that_were_told_nothing_end_too() -> None:
    with Readers(1, command("import sys; sys.stdin.read()"), "the settings") as beside:
        (reader,) = beside._readers
        process = reader.process
    assert process is not None
    assert process.poll() == 0
