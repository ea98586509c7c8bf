"""`hummock …`: the commands, and how their failures are shown."""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress
from typing import Annotated, Any, Final, NoReturn

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperGroup

from hummock.cli import models, units
from hummock.cli.access import audit, tokens
from hummock.cli.save import backup, copy, restore
from hummock.cli.serve import reader, serve, stop, warm
from hummock.cli.upkeep import compact, doctor, fsck, purge
from hummock.core.errors import HummockError
from hummock_tools.cli import learning, mcp, memories, projects, remove, sessions
from hummock_tools.cli.background import console
from hummock_tools.cli.connection import CommandFailed
from hummock_tools.cli.demo import demo
from hummock_tools.cli.index import index
from hummock_tools.cli.learn import learn
from hummock_tools.cli.output import print_line, printable
from hummock_tools.cli.projects import health, status
from hummock_tools.cli.recall import explain, feedback, recall, render, search
from hummock_tools.cli.setup import setup
from hummock_tools.cli.transfer import export, import_file

_OUTPUT_FAILURES: Final = frozenset({errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF})
"""Errors of writes to stdout or stderr."""


class _Commands(TyperGroup):
    """Ends a command that failed on purpose with one line on stderr and status 1."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (CommandFailed, HummockError) as failure:
            error_console = Console(stderr=True, highlight=False, emoji=False, soft_wrap=True)
            error_console.print(Text.assemble(("error: ", "red"), printable(str(failure))))
            raise typer.Exit(1) from failure
        except UnicodeEncodeError as error:
            # Bytes of the command line that are not UTF-8 are lone surrogates here, which no message takes.
            if not any("\ud800" <= character <= "\udfff" for character in error.object):
                raise
            raise typer.BadParameter(f"{printable(error.object)} is not valid UTF-8") from error


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="The memory of agents and IDE plugins: recall, render and learn, for Chinese, English and code.",
)
for command in (
    serve,
    stop,
    index,
    learn,
    recall,
    explain,
    render,
    search,
    feedback,
    status,
    health,
    console,
    demo,
    setup,
    warm,
    restore,
    fsck,
    doctor,
):
    app.command()(command)
# The service starts it.
app.command(hidden=True)(reader)
app.command("import")(import_file)

save = typer.Typer(no_args_is_help=True, help="Save a project, a data directory, or a whole store.")
save.command("project")(export)
save.command("backup")(backup)
save.command("copy")(copy)
app.add_typer(save, name="save")
remove.app.command("bytes")(purge)
remove.app.command("slack")(compact)
app.add_typer(remove.app, name="remove")
# The names of before, for one version more.
app.command("export", hidden=True)(export)
for earlier in (backup, copy, remove.forget, purge, compact):
    app.command(hidden=True)(earlier)
memories.app.command("rm", hidden=True)(remove.rm)
projects.app.command("delete", hidden=True)(remove.delete)

app.add_typer(memories.app, name="memories")
# What people call them.
app.add_typer(memories.app, name="garden", hidden=True)
app.add_typer(memories.review_app, name="review")
app.add_typer(sessions.app, name="sessions")
app.add_typer(learning.app, name="learning")
app.add_typer(projects.app, name="projects")
app.add_typer(models.app, name="models")
app.add_typer(mcp.app, name="mcp")
app.add_typer(units.app, name="service")
app.add_typer(tokens, name="tokens")
app.add_typer(audit, name="audit")


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print_line(f"hummock {version('hummock')}")
        raise typer.Exit


@app.callback()
def _hummock(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    del version


def main() -> None:
    """Run the command line; never returns."""
    # We fork only to start programs, which takes a real fork on macOS: gRPC would start its threads again in the child
    # and end it before it becomes the program (grpc/grpc#43055).
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
    _fill_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        # A terminal that knows no Chinese gets escapes instead of a traceback.
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr] # the real streams have it
    try:
        try:
            app(prog_name="hummock")
        finally:
            sys.stdout.flush()
    except OSError as error:
        if error.errno not in _OUTPUT_FAILURES:
            raise
        _end_without_output(error)


def _fill_closed_streams() -> None:
    """Put the null device where the shell closed stdin or stderr; without a stdout the command ends here."""
    # A file of ours with one of these numbers would receive the output.
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8")  # noqa: SIM115 - for the whole process
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8")  # noqa: SIM115 - as above
    if sys.stdout is None:
        print("error: stdout is closed", file=sys.stderr)
        sys.exit(1)


def _end_without_output(error: OSError) -> NoReturn:
    """One line and status 1; none where the reader has left, as `head` does, for that is no mistake."""
    with suppress(OSError):
        if error.errno != errno.EPIPE:
            place = f"{error.filename}: " if error.filename else "the output cannot be written: "
            print(f"error: {place}{error.strerror}", file=sys.stderr, flush=True)
    # Otherwise Python would try to flush again and end with another status.
    os._exit(1)
