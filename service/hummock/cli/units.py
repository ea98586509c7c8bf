"""`hummock service`: a unit of the user's own systemd or launchd that runs `hummock serve` and starts it again."""

from __future__ import annotations

import json as json_lib
import os
import plistlib
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Final, Protocol

import typer

from hummock.cli.save import JsonOption
from hummock.cli.serve import holder_of, serve
from hummock_tools.cli.connection import CommandFailed, packages_of, require_unix
from hummock_tools.cli.output import note, print_line, warn

app = typer.Typer(no_args_is_help=True, help="Let this machine run the service from login on, and after a crash.")

_UNIT: Final = "hummock.service"
_LABEL: Final = "dev.hummock"
_SERVE: Final = (sys.executable, "-P", "-m", "hummock", "serve")
_STOP_S: Final = 30
_CALL_TIMEOUT_S: Final = 90.0
_CARRIED: Final = "HUMMOCK_CONFIG"
"""The one variable that a unit keeps: it has no option, and is no secret."""
_NOT_SETTINGS: Final = frozenset({_CARRIED, "HUMMOCK_TARGET", "HUMMOCK_PROJECT", "HUMMOCK_TOKEN", "HUMMOCK_TOKEN_FILE"})
_OF_SERVE: Final = {"allow_extra_args": True, "ignore_unknown_options": True}

DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the unit and change nothing.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitStatus:
    """What the manager says of the unit.

    Attributes:
        unit: The unit's file.
        is_installed: Whether the file is there.
        is_running: Whether its process runs.
        state: The manager's own word.
        pid: Its process, or 0.
    """

    unit: str
    is_installed: bool
    is_running: bool
    state: str
    pid: int


class Manager(Protocol):
    """What starts services on this machine."""

    path: Path

    def text(self, command: Sequence[str], environ: Mapping[str, str]) -> bytes:
        """The unit's file."""

    def check(self) -> None:
        """Raises: CommandFailed, where the manager does not answer."""

    def load(self, *, is_changed: bool) -> None:
        """Start what the file says now, and at each login. Raises: CommandFailed."""

    def unload(self) -> None:
        """Stop it, and start it no more. Raises: CommandFailed."""

    def forget(self) -> None:
        """Take note that the file is gone. Raises: CommandFailed."""

    def status(self) -> UnitStatus:
        """What the manager says of the unit."""


class Systemd:
    """systemd's manager of the user's own services."""

    def __init__(self, environ: Mapping[str, str], home: Path) -> None:
        configured = Path(environ.get("XDG_CONFIG_HOME", ""))
        self.path = (configured if configured.is_absolute() else home / ".config") / "systemd" / "user" / _UNIT

    def text(self, command: Sequence[str], environ: Mapping[str, str]) -> bytes:
        """The unit's file."""
        # `$` stands for a variable in arguments, and for itself in the program's path.
        words = [_quoted(command[0]), *(_quoted(word).replace("$", "$$") for word in command[1:])]
        lines = [
            "[Unit]",
            "Description=Hummock, the memory of agents and IDE plugins",
            # What cannot start is given up; `hummock service status` says so.
            "StartLimitIntervalSec=60",
            "StartLimitBurst=5",
            "",
            "[Service]",
            f"ExecStart={' '.join(words)}",
            *(f"Environment={_quoted(f'{name}={value}')}" for name, value in environ.items()),
            "WorkingDirectory=%h",
            "Restart=on-failure",
            "RestartSec=2",
            f"TimeoutStopSec={_STOP_S}",
            "UMask=0077",
            "NoNewPrivileges=yes",
            "",
            "[Install]",
            "WantedBy=default.target",
            "",
        ]
        return "\n".join(lines).encode()

    def check(self) -> None:
        """Raises: CommandFailed, where no manager of this user runs."""
        try:
            done = _run("systemctl", "--user", "show-environment")
        except CommandFailed as failure:
            raise CommandFailed(f"{failure}; {_WITHOUT_SYSTEMD}") from failure
        if done.returncode != 0:
            raise CommandFailed(f"no systemd runs for this user ({_last_line(done.stderr)}); {_WITHOUT_SYSTEMD}")

    def load(self, *, is_changed: bool) -> None:
        """Start it now and at each login; a unit that has changed is started anew."""
        _call("systemctl", "--user", "daemon-reload")
        _call("systemctl", "--user", "enable", "--now", _UNIT)
        if is_changed:
            _call("systemctl", "--user", "restart", _UNIT)

    def unload(self) -> None:
        """Stop it, and start it no more."""
        _call("systemctl", "--user", "disable", "--now", _UNIT)

    def forget(self) -> None:
        """Take note that the file is gone."""
        _call("systemctl", "--user", "daemon-reload")

    def status(self) -> UnitStatus:
        """What systemd says of the unit."""
        shown = _call("systemctl", "--user", "show", _UNIT, "--property=ActiveState,MainPID")
        said = dict(line.split("=", 1) for line in shown.splitlines() if "=" in line)
        state = said.get("ActiveState", "unknown")
        return UnitStatus(
            unit=str(self.path),
            is_installed=self.path.exists(),
            is_running=state == "active",
            state=state,
            pid=int(said.get("MainPID", "0")),
        )


