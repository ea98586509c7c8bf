"""`python -m bench`: the figures that have targets, one part after the other, as a table and as JSON.

Without options it takes the parts of `make bench`, at most three minutes on two quiet cores; --full adds those that
take longer, and --parts chooses. Results are written after each part; those of parts that do not run stay as they were,
with the commit at which they were measured.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path

from bench import (
    access,
    beside,
    clients,
    console,
    deadlines,
    exact,
    index,
    kernels,
    learn,
    learning,
    load,
    metrics,
    model,
    overload,
    postgresql,
    recall,
    render,
    scale,
)
from bench.command import FAILURES, RESULTS, Measure, Options, one_line, options_of, options_parser
from bench.machine import Machine
from bench.peers import __main__ as peers
from bench.report import Findings, Measured, Report, read_parts
from bench.service import say

QUICK: Mapping[str, Measure] = {
    "recall": recall.measure,
    "load": load.measure,
    "exact": exact.measure,
    "kernels": kernels.measure,
    "learn": learn.measure,
    "start": scale.measure_start,
    "model": model.measure,
    "clients": clients.measure,
    "access": access.measure,
    "metrics": metrics.measure,
}
LONG: Mapping[str, Measure] = {
    "peers": peers.measure,
    "index": index.measure,
    "growth": scale.measure_growth,
    "bulk": learn.measure_bulk,
    "embedding": model.measure_embedding,
    "deadlines": deadlines.measure,
    "projects": scale.measure_projects,
    "many": load.measure_many,
    "render": render.measure,
    "learning": learning.measure,
    "beside": beside.measure,
    "overload": overload.measure,
    "flood": overload.measure_flood,
    "console": console.measure,
    "postgresql": postgresql.measure,
}
EVERY = {**QUICK, **LONG}
_NAME = "latest"


def run(parts: Mapping[str, Measure], options: Options, results: Path) -> bool:
    """Runs all parts; true if every one ended. A part that fails is reported and the next one runs.

    The report, `latest.json` and so on in the folder of results, is written after each part, in place of what the part
    had found before.
    """
    machine = Machine.here(options.stores.directory)
    known = read_parts(results / f"{_NAME}.json")
    started_s = time.perf_counter()
    whole = True
    for part, measure in parts.items():
        say(f"bench {part}, {time.perf_counter() - started_s:.0f} s after the start")
        try:
            found = measure(options)
        except FAILURES as failed:
            line = f"{part} failed: {one_line(failed)}"
            say(f"bench {line}")
            found = Findings(part=part, skipped=(line,))
            whole = False
        known[part] = Measured(findings=found, machine=machine)
        ordered = tuple(known[each] for each in EVERY if each in known)
        Report(machine=machine, elapsed_s=time.perf_counter() - started_s, parts=ordered).write(
            results, _NAME, full="full"
        )
    return whole


def main() -> None:
    """The command line."""
    parser = options_parser(__doc__)
    parser.add_argument("--full", action="store_true", help="the long parts too")
    parser.add_argument("--parts", nargs="+", choices=EVERY, help="these alone")
    parser.add_argument(
        "--results", type=Path, default=RESULTS, help="where latest.json, latest.md and full.md are written"
    )
    given = parser.parse_args()
    parts = {part: EVERY[part] for part in given.parts} if given.parts else EVERY if given.full else QUICK
    whole = run(parts, options_of(given), given.results)
    print((given.results / f"{_NAME}.md").read_text(encoding="utf-8"))
    sys.exit(not whole)


if __name__ == "__main__":
    main()
