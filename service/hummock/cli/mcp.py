"""`hummock mcp`: the memories of a project as tools of an agent."""

from __future__ import annotations

import asyncio
import signal
import sys
from typing import Annotated

import typer

from hummock.cli.connection import DEFAULT_TARGET
from hummock.cli.failure import CommandFailed, packages_of
from hummock.cli.options import ProjectOption, TargetOption, utf8
from hummock.cli.output import note, print_line
from hummock.mcp.clients import ClientName, place, snippet
from hummock_client import resolve_target

__all__ = ["app"]

app = typer.Typer(help="Give an agent the memories of a project (MCP over stdin and stdout).")


def _utf8_or_none(value: str | None) -> str | None:
    return None if value is None else utf8(value)


@app.callback(invoke_without_command=True)
def serve(
    context: typer.Context,
    project: Annotated[
        str | None,
        typer.Option(
            "--project", "-p", envvar="HUMMOCK_PROJECT", help="The project to work on.", callback=_utf8_or_none
        ),
    ] = None,
    target: TargetOption = DEFAULT_TARGET,
) -> None:
    """Give an agent the memories of a project: an MCP server over stdin and stdout, which the agent starts."""
    if context.invoked_subcommand is not None:
        return
    if not project:
        raise typer.BadParameter("name the project with --project or HUMMOCK_PROJECT")
    resolved = _resolved(target)
    with packages_of("mcp"):
        from hummock.mcp import server
    # A thread that waits for stdin keeps Python from ending at Ctrl-C; there is nothing to put away.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    asyncio.run(server.serve(project, resolved))


@app.command("config")
def config(
    client: Annotated[ClientName, typer.Option("--client", help="Whose configuration to write.")],
    project: ProjectOption,
    target: TargetOption = DEFAULT_TARGET,
) -> None:
    """Print what makes a client start this server; nothing is written."""
    resolved = _resolved(target)
    # The interpreter by its whole path: what starts the server knows no virtual environment.
    command = [sys.executable, "-m", "hummock", "mcp", "--project", project]
    if resolved != DEFAULT_TARGET:
        command += ["--target", resolved]
    print_line(snippet(client, command))
    note(f"put it into {place(client)}")


def _resolved(target: str) -> str:
    try:
        return resolve_target(target)
    except ValueError as error:
        raise CommandFailed(str(error)) from error
