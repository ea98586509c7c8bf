"""Which parts belong into which files of the agents on a machine, and the changes that put them in or take them out."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from hummock_tools.setup import jsonc
from hummock_tools.setup.agents import AGENTS, Agent, Machine
from hummock_tools.setup.config_files import Change, Unchangeable, edited, text_of
from hummock_tools.setup.edits import Edit, HookItems, Section, ServerEntry, WholeFile
from hummock_tools.setup.record import Record

_ROOM: Final = Path(__file__).parent
_SKILL: Final = Path("skills/hummock/SKILL.md")
_COMMANDS: Final = ("remember.md", "recall.md", "why.md")


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """How agents start the server and the hook.

    Attributes:
        hummock: The command `hummock`, by whole paths.
        shell: The same as a shell of the user's finds it.
        project: The project for all repositories; empty for that of each.
        target: Where the service listens; empty for the default.
        hook: The hook's command.
        http_port: Where the hook calls the service over HTTP, so that a service which a server starts answers there;
            empty if the hook speaks gRPC.
        platform: The system, as `sys.platform`.
    """

    hummock: Sequence[str]
    shell: str
    project: str
    target: str
    hook: Sequence[str]
    http_port: str
    platform: str

    def server(self, agent: Agent) -> list[str] | None:
        """The command of an agent's server; None where only a named project would do."""
        folder = ["--project", self.project] if self.project else agent.folder_arguments()
        target = ["--target", self.target] if self.target else []
        # On Windows no server starts a service.
        is_told = self.http_port and self.platform != "win32"
        over_http = ["env", f"HUMMOCK_HTTP_PORT={self.http_port}"] if is_told else []
        return None if folder is None else [*over_http, *self.hummock, "mcp", *folder, *target]

    def hook_line(self) -> str:
        """The hook as a line of a shell; settings of its own stand in it, except on Windows, whose shells differ."""
        if self.platform == "win32":
            return shlex.join(self.hook)
        given = {"HUMMOCK_PROJECT": self.project, "HUMMOCK_TARGET": self.target, "HUMMOCK_HTTP_PORT": self.http_port}
        settings = [f"{name}={value}" for name, value in given.items() if value]
        return shlex.join(["env", *settings, *self.hook] if settings else self.hook)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedFile:
    """A file, and the parts that belong into it; agents by name."""

    path: Path
    edits: list[Edit] = field(default_factory=list)
    agents: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What is done to a file.

    Attributes:
        planned: The file.
        change: The change; none is needed where the file is left alone.
        base: The text without our parts; None for no file.
        problem: Why it is left alone.
        is_theirs: Whether the user has a file of their own there, which is no failure.
    """

    planned: PlannedFile
    change: Change
    base: str | None = None
    problem: str = ""
    is_theirs: bool = False


def planned_files(names: Iterable[str], machine: Machine, start: Start) -> list[PlannedFile]:
    """The files for these agents, each once, with all parts that belong into it."""
    files: dict[Path, PlannedFile] = {}

    def put(name: str, path: Path, edit: Edit) -> None:
        planned = files.setdefault(path, PlannedFile(path=path))
        if edit not in planned.edits:
            planned.edits.append(edit)
        if name not in planned.agents:
            planned.agents.append(name)

    for name in names:
        agent = AGENTS[name]
        command = start.server(agent)
        if command is None:
            continue
        servers = agent.servers_file(machine)
        put(name, servers, ServerEntry(agent=agent, entry=agent.entry(command), is_toml=servers.suffix == ".toml"))
        if agent.hooks:
            put(name, agent.place(agent.hooks.file, machine), HookItems(hooks=agent.hooks, command=start.hook_line()))
        if agent.rules_file:
            put(name, agent.place(agent.rules_file, machine), Section(rules=_text("rules.md")))
        if agent.skills_folder:
            path = agent.place(agent.skills_folder, machine) / "hummock" / _SKILL.name
            put(name, path, WholeFile(text=_text("plugin" / _SKILL), part="skill"))
        for each in _COMMANDS if agent.commands_folder else ():
            path = agent.place(agent.commands_folder, machine) / each
            text = _text(f"plugin/commands/{each}").replace("hummock explain", f"{start.shell} explain")
            put(name, path, WholeFile(text=text, part=f"/{path.stem}"))
    return list(files.values())


def setting_up(planned: PlannedFile, record: Record) -> Step:
    """The step that puts the parts into a file."""
    try:
        current = text_of(planned.path)
        base = _base(planned, current, record)
        is_as_written = record.is_as_written(planned.path, current)
        whole = next((each for each in planned.edits if isinstance(each, WholeFile)), None)
        if whole and current not in (None, whole.text) and not is_as_written:
            problem = "is a file of your own, or was changed by you; it stays"
            return Step(planned=planned, change=_none(planned.path), problem=problem, is_theirs=True)
        start = base if is_as_written else current
        after = edited(planned.path, start or "", [each.add for each in planned.edits])
    except Unchangeable as error:
        return Step(planned=planned, change=_none(planned.path), problem=str(error))
    return Step(planned=planned, change=Change(path=planned.path, before=current, after=after), base=base)


def undoing(path: Path, known: Mapping[Path, PlannedFile], record: Record) -> Step:
    """The step that takes our parts out of a file that was written."""
    planned = known.get(path, PlannedFile(path=path))
    try:
        current = text_of(path)
        base = _base(planned, current, record)
        is_ours_alone = any(isinstance(each, WholeFile) for each in planned.edits) or not planned.edits
        if is_ours_alone and current is not None and not record.is_as_written(path, current):
            problem = "was changed by you; it stays"
            return Step(planned=planned, change=_none(path, current), problem=problem, is_theirs=True)
    except Unchangeable as error:
        return Step(planned=planned, change=_none(planned.path), problem=str(error))
    return Step(planned=planned, change=Change(path=path, before=current, after=base))


def _none(path: Path, text: str | None = None) -> Change:
    return Change(path=path, before=text, after=text)


def _base(planned: PlannedFile, current: str | None, record: Record) -> str | None:
    """The file's text without our parts; None for no file. Raises: Unchangeable."""
    if planned.path not in record.paths or current is None:
        return current
    before = record.base(planned.path)
    if record.is_as_written(planned.path, current):
        return before
    text = edited(
        planned.path, current, [partial(each.remove, before=before or "") for each in reversed(planned.edits)]
    )
    return None if before is None and _says_nothing(planned.path, text, planned.edits) else text


def _says_nothing(path: Path, text: str, edits: Sequence[Edit]) -> bool:
    """Whether a file that was made holds no more than what new ones begin with."""
    if not text.strip() or path.suffix not in {".json", ".jsonc"}:
        return not text.strip()
    return jsonc.read(text) in ({}, *(each.hooks.start for each in edits if isinstance(each, HookItems)))


def _text(name: str | Path) -> str:
    return (_ROOM / name).read_text(encoding="utf-8")
