"""The real service for a bench: its settings in a directory of its own, and `hummock serve` as a child process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc

from bench import toy_models
from hummock import models
from hummock.config import Settings, load_settings
from hummock_client.channel import channel_options
from hummock_tools.cli.background import CONSOLE_ON, SERVING_ON

_PREFIX = "HUMMOCK_"
_CONNECT_S = 60.0
_STOP_S = 60.0


def say(line: str) -> None:
    """A line of progress, for people."""
    print(line, file=sys.stderr, flush=True)


class BenchFailed(Exception):
    """A measurement failed; the message says which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """A place where the service keeps its settings, its data and, unless told otherwise, its models."""

    directory: Path
    model: str

    @classmethod
    def prepare(cls, directory: Path, model: str, models_dir: Path | None) -> Bench:
        """Writes the settings and puts the model there: the toy model is built, another is fetched if need be."""
        models_dir = models_dir.absolute() if models_dir else directory / "models"
        if model == toy_models.TINY:
            name = toy_models.build_tiny(models_dir).name
        else:
            wanted = models.candidates(model, models_dir)
            name = models.pull_first(wanted, models_dir, say).name
        return cls.with_model(directory, name, models_dir)

    @classmethod
    def with_model(cls, directory: Path, name: str, models_dir: Path, store: str | None = None) -> Bench:
        """Writes the settings for a model that is in `models_dir`, an absolute path; `store` is a database."""
        values = {"data_dir": str(directory / "data"), "models_dir": str(models_dir), "model": name, "port": 0}
        if store:
            values["store"] = store
        # A JSON string or number reads the same in TOML.
        lines = [f"{key} = {json.dumps(value)}\n" for key, value in {**values, "log_level": "warning"}.items()]
        (directory / "hummock.toml").write_text("".join(lines), encoding="utf-8")
        return cls(directory=directory, model=name)

    @property
    def data_dir(self) -> Path:
        """Directory of the store."""
        return self.directory / "data"

    def settings(self) -> Settings:
        """The settings that the child process runs with, for the use cases in this process."""
        return load_settings(environ={"HUMMOCK_CONFIG": str(self.directory / "hummock.toml")})

    @contextmanager
    def serving(self, readers: int = 0, credentials: grpc.ChannelCredentials | None = None) -> Iterator[Serving]:
        """`hummock serve` on a free port of loopback, for as long as the block runs.

        Args:
            readers: Processes alongside it.
            credentials: Credentials of a channel to it, if its settings enable TLS.

        Raises:
            BenchFailed: It did not start, or did not end well.
        """
        # What this machine sets for its own service is none of the bench's.
        env = {name: value for name, value in os.environ.items() if not name.startswith(_PREFIX)}
        env["HUMMOCK_CONFIG"] = str(self.directory / "hummock.toml")
        # An installed package has its bytecode; to make it anew at every start takes a fifth of the time of one.
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        started_s = time.perf_counter()
        command = [sys.executable, "-m", "hummock", "serve", "--readers", str(readers)]
        with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, encoding="utf-8") as process:
            try:
                with _channel(_target(process), credentials) as (target, channel):
                    grpc.channel_ready_future(channel).result(timeout=_CONNECT_S)
                    yield Serving(process_id=process.pid, target=target, channel=channel, started_s=started_s)
                _stop(process)
            finally:
                process.kill()


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """A service that lets calls in, with its readers; `started_s` is when it was executed, by `time.perf_counter`."""

    process_id: int
    target: str
    channel: grpc.Channel
    started_s: float

    def cpu_s(self) -> float:
        """CPU seconds of the processes so far, of all their threads, in user and in kernel mode."""
        return sum(map(process_cpu_s, self._processes()))

    def resident_bytes(self) -> int:
        """Memory of the processes that is in RAM, shared pages such as libraries and the mapped store included."""
        return self._status_bytes("VmRSS:")

    def anonymous_bytes(self) -> int:
        """Memory that is the processes' own: neither the mapped store nor its libraries' files."""
        return self._status_bytes("RssAnon:")

    def _processes(self) -> list[int]:
        """The service and its readers."""
        tasks = Path(f"/proc/{self.process_id}/task").glob("*/children")
        return [self.process_id, *(int(child) for path in tasks for child in path.read_text().split())]

    def _status_bytes(self, field: str) -> int:
        return sum(_status_bytes(process_id, field) for process_id in self._processes())


@contextmanager
def console_at(target: str) -> Iterator[str]:
    """`hummock console` on a free port, over the service at a target; its address. Raises: BenchFailed."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(_PREFIX)}
    command = [sys.executable, "-m", "hummock", "console", "--port", "0", "--target", target]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, encoding="utf-8") as process:
        try:
            line = process.stdout.readline() if process.stdout else ""
            if not line.startswith(CONSOLE_ON):
                raise BenchFailed("the console did not start; it says why above")
            yield line.removeprefix(CONSOLE_ON).strip()
        finally:
            process.kill()


@contextmanager
def _channel(target: str, credentials: grpc.ChannelCredentials | None) -> Iterator[tuple[str, grpc.Channel]]:
    options = channel_options(target)
    channel = (
        grpc.secure_channel(target, credentials, options=options)
        if credentials
        else grpc.insecure_channel(target, options=options)
    )
    with channel:
        yield target, channel


def process_cpu_s(process_id: int) -> float:
    """CPU seconds of a process so far, in steps of the kernel's clock tick (10 ms)."""
    # The name, in parentheses, may hold blanks: utime and stime are the 12th and 13th field after it.
    fields = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _status_bytes(process_id: int, field: str) -> int:
    status = Path(f"/proc/{process_id}/status")
    if not status.exists():
        raise BenchFailed(f"{status} is not there; memory is measured on Linux only")
    line = next(line for line in status.read_text().splitlines() if line.startswith(field))
    return 1024 * int(line.split()[1])


def _target(process: subprocess.Popen[str]) -> str:
    line = process.stdout.readline() if process.stdout is not None else ""
    if not line.startswith(SERVING_ON):
        raise BenchFailed("the service did not start; what it said stands above")
    return line.removeprefix(SERVING_ON).strip()


def _stop(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        status = process.wait(_STOP_S)
    except subprocess.TimeoutExpired as expired:
        raise BenchFailed(f"the service did not end within {_STOP_S:.0f} s") from expired
    if status != 0:
        raise BenchFailed(f"the service ended with status {status}")
