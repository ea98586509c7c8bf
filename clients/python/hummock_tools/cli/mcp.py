"""`hummock mcp`: the memories of a project as tools of an agent, and how its client is told of them."""

from __future__ import annotations

import asyncio
import difflib
import gc
import os
import shutil
import signal
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hummock_client.channel import DEFAULT_TARGET
from hummock_tools import loopback
from hummock_tools.cli.background import BackgroundService, can_be_started, ending_signals_interrupt
from hummock_tools.cli.connection import CommandFailed, channel_to, packages_of, resolved_target
from hummock_tools.cli.index import follow_beside
from hummock_tools.cli.options import ProjectOption, TargetOption, utf8
from hummock_tools.cli.output import note, print_line, printable, warn
from hummock_tools.mcp.reach import ServingEnded

if TYPE_CHECKING:
    from hummock_tools.mcp.config_files import Change, McpClient
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
    # Errors of the token are reported now, not at the model's first call.
    channel_to(resolved).close()
    # Nearly all objects of a start stay alive; collecting garbage would take a quarter of its time.
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
    """Start the local service if it does not run."""
    service = BackgroundService(target, note)

    async def reach() -> bool:
        from hummock_tools.mcp.reach import Refused

        try:
            return await service.start()
        except CommandFailed as failure:
            raise Refused(str(failure)) from failure

    return reach


class ClientName(StrEnum):
    """Clients with a known configuration format."""

    CURSOR = "cursor"
    VSCODE = "vscode"
    CLAUDE = "claude"
    CLAUDE_CODE = "claude-code"
    CODEX = "codex"
    WINDSURF = "windsurf"
    ZED = "zed"


class ScopeName(StrEnum):
    """The owner of the file that is written: the user or the workspace."""

    USER = "user"
    WORKSPACE = "workspace"


def install(
    client: Annotated[ClientName, typer.Option("--client", help="Whose configuration to write.")],
    project: ProjectOption,
    index: Annotated[
        Path | None, typer.Option("--index", metavar="DIR", help="Have the server follow this repository.")
    ] = None,
    target: TargetOption = DEFAULT_TARGET,
    scope: Annotated[
        ScopeName, typer.Option("--scope", help="Your own file, or the one that this folder shares.")
    ] = ScopeName.USER,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Write without asking.")] = False,
    print_only: Annotated[
        bool, typer.Option("--print", help="Print what belongs into the file; write nothing.")
    ] = False,
    remove: Annotated[bool, typer.Option("--remove", help="Take the server out again.")] = False,
) -> None:
    """Have a client start this server: shows what changes in which of its files, asks, and writes it."""
    with packages_of("mcp"):
        from hummock_tools.mcp.config_files import CLIENTS, Unchangeable, change_of, snippet
    chosen = CLIENTS[client.value]
    file = chosen.file(scope.value, Path.home(), Path.cwd(), os.environ, sys.platform)
    if file is None:
        raise CommandFailed(f"{chosen.title} has no file that a folder shares; leave out --scope {scope.value}")
    entry = chosen.entry(_command(chosen, scope, project, index, resolved_target(target)))
    if print_only:
        print_line(snippet(file.suffix == ".toml", chosen.servers, entry))
        note(f"belongs into {file}")
        return
    try:
        change = change_of(file, chosen.servers, None if remove else entry)
        if change.is_needed:
            _ask(change, yes=yes)
            change.write()
    except Unchangeable as error:
        raise CommandFailed(str(error)) from error
    _tell(change, chosen, scope, remove=remove)


def _command(client: McpClient, scope: ScopeName, project: str, index: Path | None, target: str) -> list[str]:
    """Program and arguments that start the server from the file."""
    if scope is ScopeName.WORKSPACE:
        # Others read this file, on machines of theirs.
        command = ["hummock", "mcp", "--project", project]
        if index is not None:
            command += ["--index", _in_workspace(client, index)]
    else:
        # By whole paths: what starts the server knows no virtual environment and starts it anywhere. -P: a folder
        # `hummock` of whatever repository is open is not imported.
        command = [sys.executable, "-P", "-m", "hummock", "mcp", "--project", project]
        if index is not None:
            command += ["--index", str(index.resolve())]
    return [*command, "--target", target] if target != DEFAULT_TARGET else command


def _in_workspace(client: McpClient, index: Path) -> str:
    """A folder of the workspace as the client's file names it. Raises: CommandFailed."""
    workspace = Path.cwd().resolve()
    if not index.resolve().is_relative_to(workspace):
        raise CommandFailed(f"{index} lies outside {workspace}, where others who share the file have no such folder")
    below = index.resolve().relative_to(workspace)
    return client.workspace_folder if below == Path() else f"{client.workspace_folder}/{below.as_posix()}"


def _ask(change: Change, *, yes: bool) -> None:
    """Show the change of the file and ask for confirmation. Raises: CommandFailed."""
    lines = difflib.unified_diff(
        change.before.splitlines(), change.after.splitlines(), "as it is", "as it will be", lineterm=""
    )
    note(printable(f"{change.path}\n" + "\n".join(lines)))
    if yes:
        return
    try:
        is_wanted = typer.confirm("Write it?", err=True)
    except typer.Abort:
        is_wanted = False
    if not is_wanted:
        raise CommandFailed("nothing was written; --yes writes without asking, --print only shows what belongs there")


def _tell(change: Change, client: McpClient, scope: ScopeName, *, remove: bool) -> None:
    """Print the result and the next step."""
    if not change.is_needed:
        print_line(f"{change.path} {'does not name the server' if remove else 'is as it should be'}; nothing written")
        return
    print_line(f"{change.path} written; {'the server is gone from it' if remove else client.next_step}")
    if scope is ScopeName.WORKSPACE and not remove and shutil.which("hummock") is None:
        warn("the file starts `hummock`, which is not on your PATH; everybody who shares it needs it there")


app.command("install")(install)
