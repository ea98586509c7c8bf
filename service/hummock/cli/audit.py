"""`hummock audit`: whether the log of writes and of what administers is whole."""

from __future__ import annotations

import json as json_lib
from dataclasses import asdict
from typing import Annotated

import typer

from hummock.access.chain import verify as read_all
from hummock_tools.cli.connection import CommandFailed
from hummock_tools.cli.options import DataOption, data_dir_of
from hummock_tools.cli.output import print_line, warn

app = typer.Typer(no_args_is_help=True, help="Look after the audit log of a data directory.")

_SHOWN_PROBLEMS = 20


@app.command("verify")
def verify(
    head: Annotated[
        str, typer.Option("--head", metavar="HASH", help="A head that was noted before; it must still be there.")
    ] = "",
    json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
    data: DataOption = None,
) -> None:
    """Read the whole audit log and look whether lines were removed or changed.

    Who removes the last lines removes no link: note the head that this prints, elsewhere, and give it the next time.
    """
    directory = data_dir_of(data)
    try:
        verdict = read_all(directory, head)
    except OSError as error:
        raise CommandFailed(f"{error.filename or directory} cannot be read: {error.strerror}") from error
    if json:
        print_line(json_lib.dumps(asdict(verdict)))
    else:
        print_line(f"{verdict.lines} lines, {verdict.first} to {verdict.last}, head {verdict.head}")
    for problem in verdict.problems[:_SHOWN_PROBLEMS]:
        warn(problem)
    if verdict.problems:
        raise CommandFailed(f"{len(verdict.problems)} things are wrong with the audit log of {directory}")
