"""The command line of the benches: what every part can be told, and how parts are run."""

from __future__ import annotations

import argparse
import os
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import grpc

from bench.machine import Machine
from bench.report import Findings, Run
from bench.service import BenchFailed, say
from bench.stores import Stores
from hummock.core.errors import HummockError

_ROOT = Path(__file__).parent.parent
RESULTS = Path(__file__).parent / "results"
FAILURES = (BenchFailed, HummockError, OSError, grpc.RpcError, grpc.FutureTimeoutError, subprocess.SubprocessError)
"""Exceptions for which a part counts as not measured; any other is a defect of the bench."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of a part.

    Attributes:
        stores: Directory of filled stores and of all that is written meanwhile: its disk is measured.
        models_dir: Directory of real models.
        queries: Measured calls of one client; p99 wants some hundreds.
    """

    stores: Stores
    models_dir: Path
    queries: int


Measure = Callable[[Options], Findings]
"""One part of the bench."""


def options_parser(description: str | None) -> argparse.ArgumentParser:
    """A parser that knows what all parts know."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", type=Path, default=_ROOT / ".bench", help="keeps filled stores; its disk is measured")
    models = Path(os.environ.get("HUMMOCK_MODELS", _ROOT / ".demo" / "models"))
    parser.add_argument("--models-dir", type=Path, default=models, help="where real models are")
    parser.add_argument("--queries", type=positive, default=2000, help="measured recalls of one client")
    return parser


def options_of(given: argparse.Namespace) -> Options:
    """Options from the command line."""
    given.dir.mkdir(parents=True, exist_ok=True)
    return Options(
        stores=Stores(directory=given.dir.absolute()), models_dir=given.models_dir.absolute(), queries=given.queries
    )


def run_parts(parts: Mapping[str, Measure], options: Options, machine: Machine) -> Run:
    """Runs the parts. One that fails is reported, and the next one runs."""
    started_s = time.perf_counter()
    found = []
    for part, measure in parts.items():
        say(f"bench {part}, {time.perf_counter() - started_s:.0f} s after the start")
        try:
            found.append(measure(options))
        except FAILURES as failed:
            line = f"{part} failed: {one_line(failed)}"
            say(f"bench {line}")
            found.append(Findings(part=part, skipped=(line,), failed=True))
    return Run(machine=machine, elapsed_s=time.perf_counter() - started_s, parts=tuple(found))


def one_line(failed: BaseException) -> str:
    """Message of a failure on one line; that of a call has many."""
    return " ".join(str(failed).split())


def positive(text: str) -> int:
    """A number from 1, for argparse."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is below 1")
    return number
