"""`hummock copy`: everything of one store in another one, of whichever engine; no service is asked."""

from __future__ import annotations

import json as json_lib
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hummock.cli.backup import JsonOption, files_are_said
from hummock_tools.cli.connection import packages_of, require_packages
from hummock_tools.cli.output import Meter, note, print_line, printable, warn

if TYPE_CHECKING:
    from hummock.store.moving import Copied, CopiedProject

_NAMED = 10
_STORE = "A data directory, or a database: postgresql://…"


def copy(
    source: Annotated[str, typer.Argument(metavar="FROM", help=_STORE)],
    target: Annotated[str, typer.Argument(metavar="TO", help=f"{_STORE} It is made if it is not there.")],
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace projects of TO that have a history of their own.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Copy all projects of a store into another one, also while the source's service writes.

    Run again, it goes on where it was cut off, and copies what has changed. Tokens and the audit log stay behind.
    """
    with packages_of("server"):
        from hummock.config import load_settings
        from hummock.store.moving import CopyCallbacks, copy_between, is_database, places_of
    if is_database(source) or is_database(target):
        with packages_of("postgresql"):
            require_packages("psycopg", "psycopg_pool")
    places = places_of(source, target)
    goes_on = "what is copied stays; the same command goes on with the rest"
    with files_are_said(goes_on), Meter() as meter:
        told = CopyCallbacks(
            far=lambda name, done, total: meter.show("copying memories", done, total),
            done=lambda project: meter.say(_line(project)),
        )
        map_bytes = load_settings({}).storage.map_bytes
        copied = copy_between(source, target, replaces=replace, told=told, map_bytes=map_bytes, say=meter.say)
    if json:
        print_line(json_lib.dumps(_in_json(places, copied), ensure_ascii=False))
    else:
        print_line(printable(f"{places[1]} {_sum(places, copied)}"))
    if copied.others:
        note(printable(f"left as they are, for they are no copies: {_listed(copied.others)}"))
    if copied.moved:
        warn(printable(f"written to again after they were copied: {_listed(copied.moved)}"))
        warn("stop the services of the source and copy again, which copies these alone")
    if not copied.is_whole:
        raise typer.Exit(1)


def _line(project: CopiedProject) -> str:
    if project.why:
        return printable(project.why)
    return printable(
        f"{project.name}: {project.outcome}, {project.memory_count} memories, seq {project.seq}, {project.took_s:.1f} s"
    )


def _sum(places: tuple[str, str], copied: Copied) -> str:
    memories = sum(one.memory_count for one in copied.there)
    size = f"{memories} memories of {len(copied.there)} projects"
    if copied.is_whole:
        return f"has what {places[0]} has: {size}, all digests equal"
    return f"has {size} of {places[0]}; not all that is there now"


def _listed(names: tuple[str, ...]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def _in_json(places: tuple[str, str], copied: Copied) -> dict[str, Any]:
    projects = [
        {
            "project": printable(one.name),
            "outcome": one.outcome,
            "seq": one.seq,
            "memories": one.memory_count,
            "digest": one.digest,
            "seconds": round(one.took_s, 3),
        }
        | ({"why": printable(one.why)} if one.why else {})
        for one in copied.projects
    ]
    return {
        "from": printable(places[0]),
        "to": printable(places[1]),
        "whole": copied.is_whole,
        "projects": projects,
        "moved": [printable(name) for name in copied.moved],
        "others": [printable(name) for name in copied.others],
    }
