"""`hummock backup` and `hummock restore`: copies of a data directory; no service is asked."""

from __future__ import annotations

import json as json_lib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hummock_tools.cli.connection import CommandFailed, packages_of
from hummock_tools.cli.options import DataOption
from hummock_tools.cli.output import Meter, note, print_line, printable

if TYPE_CHECKING:
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
    source: Annotated[Path, typer.Argument(metavar="SRC", help="Where `hummock backup` has put its backups.")],
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
