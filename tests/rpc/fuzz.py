"""Sends hostile calls over the socket to every method: `python -m tests.rpc.fuzz --calls 1000000 --seed 1`.

A part of `make fuzz`. Several processes send; the service runs with the toy model. Whatever comes, it answers or
refuses, it never says that something went wrong inside, it does not end, and its memory does not grow.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import grpc
from google.protobuf.descriptor import MethodDescriptor

from bench import toy_models
from hummock.rpc.policy import SERVICES
from tests.rpc.hostile import hostile
from tests.service.running import Process, in_process

METHODS: tuple[MethodDescriptor, ...] = tuple(
    method for service in SERVICES for method in sorted(service.methods, key=lambda one: one.name)
)

BROKEN = frozenset({"INTERNAL", "UNKNOWN", "UNAVAILABLE", "UNIMPLEMENTED", "DATA_LOSS"})
"""Codes that no request may cause: UNAVAILABLE is what callers get from a service that has ended."""

MOST_GROWTH_MIB = 50
"""Largest growth of the service's own memory in 100,000 calls after the warm-up."""

_CHUNK = 500
_MOST_REPLIES = 3
_TIMEOUT_S = 20.0
_WATCH_TIMEOUT_S = 0.3
_WATCH_SHARE = 20
"""One call in so many is of a method that streams replies: they may wait for a write until their time is up."""
_WARM_UP_SHARE = 0.2
_MOST_SHOWN = 20


class Chunk(NamedTuple):
    """Calls of one process, by their numbers."""

    target: str
    seed: int
    numbers: range


@dataclass(slots=True, kw_only=True)
class Figures:
    """Counts and findings of a run.

    Attributes:
        codes: Calls by the code that they ended with.
        methods: Calls by method.
        broken: Calls that ended as none may: the number, the method and the code.
        rss_mib: The service's own memory after some numbers of calls, files that it maps left out.
        has_ended: Whether the service did.
    """

    codes: Counter[str] = field(default_factory=Counter)
    methods: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)
    rss_mib: list[tuple[int, float]] = field(default_factory=list)
    has_ended: bool = False

    @property
    def growth_mib(self) -> float:
        """Growth of memory in 100,000 calls, after the first fifth; with fewer calls, the total growth."""
        calls = self.rss_mib[-1][0]
        behind = [sample for sample in self.rss_mib if sample[0] >= _WARM_UP_SHARE * calls]
        (first, least), (last, most) = behind[0], behind[-1]
        return (most - least) / max(1.0, (last - first) / 100_000)


def run(directory: Path, models_dir: Path, model: str, *, calls: int, seed: int, processes: int) -> Figures:
    """Sends so many calls from so many processes."""
    figures = Figures()
    with (
        (directory / "service.log").open("w") as log,
        in_process(directory / "data", models_dir, model, stderr=log) as process,
    ):
        chunks = (
            Chunk(process.target, seed, range(first, min(first + _CHUNK, calls))) for first in range(0, calls, _CHUNK)
        )
        with get_context("spawn").Pool(processes) as pool:
            for codes, methods, broken in pool.imap_unordered(send, chunks):
                figures.codes += codes
                figures.methods += methods
                figures.broken += broken
                figures.has_ended = process.popen.poll() is not None
                if figures.has_ended:
                    break
                figures.rss_mib.append((figures.codes.total(), own_memory_mib(process)))
                print(
                    f"\r{figures.codes.total()} calls, {len(figures.broken)} broken, {figures.rss_mib[-1][1]:.0f} MiB",
                    end="",
                    file=sys.stderr,
                    flush=True,
                )
    return figures


def send(chunk: Chunk) -> tuple[Counter[str], Counter[str], list[str]]:
    """Makes the calls of a chunk, one after the other. Returns them by code and by method, and those that broke."""
    codes: Counter[str] = Counter()
    methods: Counter[str] = Counter()
    broken = []
    channel = _channel(chunk.target)
    for number in chunk.numbers:
        random = Random(f"{chunk.seed}/{number}")  # noqa: S311 - to be repeated, not to be secret
        method = _drawn(random)
        code = _call(channel, method, random)
        codes[code] += 1
        methods[method.name] += 1
        if code in BROKEN:
            broken.append(f"call {number} of seed {chunk.seed}: {method.name} ended with {code}")
    return codes, methods, broken


@cache
def _channel(target: str) -> grpc.Channel:
    """One a process, as long as it lives."""
    return grpc.insecure_channel(target, options=[("grpc.use_local_subchannel_pool", 1)])


def _drawn(random: Random) -> MethodDescriptor:
    while True:
        method = random.choice(METHODS)
        if not method.server_streaming or method.client_streaming or not random.randrange(_WATCH_SHARE):
            return method


def _call(channel: Any, method: MethodDescriptor, random: Random) -> str:
    """The code that a call ends with."""
    path = f"/{method.containing_service.full_name}/{method.name}"
    request = hostile(random, method.input_type)
    try:
        if method.client_streaming:
            requests = [request, *(hostile(random, method.input_type) for _ in range(random.randrange(3)))]
            _read(channel.stream_stream(path)(iter(requests), timeout=_TIMEOUT_S))
        elif method.server_streaming:
            _read(channel.unary_stream(path)(request, timeout=_WATCH_TIMEOUT_S))
        else:
            channel.unary_unary(path)(request, timeout=_TIMEOUT_S)
    except grpc.RpcError as error:
        code: grpc.StatusCode = error.code()
        return code.name
    return grpc.StatusCode.OK.name


def _read(stream: Any) -> None:
    """Some replies; then it hangs up."""
    for _, _ in zip(range(_MOST_REPLIES), stream, strict=False):
        pass
    stream.cancel()


def own_memory_mib(process: Process) -> float:
    """Anonymous memory of the service; the pages of its data file are the system's to take back."""
    lines = Path(f"/proc/{process.popen.pid}/status").read_text(encoding="ascii").splitlines()
    (said,) = (line for line in lines if line.startswith("RssAnon:"))
    return int(said.split()[1]) / 1024


def shown(figures: Figures) -> dict[str, object]:
    """The figures as JSON values."""
    return {
        "calls": figures.codes.total(),
        "methods": len(figures.methods),
        "codes": figures.codes,
        "broken": len(figures.broken),
        "has_ended": figures.has_ended,
        "growth_mib_in_100000": round(figures.growth_mib, 1),
        "rss_mib": [round(one, 1) for _, one in _some(figures.rss_mib)],
    }


def _some(samples: list[tuple[int, float]]) -> Iterator[tuple[int, float]]:
    yield from samples[:: max(1, len(samples) // 10)]


def main() -> None:
    """Runs, and says as JSON what was seen; status 1 where anything broke."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=4)
    arguments = parser.parse_args()
    with TemporaryDirectory() as directory:
        place = Path(directory)
        (place / "models").mkdir()
        model = toy_models.build_tiny(place / "models").name
        figures = run(
            place, place / "models", model, calls=arguments.calls, seed=arguments.seed, processes=arguments.processes
        )
    print(file=sys.stderr)
    for one in figures.broken[:_MOST_SHOWN]:
        print(one, file=sys.stderr)
    print(json.dumps(shown(figures)))
    raise SystemExit(bool(figures.broken or figures.has_ended or figures.growth_mib > MOST_GROWTH_MIB))


if __name__ == "__main__":
    main()
