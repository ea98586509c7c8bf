"""`hummock mcp`: the memories of a project as tools of an agent, and how its client is told of them."""

from __future__ import annotations

import asyncio
import gc
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer
from typer import Option

from hummock_client.channel import DEFAULT_TARGET, is_local
from hummock_tools.cli import options
from hummock_tools.cli.background import BackgroundService, ending_signals_interrupt, listening
from hummock_tools.cli.connection import CommandFailed, channel_to, packages_of, resolved_target
from hummock_tools.cli.index import follow_beside
from hummock_tools.cli.output import confirm, note, print_line, warn
from hummock_tools.project_name import open_folder, project_of

if TYPE_CHECKING:
    from hummock_tools.mcp.server import Reach
    from hummock_tools.setup.agents import Agent
    from hummock_tools.setup.config_files import Change


SERVING_MCP_ON = "serving MCP on "
"""Begins the one line of stdout with `--transport http`; the address follows."""

app = typer.Typer(help="Give an agent the memories of a project (MCP over stdin and stdout).")


Transport: TypeAlias = Literal["stdio", "http"]


@app.callback(invoke_without_command=True)
def serve(
    context: typer.Context,
    project: Annotated[
        str | None,
        Option("--project", "-p", envvar="HUMMOCK_PROJECT", help="The project to work on.", callback=options.utf8),
    ] = None,
    folder: Annotated[
        Path | None,
        Option("--folder", metavar="DIR", help="With no project: this folder's repository is it; . if unset."),
    ] = None,
    index: Annotated[
        Path | None,
        Option("--index", metavar="DIR", help="Index a repository into it and follow what changes; says so on stderr."),
    ] = None,
    target: options.Target = DEFAULT_TARGET,
    transport: Annotated[
        Transport, Option("--transport", help="stdio, for a client that starts this itself; or streamable HTTP.")
    ] = "stdio",
    host: Annotated[str, Option("--host", help="With http: the loopback address to listen on.")] = "127.0.0.1",
    port: Annotated[int, Option("--port", min=0, max=65535, help="With http; 0 takes a free one.")] = 7423,
    starts_service: Annotated[
        bool, Option("--serve/--no-serve", help="Start the service where none listens on this machine.")
    ] = True,
) -> None:
    """Give an agent the memories of a project: an MCP server that the agent starts, or calls over HTTP."""
    if context.invoked_subcommand is not None:
        return
    project = project or _project_of(folder)
    resolved = resolved_target(target)
    # Errors of the token are reported now, not at the model's first call.
    channel_to(resolved).close()
    # Nearly all objects of a start stay alive; collecting garbage would take a quarter of its time.
    gc.disable()
    with packages_of("mcp"):
        from hummock_tools.mcp import serving
    if index is not None:
        follow_beside(index, project, target)
    reach = _starting(resolved) if starts_service and is_local(resolved) else None
    gc.freeze()
    gc.enable()
    if transport == "http":
        return _serve_http(project, resolved, reach, host, port)
    # A thread that waits for stdin keeps Python from ending at Ctrl-C; there is nothing to put away.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        asyncio.run(serving.over_stdio(project, resolved, reach))
    except serving.ServingEnded as ended:
        raise CommandFailed(str(ended)) from ended


def _project_of(folder: Path | None) -> str:
    """The project of a folder, or of the one that the agent works in. Raises: BadParameter."""
    given = folder or Path(open_folder())
    if not given.is_dir():
        raise typer.BadParameter(f"{given} is no folder; name the project with --project or HUMMOCK_PROJECT")
    project = project_of(given)
    # Agents start servers there when they do not say what is open; all their repositories would share one project.
    if not project or given.resolve() == Path.home().resolve():
        raise typer.BadParameter(f"{given} is no repository; name the project with --project or HUMMOCK_PROJECT")
    return project


