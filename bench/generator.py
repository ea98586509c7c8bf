"""Load from compiled code: `load.c`, compiled at its first use, with requests that were made before.

A generator in Python would take as much of the cores as the service does.
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from bench.asking import Latency
from bench.service import BenchFailed

_SOURCE = Path(__file__).with_name("load.c")
_INCLUDED = Path(__file__).with_name("http2.h")
_LIMIT_S = 600.0

Seconds = NDArray[np.float64]


class NoCompiler(BenchFailed):
    """There is no load on this machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Results of one run of the generator.

    Attributes:
        latency: Open loop: from the moment at which a call was to be sent, so that a service that falls behind is not
            spared. Closed loop: from sending.
        failed: Calls without a reply; they are in no latency.
        own_cpu_share: Share of one core that the generator took.
        reply_bytes: Total size of the replies.
        replies: Messages that came for the first request and every 16th after it, in the order in which they came.
    """

    latency: Latency
    calls: int
    failed: int
    elapsed_s: float
    own_cpu_share: float
    reply_bytes: int
    replies: tuple[bytes, ...]

    @property
    def calls_per_s(self) -> float:
        """Answered calls a second, from the first request to the last reply."""
        return (self.calls - self.failed) / self.elapsed_s

    def line(self) -> str:
        """A line for people."""
        failed = f", {self.failed} failed" if self.failed else ""
        own = f"generator {100 * self.own_cpu_share:.0f} % of a core"
        return f"{self.calls_per_s:.0f}/s{failed}, {self.latency.line()}; {own}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Generator:
    """The compiled program."""

    program: Path

    @classmethod
    def compiled(cls, directory: Path) -> Generator:
        """Compiles the generator in a directory, unless it is there. Raises: NoCompiler; BenchFailed: it failed."""
        source = _SOURCE.read_bytes() + _INCLUDED.read_bytes()
        program = directory / f"load-{blake2b(source, digest_size=6).hexdigest()}"
        if not program.exists():
            names = [os.environ.get("CC", ""), "cc", "gcc", "clang", "g++"]
            compiler = next((found for name in names if name and (found := shutil.which(name))), None)
            if compiler is None:
                raise NoCompiler("the load generator needs a C compiler (cc, gcc or clang), and there is none")
            partial = program.with_suffix(".part")
            command = [compiler, "-x", "c", "-O2", "-std=gnu11", "-o", str(partial), str(_SOURCE)]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                raise BenchFailed(f"the load generator could not be compiled: {done.stderr.strip()}")
            partial.rename(program)
        return cls(program=program)

    def run(
        self, target: str, method: str, requests: Sequence[bytes], clients: int, due_s: Seconds | None = None
    ) -> Load:
        """Sends each request once, in order.

        Args:
            target: host:port of a service on this machine.
            method: For example "/hummock.v1.ContextService/Recall".
            requests: At least one; at most 16 KB each.
            clients: Connections, with one call at a time each.
            due_s: Open loop: when each request is to be sent, in seconds from the start, ascending. None is a closed
                loop: each client sends as soon as it has an answer.

        Raises: BenchFailed.
        """
        host, _, port = target.rpartition(":")
        with TemporaryDirectory(prefix="load-") as directory:
            files = Path(directory, "requests"), Path(directory, "latencies"), Path(directory, "replies")
            _write(files[0], requests, np.zeros(len(requests)) if due_s is None else due_s)
            loop = "closed" if due_s is None else "open"
            arguments = [host, port, target, method, str(clients), loop, *map(str, files)]
            try:
                done = subprocess.run([str(self.program), *arguments], capture_output=True, text=True, timeout=_LIMIT_S)
            except subprocess.TimeoutExpired as expired:
                raise BenchFailed(f"{len(requests)} calls did not end within {_LIMIT_S:.0f} s") from expired
            if done.returncode:
                raise BenchFailed(done.stderr.strip())
            times_s = np.fromfile(files[1], np.float64)
            replies = tuple(_messages(files[2].read_bytes()))
        calls, failed, elapsed_s, cpu_s, reply_bytes = done.stdout.split()
        if int(failed) == len(requests):
            raise BenchFailed("the service answered none of the calls")
        return Load(
            latency=Latency.of(times_s[times_s >= 0].tolist()),
            calls=int(calls),
            failed=int(failed),
            elapsed_s=float(elapsed_s),
            own_cpu_share=float(cpu_s) / float(elapsed_s),
            reply_bytes=int(reply_bytes),
            replies=replies,
        )


def arrivals_s(rate_per_s: float, count: int, seed: int) -> Seconds:
    """Arrival times of independent calls: (count,) seconds, ascending, a Poisson process of that rate."""
    gaps = np.random.default_rng(seed).exponential(1 / rate_per_s, count)
    return np.cumsum(gaps)


def _write(path: Path, requests: Sequence[bytes], due_s: Seconds) -> None:
    with path.open("wb") as file:
        file.write(struct.pack("=Q", len(requests)))
        for request, second in zip(requests, due_s, strict=True):
            file.write(struct.pack("=dI", second, len(request)) + request)


def _messages(data: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        (length,) = struct.unpack_from("=I", data, at)
        at += 4 + length
        yield data[at - length : at]
