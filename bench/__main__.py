"""`python -m bench`: what has a goal, one part after the other, as a table and as JSON.

Without options it runs the parts of `make bench`, five minutes at most on two quiet cores, and writes latest.json and
latest.md; --full then runs those that take longer, and writes full.json. full.md holds both runs, each with its own
head. --parts prints the parts that it names, and writes nothing.
"""

from __future__ import annotations

import sys
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
    quality,
    recall,
    render,
    scale,
)
from bench.command import RESULTS, Measure, Options, options_of, options_parser, run_parts
from bench.machine import Machine
from bench.peers import __main__ as peers
from bench.report import Run, read_run

QUICK: Mapping[str, Measure] = {
    "recall": recall.measure,
    "load": load.measure,
    "model": model.measure,
    "render": render.measure,
    "turn": learning.measure_turn,
    "learn": learn.measure,
    "bulk": learn.measure_bulk,
    "start": scale.measure_start,
    "overload": overload.measure,
    "flood": overload.measure_flood,
    "quality": quality.measure,
}
LONG: Mapping[str, Measure] = {
    "exact": exact.measure,
    "kernels": kernels.measure,
    "clients": clients.measure,
    "access": access.measure,
    "metrics": metrics.measure,
    "peers": peers.measure,
    "index": index.measure,
    "growth": scale.measure_growth,
    "embedding": model.measure_embedding,
    "deadlines": deadlines.measure,
    "projects": scale.measure_projects,
    "learning": learning.measure,
    "beside": beside.measure,
    "console": console.measure,
    "postgresql": postgresql.measure,
}
EVERY = {**QUICK, **LONG}
_TITLES = {"latest": "`make bench`", "full": "The rest of `make bench-full`"}
"""Titles of the sections of full.md, by the name of the run."""


def run_whole(runs: Mapping[str, Mapping[str, Measure]], options: Options, results: Path) -> bool:
    """Runs the parts of each run, and writes it as soon as all have ended; true if none failed."""
    machine = Machine.here(options.stores.directory)
    is_whole = True
    for name, parts in runs.items():
        run = run_parts(parts, options, machine)
        is_whole = is_whole and not any(part.failed for part in run.parts)
        write(run, name, results)
    return is_whole


def write(run: Run, name: str, results: Path) -> None:
    """Writes the JSON of a run, the short table if it is the latest, and the page of all runs."""
    results.mkdir(parents=True, exist_ok=True)
    (results / f"{name}.json").write_text(run.json(), encoding="utf-8")
    if name == "latest":
        (results / "latest.md").write_text(run.short(), encoding="utf-8")
    runs = {each: read_run(results / f"{each}.json") for each in _TITLES}
    sections = [found.details(_TITLES[each]) for each, found in runs.items() if found]
    page = "\n".join(["# Every other figure\n", *sections])
    (results / "full.md").write_text(page, encoding="utf-8")


def main() -> None:
    """The command line."""
    parser = options_parser(__doc__)
    parser.add_argument("--full", action="store_true", help="the long parts too")
    parser.add_argument("--parts", nargs="+", choices=EVERY, help="print these alone, and write nothing")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the results of whole runs are written")
    given = parser.parse_args()
    options = options_of(given)
    if given.parts:
        run = run_parts({part: EVERY[part] for part in given.parts}, options, Machine.here(options.stores.directory))
        if run.headlines():
            print(run.table())
        print(run.details(", ".join(given.parts)))
        sys.exit(any(part.failed for part in run.parts))
    runs = {"latest": QUICK, "full": LONG} if given.full else {"latest": QUICK}
    is_whole = run_whole(runs, options, given.results)
    print((given.results / "latest.md").read_text(encoding="utf-8"))
    sys.exit(not is_whole)


if __name__ == "__main__":
    main()