class Launchd:
    """macOS's launchd, in the user's own session."""

    def __init__(self, home: Path, uid: int) -> None:
        self.path = home / "Library" / "LaunchAgents" / f"{_LABEL}.plist"
        self._home = home
        self._domain = f"gui/{uid}"

    def text(self, command: Sequence[str], environ: Mapping[str, str]) -> bytes:
        """The unit's file."""
        log = str(self._home / "Library" / "Logs" / "hummock.log")
        values = {
            "Label": _LABEL,
            "ProgramArguments": list(command),
            "EnvironmentVariables": dict(environ),
            "WorkingDirectory": str(self._home),
            "RunAtLoad": True,
            # Started again after a crash, and not after `hummock stop`.
            "KeepAlive": {"SuccessfulExit": False},
            "ExitTimeOut": _STOP_S,
            "Umask": 0o077,
            "StandardOutPath": log,
            "StandardErrorPath": log,
        }
        return plistlib.dumps({name: value for name, value in values.items() if value != {}}, sort_keys=False)

    def check(self) -> None:
        """Raises: CommandFailed, where nobody is logged in at the screen."""
        if _run("launchctl", "print", self._domain).returncode != 0:
            raise CommandFailed(f"launchd has no session {self._domain}; log in at the screen, and run it there")

    def load(self, *, is_changed: bool) -> None:
        """Start it now and at each login; a unit that has changed is started anew."""
        if self._is_loaded():
            if not is_changed:
                return
            _call("launchctl", "bootout", f"{self._domain}/{_LABEL}")
        _call("launchctl", "enable", f"{self._domain}/{_LABEL}")
        _call("launchctl", "bootstrap", self._domain, str(self.path))

    def unload(self) -> None:
        """Stop it, and start it no more."""
        if self._is_loaded():
            _call("launchctl", "bootout", f"{self._domain}/{_LABEL}")

    def forget(self) -> None:
        """Launchd keeps nothing of a file that it has not loaded."""

    def status(self) -> UnitStatus:
        """What launchd says of the unit."""
        done = _run("launchctl", "print", f"{self._domain}/{_LABEL}")
        said = dict(re.findall(r"^\s(state|pid) = (\S+)", done.stdout, re.MULTILINE)) if done.returncode == 0 else {}
        state = said.get("state", "not loaded")
        return UnitStatus(
            unit=str(self.path),
            is_installed=self.path.exists(),
            is_running=state == "running",
            state=state,
            pid=int(said.get("pid", "0")),
        )

    def _is_loaded(self) -> bool:
        return _run("launchctl", "print", f"{self._domain}/{_LABEL}").returncode == 0


_WITHOUT_SYSTEMD: Final = (
    "log in as this user, or let its services run without a login (`loginctl enable-linger`); in a container, the "
    "engine starts `hummock serve` again"
)


@app.command(context_settings=_OF_SERVE)
def install(context: typer.Context, dry_run: DryRun = False, json: JsonOption = False) -> None:
    """Run `hummock serve` with these options from now on, at each login and after a crash.

    Takes the options of `hummock serve`. Run it again with others to change them.
    """
    manager = _manager()
    command = [*_SERVE, *_options_of_serve(context.args)]
    _check_printable(command)
    text = manager.text(command, _carried())
    if dry_run:
        if json:
            print_line(json_lib.dumps({"unit": str(manager.path), "text": text.decode()}, ensure_ascii=False))
        else:
            print_line(text.decode().rstrip("\n"))
        return
    manager.check()
    if not manager.path.exists():
        _check_free(command)
    is_changed = not manager.path.exists() or manager.path.read_bytes() != text
    if is_changed:
        _write(manager.path, text)
    manager.load(is_changed=is_changed)
    for name in sorted(set(os.environ) - _NOT_SETTINGS):
        if name.startswith("HUMMOCK_"):
            warn(f"{name} is set here and not in the unit; give the option, or write it to the file of HUMMOCK_CONFIG")
    if json:
        print_line(json_lib.dumps({"unit": str(manager.path), "changed": is_changed, "command": command}))
    else:
        print_line(f"{'installed' if is_changed else 'unchanged'}: {manager.path}")
        note("`hummock service status` says how it runs, `hummock health` whether it takes calls")


