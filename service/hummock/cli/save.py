"""`hummock save backup`, `hummock save copy` and `hummock restore`: copies of a store; no service is asked."""

from __future__ import annotations

import json as json_lib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hummock_tools.cli.connection import CommandFailed, packages_of, require_packages
from hummock_tools.cli.options import DataOption
from hummock_tools.cli.output import Meter, note, print_line, printable, warn

if TYPE_CHECKING:
    from hummock.store.moving import Copied, CopiedProject
    from hummock.store.upkeep import Manifest


INTERRUPTED = 130
_MIB = 1 << 20

JsonOption = Annotated[bool, typer.Option("--json", help="Print the outcome as JSON.")]


def backup(
    destination: Annotated[
        Path, typer.Argument(metavar="DEST", help="A directory for backups of this data directory alone.")
    ],
    data: DataOption = None,
    keep: Annotated[int | None, typer.Option("--keep", min=1, help="Drop all backups but the newest so many.")] = None,
    json: JsonOption = False,
) -> None:
    """Back up the data directory as it is now, also while the service writes; only what changed is stored again."""
    with packages_of("server"):
        from hummock.store.upkeep import Backups
    directory = data_directory(data)
    with files_are_said("what was copied so far is used by the next backup"), Meter() as meter:
        made = Backups(destination).make(
            directory,
            time.time(),
            version("hummock"),
            keep,
            lambda done, total: _show(meter, "copying MiB", done, total),
        )
    size_bytes = made.manifest.size_bytes
    if json:
        outcome = {"name": made.name, "newBytes": made.new_bytes, "dropped": made.dropped}
        print_line(json_lib.dumps(outcome | _in_json(made.manifest), ensure_ascii=False))
        return
    print_line(made.name)
    note(f"{size_bytes / _MIB:.1f} MiB, {_counts(made.manifest)}; {made.new_bytes / _MIB:.1f} MiB of it are new")
    if made.dropped:
        note(f"dropped: {', '.join(made.dropped)}")


def restore(
    source: Annotated[Path, typer.Argument(metavar="SRC", help="Where `hummock save backup` has put its backups.")],
    data: Annotated[Path | None, typer.Option("--data", help="The new data directory; it must hold no data.")] = None,
    name: Annotated[str | None, typer.Option("--backup", help="Its name; the newest if unset.")] = None,
    list_: Annotated[bool, typer.Option("--list", help="Only list the backups.")] = False,
    json: JsonOption = False,
) -> None:
    """Make a data directory out of a backup, and verify every byte of it."""
    with packages_of("server"):
        from hummock.store.upkeep import Backups
        from hummock.store.upkeep import restore as restore_backup
    backups = Backups(source)
    if list_:
        for each in backups.names():
            manifest = backups.manifest(each)
            row = {"name": each} | _in_json(manifest)
            print_line(json_lib.dumps(row, ensure_ascii=False) if json else f"{each}  {_counts(manifest)}")
        return
    if data is None:
        raise typer.BadParameter("name a new directory with --data")
    with files_are_said(f"{data} holds no data; the same command begins again"), Meter() as meter:
        restored, manifest = restore_backup(
            backups, data, name, lambda done, total: _show(meter, "restoring MiB", done, total)
        )
    if json:
        print_line(json_lib.dumps({"name": restored} | _in_json(manifest), ensure_ascii=False))
    else:
        print_line(f"{data} is what it was in backup {restored}: {_counts(manifest)}, all digests equal")


def data_directory(data: Path | None) -> Path:
    """The data directory: from the command line, the environment, hummock.toml, or the platform's default.

    Raises: CommandFailed: the settings have memories in PostgreSQL, and no directory is named.
    """
    with packages_of("server"):
        from hummock.config import load_settings
    settings = load_settings({"data_dir": data})
    if settings.store is not None and data is None:
        raise CommandFailed(
            "memories are kept in PostgreSQL (the setting `store`), whose own tools do this: pg_dump, pg_basebackup, "
            "VACUUM, pg_amcheck (docs/postgresql.md); name a directory of LMDB with --data to work on one"
        )
    return settings.data_dir


@contextmanager
def files_are_said(interrupted: str) -> Iterator[None]:
    """Says in a line what is wrong with files, and what Ctrl-C has left."""
    try:
        yield
    except OSError as error:
        raise CommandFailed(f"{error.filename or 'a file'}: {error.strerror}") from error
    except KeyboardInterrupt:
        note(f"interrupted: {interrupted}")
        raise typer.Exit(INTERRUPTED) from None


def _show(meter: Meter, stage: str, done: int, total: int) -> None:
    meter.show(stage, done // _MIB, total // _MIB)


def _counts(manifest: Manifest) -> str:
    memories = sum(project.memory_count for project in manifest.projects)
    return f"{memories} memories of {len(manifest.projects)} projects"


def _in_json(manifest: Manifest) -> dict[str, Any]:
    projects = [
        {"project": printable(one.name), "seq": one.seq, "memories": one.memory_count, "digest": one.digest}
        for one in manifest.projects
    ]
    return {
        "time": manifest.time,
        "bytes": manifest.size_bytes,
        "schema": manifest.schema,
        "model": manifest.model,
        "projects": projects,
    }


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
        print_line(json_lib.dumps(_copied_in_json(places, copied), ensure_ascii=False))
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


def _copied_in_json(places: tuple[str, str], copied: Copied) -> dict[str, Any]:
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
