"""`hummock fsck`, and `hummock remove bytes` and `slack`: a data directory checked, or its file written anew."""

from __future__ import annotations

import json as json_lib
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from hummock.cli.save import JsonOption, data_directory, files_are_said
from hummock_tools.cli.connection import packages_of
from hummock_tools.cli.options import DataOption
from hummock_tools.cli.output import Meter, confirm, note, print_line, printable, warn

if TYPE_CHECKING:
    from hummock.store.upkeep import Problem, Rebuilt


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


_MIB = 1 << 20


def purge(
    data: DataOption = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Purge without asking.")] = False,
    json: JsonOption = False,
) -> None:
    """Leave no byte of what was deleted in the data directory; stop the service first.

    Answers that are kept for repeated requests go too. Words in the learning log go with `hummock remove traces`.
    """
    with packages_of("server"):
        from hummock.store.upkeep import purge as purge_directory
    directory = data_directory(data)
    if not yes:
        question = f"Erase all that was deleted from {directory}, its logs, and the answers kept for repeated requests?"
        confirm(question, "nothing was erased; --yes erases without asking")
    with files_are_said("the data is as it was"), Meter() as meter:
        purged = purge_directory(directory, time.time(), lambda done, total: meter.show("tables", done, total))
    if json:
        print_line(json_lib.dumps(asdict(purged), ensure_ascii=False))
    else:
        gone = ", ".join(f"{count} of {table}" for table, count in sorted(purged.left_out.items()))
        print_line(f"purged: {_sizes(purged.rebuilt)}; entries that are gone: {gone or 'none'}")
    if purged.expired_count:
        warn(
            f"{purged.expired_count} memories have expired and are removed when the service runs: purge again after it"
        )
    for backup in purged.backups:
        warn(printable(f"backup {backup.name} in {backup.directory} may hold what is gone here: remove it (--keep)"))


def compact(data: DataOption = None, json: JsonOption = False) -> None:
    """Give the room of what was deleted back to the disk; stop the service first."""
    with packages_of("server"):
        from hummock.store.upkeep import compact as compact_directory
    directory = data_directory(data)
    with files_are_said("the data is as it was"), Meter() as meter:
        rebuilt = compact_directory(directory, lambda done, total: meter.show("tables", done, total))
    print_line(json_lib.dumps(asdict(rebuilt)) if json else f"compacted: {_sizes(rebuilt)}")


def _sizes(rebuilt: Rebuilt) -> str:
    return f"{rebuilt.before_bytes / _MIB:.1f} MiB before, {rebuilt.after_bytes / _MIB:.1f} MiB after"
