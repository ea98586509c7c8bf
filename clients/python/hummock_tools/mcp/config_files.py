"""Adds the server to a client's configuration file, or removes it, without other changes."""

from __future__ import annotations

import os
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final, Literal, TypeAlias

from hummock_tools.mcp import jsonc

Scope: TypeAlias = Literal["user", "workspace"]

SERVER: Final = "hummock"
"""The server's name in the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class McpClient:
    """A program that starts MCP servers.

    Attributes:
        title: Name for people.
        servers: The key of the file under which servers stand by name.
        user_file: Path of the user's file on Linux, below the home directory.
        mac_user_file: The user's file on macOS; empty if it has the same path.
        workspace_file: Path of the file that a repository brings along; empty where there is none.
        workspace_folder: How an argument of that file names the repository; "." where the server is started in it.
        extra: What an entry holds besides command and arguments.
        next_step: What its user does then.
    """

    title: str
    servers: str
    user_file: str
    mac_user_file: str = ""
    workspace_file: str = ""
    workspace_folder: str = "."
    extra: Mapping[str, Any]
    next_step: str

    def file(self, scope: Scope, home: Path, workspace: Path, environ: Mapping[str, str], platform: str) -> Path | None:
        """The file of a scope; None where the program has none. The environment moves some of the user's."""
        if scope == "workspace":
            return workspace / self.workspace_file if self.workspace_file else None
        if platform == "darwin" and self.mac_user_file:
            return home / self.mac_user_file
        below_config = PurePosixPath(self.user_file)
        if below_config.is_relative_to(".config") and Path(environ.get("XDG_CONFIG_HOME", "")).is_absolute():
            return Path(environ["XDG_CONFIG_HOME"]) / below_config.relative_to(".config")
        if self.servers == "mcp_servers" and Path(environ.get("CODEX_HOME", "")).is_absolute():
            return Path(environ["CODEX_HOME"]) / below_config.name
        return home / self.user_file

    def entry(self, command: Sequence[str]) -> dict[str, Any]:
        """Entry of the client's configuration file for a server that this command starts."""
        program, *arguments = command
        return {**self.extra, "command": program, "args": arguments}


CLIENTS: Final[Mapping[str, McpClient]] = {
    name: McpClient(**said)
    for name, said in tomllib.loads(Path(__file__).with_name("clients.toml").read_text("utf-8")).items()
}
"""The programs that are known, by the names that `--client` takes."""


class Unchangeable(Exception):
    """A file that is better left alone; the message names it and says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A file's text before and after a change."""

    path: Path
    before: str
    after: str

    @property
    def is_needed(self) -> bool:
        """True if the file's content changes."""
        return self.before != self.after

    def write(self) -> None:
        """Replace the file atomically, keeping its mode. Raises: Unchangeable."""
        # Who keeps such files in a repository of their own links to them.
        path = self.path.resolve()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            _replace(path, self.after)
        except OSError as error:
            raise Unchangeable(f"{self.path}: {error.strerror or error}") from error


def change_of(path: Path, table: str, entry: Mapping[str, Any] | None) -> Change:
    """The change that writes an entry to a file, JSON with comments or TOML by its name; None removes the entry.

    Raises: Unchangeable, where the file cannot be read, or not be changed without harm.
    """
    try:
        before = path.read_bytes().decode() if path.exists() else ""
        change = _toml if path.suffix == ".toml" else _json
        # Editors of Windows begin a file with it, and want it back.
        mark = "\ufeff" if before.startswith("\ufeff") else ""
        return Change(path=path, before=before, after=mark + change(before.removeprefix(mark), table, entry))
    except UnicodeDecodeError as error:
        raise Unchangeable(f"{path} is not UTF-8: byte {error.start} is 0x{error.object[error.start]:02x}") from error
    except OSError as error:
        raise Unchangeable(f"{path}: {error.strerror or error}") from error
    except jsonc.NotReadable as error:
        raise Unchangeable(f"{path} {error}") from error


def snippet(is_toml: bool, table: str, entry: Mapping[str, Any]) -> str:
    """A configuration with the entry alone."""
    return (_toml if is_toml else _json)("", table, entry).rstrip("\n")


def _json(before: str, table: str, entry: Mapping[str, Any] | None) -> str:
    if entry is None:
        return jsonc.without_entry(before, table, SERVER)
    return jsonc.with_entry(before, table, SERVER, _merged(jsonc.read(before).get(table), entry))


def _merged(servers: object, entry: Mapping[str, Any]) -> dict[str, Any]:
    """The entry, with other keys that its user had put into the previous one, such as `env`."""
    known = servers.get(SERVER) if isinstance(servers, dict) else None
    return {**(known if isinstance(known, dict) else {}), **entry}


def _toml(before: str, table: str, entry: Mapping[str, Any] | None) -> str:
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        known = tomllib.loads(before)
        document = tomlkit.parse(before)
    except (tomllib.TOMLDecodeError, TOMLKitError) as error:
        raise jsonc.NotReadable(f"is not valid TOML: {error}") from error
    servers = known.get(table, {})
    if not isinstance(servers, dict):
        raise jsonc.NotReadable(f"holds a {table} that is no table")
    merged = None if entry is None else _merged(servers, entry)
    if servers.get(SERVER) == merged:
        return before
    wanted = {name: value for name, value in servers.items() if name != SERVER}
    if merged is None:
        del document[table][SERVER]
    else:
        wanted[SERVER] = merged
        if table not in document:
            document[table] = tomlkit.table(is_super_table=True)
        if SERVER in servers:
            document[table][SERVER].update(merged)
        else:
            document[table][SERVER] = merged
    after = tomlkit.dumps(document)
    if tomllib.loads(after).get(table, {}) != wanted or _without(after, table) != _without(before, table):
        raise jsonc.NotReadable("has a form that cannot be changed safely; put the entry in by hand (--print shows it)")
    return after


def _without(text: str, table: str) -> dict[str, Any]:
    return {name: value for name, value in tomllib.loads(text).items() if name != table}


def _replace(path: Path, text: str) -> None:
    mask = os.umask(0o077)
    os.umask(mask)
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~mask
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(mode)
        Path(temporary).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(temporary).unlink()
        raise
