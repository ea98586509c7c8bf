"""`python -m bench`: the figures that have targets, one part after the other, as a table and as JSON.

Without options it takes the parts of `make bench`, at most three minutes on two quiet cores; --full adds those that
take longer. Every part runs alone too: `python -m bench.recall`. The part and module names are the same.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from bench import bulk, embedding, exact, growth, kernels, learn, load, many, model, projects, recall, start
from bench.command import RESULTS, Options, options_of, options_parser, write_and_print
from bench.machine import Machine
from bench.peers import __main__ as peers
from bench.rows import Findings, Report
from bench.service import BenchFailed
from bench.stores import say
from hummock.core.errors import HummockError

Measure = Callable[[Options], Findings]

QUICK: Mapping[str, Measure] = {
    "recall": recall.measure,
    "load": load.measure,
    "exact": exact.measure,
    "kernels": kernels.measure,
    "learn": learn.measure,
    "start": start.measure,
    "model": model.measure,
}
LONG: Mapping[str, Measure] = {
    "peers": peers.measure,
    "growth": growth.measure,
    "bulk": bulk.measure,
    "embedding": embedding.measure,
    "projects": projects.measure,
    "many": many.measure,
}


def run(parts: Mapping[str, Measure], options: Options) -> tuple[Report, bool]:
    """The report, and whether every part came to its end: one that fails is said aloud and the next one runs."""
    machine = Machine.here(options.stores.directory)
    started_s = time.perf_counter()
    found = []
    whole = True
    for name, measure in parts.items():
        say(f"bench {name}, {time.perf_counter() - started_s:.0f} s after the start")
        try:
            found.append(measure(options))
        except (BenchFailed, HummockError, OSError) as failed:
            say(f"bench {name} failed: {failed}")
            found.append(Findings(part=name, skipped=(f"{name} failed: {failed}",)))
            whole = False
    return Report(machine=machine, elapsed_s=time.perf_counter() - started_s, parts=tuple(found)), whole


def main() -> None:
    """The command line."""
    parser = options_parser(__doc__)
    parser.add_argument("--full", action="store_true", help="the long parts too")
    parser.add_argument("--parts", nargs="+", choices=[*QUICK, *LONG], help="these alone")
    parser.add_argument(
        "--results", type=Path, default=RESULTS, help="where latest.json and latest.md are written (full.* with --full)"
    )
    given = parser.parse_args()
    every = {**QUICK, **LONG}
    parts = {name: every[name] for name in given.parts} if given.parts else every if given.full else QUICK
    report, whole = run(parts, options_of(given))
    write_and_print(report, "full" if given.full else "latest", given.results)
    sys.exit(not whole)


if __name__ == "__main__":
    main()
