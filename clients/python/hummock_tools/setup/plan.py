"""What is put into which files of the agents on a machine, and how it is taken out again without touching the rest."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

from hummock_tools.setup import documents
from hummock_tools.setup.agents import AGENTS, Agent, Hooks, Machine
from hummock_tools.setup.config_files import Change, Record, Unchangeable, edited, text_of

SERVER: Final = "hummock"
"""The server's name in files of agents."""

HOOK_PROGRAM: Final = "hummock-hook"
_HOOK_NAMES: Final = (HOOK_PROGRAM, "hummock_tools.hook")
_BEGIN: Final = "<!-- hummock: begin -->"
_END: Final = "<!-- hummock: end -->"


class Edit(Protocol):
    """A part of a file that is ours."""

    @property
    def part(self) -> str:
        """What it is, in a word or two."""

    def add(self, text: str) -> str:
        """The text with the part, which stays as it is if it is there already. Raises: NotReadable."""

    def remove(self, text: str, before: str) -> str:
        """The text without the part, and without what was made to hold it: `before` is of old. Raises: NotReadable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerEntry:
    """The MCP server, in a file with JSON and comments, or in TOML."""

    agent: Agent
    entry: Mapping[str, Any]
    is_toml: bool
    part: str = field(default="MCP server", init=False)

    def add(self, text: str) -> str:
        """Keeps other keys that its user had put into the entry of before, such as `env`."""
        if self.is_toml:
            return documents.with_table(text, self.agent.servers, SERVER, self.entry)
        path = self._path(text)
        known = _value_at(documents.read(text), path)
        return documents.with_value(text, path, {**(known if isinstance(known, dict) else {}), **self.entry})

    def remove(self, text: str, before: str) -> str:
        """An entry of before comes back. The table goes as well, if it is empty now and was not there before."""
        if self.is_toml:
            return documents.with_table_of(self.without(text), self.agent.servers, SERVER, before)
        path = self._path(text)
        known = _value_at(documents.read(before), path)
        if known is not None:
            return documents.with_value(text, path, known)
        return _pruned(self.without(text), path, before)

    def without(self, text: str) -> str:
        """The text without the entry; a table that held it alone stays. Raises: NotReadable."""
        if self.is_toml:
            return documents.without_table(text, self.agent.servers, SERVER)
        return documents.without(text, self._path(text))

    def _path(self, text: str) -> list[str]:
        older = documents.read(text).get(self.agent.older_servers)
        if isinstance(older, dict) and any(isinstance(each, dict) and "type" in each for each in older.values()):
            return [self.agent.older_servers, SERVER]
        return [*self.agent.servers.split("."), SERVER]


@dataclass(frozen=True, slots=True, kw_only=True)
class HookItems:
    """A program that an agent starts for its events, as an item of each event's list."""

    hooks: Hooks
    command: str
    part: str = field(default="hooks", init=False)

    def add(self, text: str) -> str:
        """Leaves lists alone in which the program stands, whatever the path or the options that its user gave it."""
        item = json.loads(json.dumps(self.hooks.item).replace(HOOK_PROGRAM, json.dumps(self.command)[1:-1]))
        if not text.strip():
            for key, value in self.hooks.start.items():
                text = documents.with_value(text, [key], value)
        for event in self.hooks.events:
            path = ["hooks", event]
            if not any(map(_is_ours, _items(documents.read(text), path))):
                text = documents.with_item(text, path, item)
        return text

    def remove(self, text: str, before: str) -> str:
        """Takes the program out of all lists but those that had it before."""
        known, old = documents.read(text).get("hooks"), documents.read(before)
        for event in known if isinstance(known, dict) else ():
            if any(map(_is_ours, _items(old, ["hooks", event]))):
                continue
            ours = [at for at, each in enumerate(_items(documents.read(text), ["hooks", event])) if _is_ours(each)]
            for at in reversed(ours):
                text = documents.without(text, ["hooks", event, at])
            if ours:
                text = _pruned(text, ["hooks", event, ""], before)
        return text


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Rules between two marks in a text that the agent always reads."""

    rules: str
    part: str = field(default="rules", init=False)

    def add(self, text: str) -> str:
        """Replaces the section of before, else puts it at the end."""
        section = f"{_BEGIN}\n{self.rules.strip()}\n{_END}\n"
        start, end = _marks(text)
        if start < end:
            return text[:start] + section + text[end:]
        gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
        return text + gap + section

    def remove(self, text: str, before: str) -> str:
        """Takes the blank line above it along."""
        start, end = _marks(text)
        if start == end:
            return text
        above, below = text[:start], text[end:]
        if above.endswith("\n\n"):
            above = above[:-1]
        return above + below


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeFile:
    """A file that is ours alone."""

    text: str
    part: str

    def add(self, text: str) -> str:
        """Our text, whatever was there."""
        return self.text

    def remove(self, text: str, before: str) -> str:
        """Nothing of it stays."""
        return before if text == self.text else text


def _value_at(document: Mapping[str, Any], path: Sequence[str]) -> object:
    value: object = document
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _items(document: Mapping[str, Any], path: Sequence[str]) -> list[object]:
    items = _value_at(document, path)
    return items if isinstance(items, list) else []


def _is_ours(item: object) -> bool:
    return any(name in json.dumps(item) for name in _HOOK_NAMES)


def _pruned(text: str, path: Sequence[str], before: str) -> str:
    """The text without the tables and lists on the path to a value that are empty and were not there before."""
    old = documents.read(before)
    for length in range(len(path) - 1, 0, -1):
        parent = path[:length]
        if _value_at(documents.read(text), parent) in ({}, []) and _value_at(old, parent) is None:
            text = documents.without(text, parent)
    return text


def _marks(text: str) -> tuple[int, int]:
    """Where the section begins and where the text goes on; equal if there is none. Raises: NotReadable."""
    start, end = text.find(_BEGIN), text.find(_END)
    if start < 0 and end < 0:
        return 0, 0
    if not 0 <= start < end or text.count(_BEGIN) > 1 or text.count(_END) > 1:
        raise documents.NotReadable(f"has not just one {_BEGIN} with one {_END} behind it; put that right by hand")
    end += len(_END)
    return start, end + (text[end : end + 1] == "\n")


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
    return documents.read(text) in ({}, *(each.hooks.start for each in edits if isinstance(each, HookItems)))


def _text(name: str | Path) -> str:
    return (_ROOM / name).read_text(encoding="utf-8")
