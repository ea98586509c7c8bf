"""The agents that are known: where each keeps servers, hooks, rules and skills, and in which form."""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Final, Literal, TypeAlias

Scope: TypeAlias = Literal["user", "workspace"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A user's home directory, environment variables and system (`sys.platform`)."""

    home: Path
    environ: Mapping[str, str]
    platform: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """How an agent is told of a program that it starts for its events.

    Attributes:
        file: Path of the file below the home directory; hooks stand there in lists, below "hooks" and the event.
        events: The agent's names of the events.
        item: An item of such a list, with "hummock-hook" in place of the command.
        start: What a new file begins with.
        next_step: What the user does then; empty if nothing.
    """

    file: str
    events: Sequence[str]
    item: Mapping[str, Any]
    start: Mapping[str, Any] = field(default_factory=dict)
    next_step: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """A program that starts MCP servers. Paths are relative to the home directory; an empty one is missing.

    Attributes:
        title: Name for people.
        found_by: Files and folders that show that it is on a machine.
        programs: Its commands on the PATH.
        home_variable: The environment variable that moves `home_folder`.
        home_folder: Its folder below the home directory.
        servers: The key of its file under which servers stand by name; a dot goes one object deeper.
        older_servers: The key under which an earlier version had them; used in files that do so.
        user_file: Path of the user's file on Linux.
        other_user_file: Another name of that file, used if it is there.
        mac_user_file: The user's file on macOS; empty if it has the same path.
        windows_user_file: The user's file on Windows, likewise.
        workspace_file: Path of the file that a repository brings along, from its root.
        workspace_folder: How an argument names the open repository; "." where servers are started in it.
        starts_in_workspace: Whether the servers of the user's file are started in the open repository too.
        takes_one_list: Whether an entry has the command and its arguments in one list.
        extra: What an entry holds besides command and arguments.
        rules_file: Instructions that the agent always has before it.
        skills_folder: Where it looks for skills.
        commands_folder: Where it looks for slash commands.
        hooks: How it starts hooks; None if it has none that `hummock-hook` knows.
        next_step: What its user does then.
    """

    title: str
    found_by: Sequence[str]
    programs: Sequence[str] = ()
    home_variable: str = ""
    home_folder: str = ""
    servers: str
    older_servers: str = ""
    user_file: str
    other_user_file: str = ""
    mac_user_file: str = ""
    windows_user_file: str = ""
    workspace_file: str = ""
    workspace_folder: str = "."
    starts_in_workspace: bool = False
    takes_one_list: bool = False
    extra: Mapping[str, Any]
    rules_file: str = ""
    skills_folder: str = ""
    commands_folder: str = ""
    hooks: Hooks | None = None
    next_step: str

    def is_on(self, machine: Machine) -> bool:
        """Whether the machine shows a trace of the agent."""
        path = machine.environ.get("PATH", "")
        return any(self.place(each, machine).exists() for each in self.found_by) or any(
            shutil.which(each, path=path) for each in self.programs
        )

    def file(self, scope: Scope, workspace: Path, machine: Machine) -> Path | None:
        """The file with the servers of a scope; None where the program has none."""
        if scope == "workspace":
            return workspace / self.workspace_file if self.workspace_file else None
        return self.servers_file(machine)

    def servers_file(self, machine: Machine) -> Path:
        """The user's file with the servers."""
        if own := {"darwin": self.mac_user_file, "win32": self.windows_user_file}.get(machine.platform):
            return machine.home / own
        if self.other_user_file and (other := self.place(self.other_user_file, machine)).exists():
            return other
        return self.place(self.user_file, machine)

    def place(self, path: str, machine: Machine) -> Path:
        """A path below the home directory, or where the environment has moved it."""
        below = PurePosixPath(path)
        if below.is_relative_to(".config") and Path(machine.environ.get("XDG_CONFIG_HOME", "")).is_absolute():
            return Path(machine.environ["XDG_CONFIG_HOME"]) / below.relative_to(".config")
        own = machine.environ.get(self.home_variable, "")
        if Path(own).is_absolute() and below.is_relative_to(self.home_folder):
            return Path(own) / below.relative_to(self.home_folder)
        if Path(own).is_absolute() and path == f"{self.home_folder}.json":
            return Path(own) / path
        return machine.home / path

    def folder_arguments(self) -> list[str] | None:
        """How the server of the user's file learns which repository is open; None where it cannot."""
        if self.starts_in_workspace:
            return []
        return ["--folder", self.workspace_folder] if self.workspace_folder != "." else None

    def entry(self, command: Sequence[str]) -> dict[str, Any]:
        """Entry of the agent's configuration file for a server that this command starts."""
        program, *arguments = command
        if self.takes_one_list:
            return {**self.extra, "command": [program, *arguments]}
        return {**self.extra, "command": program, "args": arguments}


def _read(said: dict[str, Any]) -> Agent:
    hooks = said.pop("hooks", None)
    return Agent(**said, hooks=Hooks(**hooks) if hooks else None)


AGENTS: Final[Mapping[str, Agent]] = {
    name: _read(said)
    for name, said in tomllib.loads(Path(__file__).with_name("agents.toml").read_text("utf-8")).items()
}
"""The agents that are known, by the names that `--agent` and `--client` take."""
