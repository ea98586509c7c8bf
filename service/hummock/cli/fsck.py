"""`hummock fsck`: whether a data directory is as it should be; no service is asked."""

from __future__ import annotations

import json as json_lib
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from hummock.cli.backup import JsonOption, data_directory
from hummock_tools.cli.connection import packages_of
from hummock_tools.cli.options import DataOption
from hummock_tools.cli.output import Meter, note, print_line, printable

if TYPE_CHECKING:
    from hummock.store.upkeep import Problem


def fsck(data: DataOption = None, json: JsonOption = False) -> None:
    """Check all that the data directory holds, also while the service writes; ends with 1 when something is wrong."""
    with packages_of("server"):
        from hummock.store.upkeep import check
    directory = data_directory(data)
    with Meter() as meter:
        report = check(directory, lambda done, total: meter.show("projects", done, total))
    if json:
        problems = [asdict(problem) for problem in report.problems]
        print_line(json_lib.dumps({"counts": report.counts, "problems": problems}, ensure_ascii=False))
    else:
        for problem in report.problems:
            print_line(_in_words(problem))
        note(", ".join(f"{count} {what}" for what, count in sorted(report.counts.items())))
    if report.problems:
        note(f"{directory} is damaged: restore it from a backup (`hummock restore`), or export what can be read")
        raise typer.Exit(1)
    note(f"{directory} is as it should be")


def _in_words(problem: Problem) -> str:
    where = f"project {problem.project}: " if problem.project else ""
    numbers = f" (numbers {', '.join(map(str, problem.examples))})" if problem.examples else ""
    return printable(f"{where}{problem.what}, {problem.count} times{numbers}")