@app.command()
def uninstall(dry_run: DryRun = False, json: JsonOption = False) -> None:
    """Stop it, and run it no more. Memories, models and tokens stay where they are."""
    manager = _manager()
    is_there = manager.path.exists()
    if is_there and not dry_run:
        manager.check()
        manager.unload()
        manager.path.unlink()
        manager.forget()
    if json:
        print_line(json_lib.dumps({"unit": str(manager.path), "removed": is_there and not dry_run}))
    elif not is_there:
        print_line(f"not installed: {manager.path}")
    else:
        print_line(f"{'would be removed' if dry_run else 'removed'}: {manager.path}; the data stays")


@app.command()
def status(json: JsonOption = False) -> None:
    """Say whether it is installed and runs; ends with 1 if it does not run."""
    manager = _manager()
    manager.check()
    said = manager.status()
    if json:
        print_line(json_lib.dumps(asdict(said)))
    elif not said.is_installed:
        print_line(f"not installed: {said.unit}")
    else:
        print_line(f"{said.state}{f' (process {said.pid})' if said.pid else ''}: {said.unit}")
    if not said.is_running:
        raise typer.Exit(1)


def _manager() -> Manager:
    """The manager of this platform. Raises: CommandFailed."""
    require_unix()
    home = Path(os.environ.get("HOME", ""))
    if not home.is_absolute():
        raise CommandFailed("there is no HOME in which a user's units lie")
    if sys.platform == "darwin":
        return Launchd(home, os.getuid())
    return Systemd(os.environ, home)


def _options_of_serve(given: Sequence[str]) -> list[str]:
    """Options of `hummock serve`, checked as it would check them, with absolute paths. Raises: UsageError."""
    of_serve = typer.Typer()
    of_serve.command()(serve)
    command = typer.main.get_command(of_serve)
    values = command.make_context("hummock service install", list(given)).params
    options: list[str] = []
    for parameter in command.params:
        value: Any = values.get(parameter.name or "")
        if value is None or (value is False and not parameter.secondary_opts):
            continue
        if isinstance(value, bool):
            options.append(parameter.opts[0] if value else parameter.secondary_opts[0])
        else:
            options += [parameter.opts[0], os.path.abspath(value) if isinstance(value, Path) else str(value)]  # noqa: PTH100 - links stay
    return options


def _check_free(command: Sequence[str]) -> None:
    """Raises: CommandFailed, where another service has the data directory of the command."""
    with packages_of("server"):
        from hummock.config import load_settings
    given = dict(pairwise(command)).get("--data")
    directory = load_settings({"data_dir": given}, directory=Path.home()).data_dir
    if pid := holder_of(directory):
        raise CommandFailed(f"process {pid} serves {directory} already; `hummock stop --data {directory}` ends it")


def _carried() -> dict[str, str]:
    """The variable that a unit keeps, if it is set."""
    config = os.environ.get(_CARRIED)
    return {_CARRIED: str(Path(config).expanduser().absolute())} if config else {}


def _check_printable(command: Sequence[str]) -> None:
    for word in command:
        if not word.isprintable():
            raise CommandFailed(f"{word!r} has characters that no unit can hold; use another path")


def _quoted(word: str) -> str:
    """A word of a unit, in quotes; `%` stands for a specifier unless it is doubled."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'


def _write(path: Path, text: bytes) -> None:
    """Write the file whole. Raises: CommandFailed."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # `--store` may hold a password.
        part.touch(0o600)
        part.write_bytes(text)
        part.replace(path)
    except OSError as error:
        raise CommandFailed(f"{path} cannot be written: {error.strerror}") from error


def _call(*command: str) -> str:
    """Output of a call to the manager. Raises: CommandFailed."""
    done = _run(*command)
    if done.returncode != 0:
        raise CommandFailed(f"`{' '.join(command)}` ended with {done.returncode}: {_last_line(done.stderr)}")
    return done.stdout


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=_CALL_TIMEOUT_S)
    except FileNotFoundError as error:
        raise CommandFailed(f"{command[0]} is missing") from error
    except subprocess.TimeoutExpired as error:
        raise CommandFailed(f"`{' '.join(command)}` did not end in {_CALL_TIMEOUT_S:.0f} s") from error


def _last_line(said: str) -> str:
    return next((line.strip() for line in reversed(said.splitlines()) if line.strip()), "it said nothing")
