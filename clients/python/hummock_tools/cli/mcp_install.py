"""`hummock mcp install`: the server written down where a client looks for it, after it was shown."""

from __future__ import annotations

import difflib
import os
import shutil
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hummock_client.channel import DEFAULT_TARGET
from hummock_tools.cli.connection import CommandFailed, packages_of, resolved_target
from hummock_tools.cli.options import ProjectOption, TargetOption
from hummock_tools.cli.output import note, print_line, printable, warn

if TYPE_CHECKING:
    from hummock_tools.mcp.clients import McpClient
    from hummock_tools.mcp.config_files import Change


class ClientName(StrEnum):
    """Clients whose configuration is known."""

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
        from hummock_tools.mcp.clients import CLIENTS
        from hummock_tools.mcp.config_files import Unchangeable, change_of, snippet
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
    """Show what would be written where, and go on when that is wanted. Raises: CommandFailed."""
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
    """Say what was done and what comes next."""
    if not change.is_needed:
        print_line(f"{change.path} {'does not name the server' if remove else 'is as it should be'}; nothing written")
        return
    print_line(f"{change.path} written; {'the server is gone from it' if remove else client.next_step}")
    if scope is ScopeName.WORKSPACE and not remove and shutil.which("hummock") is None:
        warn("the file starts `hummock`, which is not on your PATH; everybody who shares it needs it there")