def _serve_http(project: str, target: str, reach: Reach | None, host: str, port: int) -> None:
    """Serves over HTTP until Ctrl-C or SIGTERM. Raises: CommandFailed."""
    with packages_of("mcp"):
        from hummock_tools.mcp import serving, streamable_http
    with listening(host, port) as listener, ending_signals_interrupt():
        print_line(f"{SERVING_MCP_ON}{streamable_http.url_of(listener)}")
        try:
            asyncio.run(serving.over_http(project, target, reach, listener))
        except KeyboardInterrupt:
            note("ended")


def _starting(target: str) -> Reach:
    service = BackgroundService(target, note)

    async def reach() -> bool:
        from hummock_tools.mcp.server import Refused

        try:
            return await service.start()
        except CommandFailed as failure:
            raise Refused(str(failure)) from failure

    return reach


ScopeName: TypeAlias = Literal["user", "workspace"]
"""The owner of the file that is written."""


def install(
    client: Annotated[options.AgentName, Option("--client", help="Whose configuration to write.")],
    project: options.NamedProject,
    index: Annotated[
        Path | None, Option("--index", metavar="DIR", help="Have the server follow this repository.")
    ] = None,
    target: options.Target = DEFAULT_TARGET,
    scope: Annotated[ScopeName, Option("--scope", help="Your own file, or the one that this folder shares.")] = "user",
    yes: Annotated[bool, Option("--yes", "-y", help="Write without asking.")] = False,
    print_only: Annotated[bool, Option("--print", help="Print what belongs into the file; write nothing.")] = False,
    remove: Annotated[bool, Option("--remove", help="Take the server out again.")] = False,
) -> None:
    """Have a client start this server: shows what changes in which of its files, asks, and writes it."""
    with packages_of("mcp"):
        from hummock_tools.setup.agents import AGENTS, Machine
        from hummock_tools.setup.config_files import Change, Unchangeable, edited, text_of
        from hummock_tools.setup.plan import ServerEntry
    chosen = AGENTS[client]
    file = chosen.file(scope, Path.cwd(), Machine(home=Path.home(), environ=os.environ, platform=sys.platform))
    if file is None:
        raise CommandFailed(f"{chosen.title} has no file that a folder shares; leave out --scope {scope}")
    entry = chosen.entry(_command(chosen, scope, project, index, resolved_target(target)))
    server = ServerEntry(agent=chosen, entry=entry, is_toml=file.suffix == ".toml")
    if print_only:
        print_line(server.add("").rstrip("\n"))
        return note(f"belongs into {file}")
    try:
        known = text_of(file)
        after = edited(file, known or "", [server.without if remove else server.add])
        change = Change(path=file, before=known, after=after if after or known is not None else None)
        if change.is_needed:
            _ask(change, yes=yes)
            change.write()
    except Unchangeable as error:
        raise CommandFailed(str(error)) from error
    _tell(change, chosen, scope, remove=remove)


def _command(client: Agent, scope: ScopeName, project: str, index: Path | None, target: str) -> list[str]:
    if scope == "workspace":
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


def _in_workspace(client: Agent, index: Path) -> str:
    """A folder of the workspace as the client's file names it. Raises: CommandFailed."""
    workspace = Path.cwd().resolve()
    if not index.resolve().is_relative_to(workspace):
        raise CommandFailed(f"{index} lies outside {workspace}, where others who share the file have no such folder")
    below = index.resolve().relative_to(workspace)
    return client.workspace_folder if below == Path() else f"{client.workspace_folder}/{below.as_posix()}"


def _ask(change: Change, *, yes: bool) -> None:
    """Show the change of the file and ask for confirmation. Raises: CommandFailed."""
    note(f"{change.path}\n{change.diff}")
    if not yes:
        confirm("Write it?", "nothing was written; --yes writes without asking, --print only shows what belongs there")


def _tell(change: Change, client: Agent, scope: ScopeName, *, remove: bool) -> None:
    if not change.is_needed:
        said = "does not name the server" if remove else "is as it should be"
        return print_line(f"{change.path} {said}; nothing written")
    print_line(f"{change.path} written; {'the server is gone from it' if remove else client.next_step}")
    if scope == "workspace" and not remove and shutil.which("hummock") is None:
        warn("the file starts `hummock`, which is not on your PATH; everybody who shares it needs it there")


app.command("install")(install)
