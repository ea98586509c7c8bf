"""`hummock mcp`: the memories of a project as tools of an agent, and how its client is told of them."""

from __future__ import annotations

import asyncio
import gc
import signal
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hummock_client.channel import DEFAULT_TARGET
from hummock_tools import loopback
from hummock_tools.cli.background import BackgroundService, can_be_started
from hummock_tools.cli.child import ending_signals_interrupt
from hummock_tools.cli.connection import CommandFailed, channel_to, packages_of, resolved_target
from hummock_tools.cli.mcp_install import install
from hummock_tools.cli.options import TargetOption, utf8
from hummock_tools.cli.output import note, print_line
from hummock_tools.cli.watch import follow_beside
from hummock_tools.mcp.reach import ServingEnded

if TYPE_CHECKING:
    from hummock_tools.mcp.reach import Reach

SERVING_MCP_ON = "serving MCP on "
"""Begins the one line of stdout with `--transport http`; the address follows."""

app = typer.Typer(help="Give an agent the memories of a project (MCP over stdin and stdout).")


def _utf8_or_none(value: str | None) -> str | None:
    return None if value is None else utf8(value)


class Transport(StrEnum):
    """Transport of the messages."""

    STDIO = "stdio"
    HTTP = "http"


@app.callback(invoke_without_command=True)
def serve(
    context: typer.Context,
    project: Annotated[
        str | None,
        typer.Option(
            "--project", "-p", envvar="HUMMOCK_PROJECT", help="The project to work on.", callback=_utf8_or_none
        ),
    ] = None,
    index: Annotated[
        Path | None,
        typer.Option(
            "--index", metavar="DIR", help="Index a repository into it and follow what changes; says so on stderr."
        ),
    ] = None,
    target: TargetOption = DEFAULT_TARGET,
    transport: Annotated[
        Transport, typer.Option("--transport", help="stdio, for a client that starts this itself; or streamable HTTP.")
    ] = Transport.STDIO,
    host: Annotated[str, typer.Option("--host", help="With http: the loopback address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="With http; 0 takes a free one.")] = 7423,
    starts_service: Annotated[
        bool,
        typer.Option("--serve/--no-serve", help="Start the service where none listens on this machine."),
    ] = True,
) -> None:
    """Give an agent the memories of a project: an MCP server that the agent starts, or calls over HTTP."""
    if context.invoked_subcommand is not None:
        return
    if not project:
        raise typer.BadParameter("name the project with --project or HUMMOCK_PROJECT")
    resolved = resolved_target(target)
    # What is wrong with the token is said now, not to the model that calls first.
    channel_to(resolved).close()
    # Nearly all that a start makes stays; looking for garbage in it takes a quarter of the time.
    gc.disable()
    with packages_of("mcp"):
        from hummock_tools.mcp import serving
    if index is not None:
        follow_beside(index, project, target)
    reach = _starting(resolved) if starts_service and can_be_started(resolved) else None
    gc.freeze()
    gc.enable()
    if transport is Transport.HTTP:
        _serve_http(project, resolved, reach, host, port)
        return
    # A thread that waits for stdin keeps Python from ending at Ctrl-C; there is nothing to put away.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        asyncio.run(serving.over_stdio(project, resolved, reach))
    except ServingEnded as ended:
        raise CommandFailed(str(ended)) from ended


def _serve_http(project: str, target: str, reach: Reach | None, host: str, port: int) -> None:
    """Serves over HTTP until Ctrl-C or SIGTERM. Raises: CommandFailed."""
    with packages_of("mcp"):
        from hummock_tools.mcp import serving, streamable_http
    try:
        listener = loopback.listen(host, port)
    except loopback.NotLoopback as error:
        raise CommandFailed(str(error)) from error
    except OSError as error:
        raise CommandFailed(f"{host}:{port}: {error.strerror or error}") from error
    with listener, ending_signals_interrupt():
        print_line(f"{SERVING_MCP_ON}{streamable_http.url_of(listener)}")
        try:
            asyncio.run(serving.over_http(project, target, reach, listener))
        except KeyboardInterrupt:
            note("ended")


def _starting(target: str) -> Reach:
    """Starts the service of this machine where it is away."""
    service = BackgroundService(target, note)

    async def reach() -> bool:
        from hummock_tools.mcp.reach import Refused

        try:
            return await service.start()
        except CommandFailed as failure:
            raise Refused(str(failure)) from failure

    return reach


app.command("install")(install)
