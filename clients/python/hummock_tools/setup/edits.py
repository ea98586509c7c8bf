"""What is put into files of agents, and how it is taken out again without touching the rest."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from hummock_tools.setup import jsonc, toml_table
from hummock_tools.setup.agents import Agent, Hooks

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
            return toml_table.with_table(text, self.agent.servers, SERVER, self.entry)
        path = self._path(text)
        known = _value_at(jsonc.read(text), path)
        return jsonc.with_value(text, path, {**(known if isinstance(known, dict) else {}), **self.entry})

    def remove(self, text: str, before: str) -> str:
        """An entry of before comes back. The table goes as well, if it is empty now and was not there before."""
        if self.is_toml:
            return toml_table.with_table_of(self.without(text), self.agent.servers, SERVER, before)
        path = self._path(text)
        known = _value_at(jsonc.read(before), path)
        if known is not None:
            return jsonc.with_value(text, path, known)
        return _pruned(self.without(text), path, before)

    def without(self, text: str) -> str:
        """The text without the entry; a table that held it alone stays. Raises: NotReadable."""
        if self.is_toml:
            return toml_table.without_table(text, self.agent.servers, SERVER)
        return jsonc.without(text, self._path(text))

    def _path(self, text: str) -> list[str]:
        older = jsonc.read(text).get(self.agent.older_servers)
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
                text = jsonc.with_value(text, [key], value)
        for event in self.hooks.events:
            path = ["hooks", event]
            if not any(map(_is_ours, _items(jsonc.read(text), path))):
                text = jsonc.with_item(text, path, item)
        return text

    def remove(self, text: str, before: str) -> str:
        """Takes the program out of all lists but those that had it before."""
        known, old = jsonc.read(text).get("hooks"), jsonc.read(before)
        for event in known if isinstance(known, dict) else ():
            if any(map(_is_ours, _items(old, ["hooks", event]))):
                continue
            ours = [at for at, each in enumerate(_items(jsonc.read(text), ["hooks", event])) if _is_ours(each)]
            for at in reversed(ours):
                text = jsonc.without(text, ["hooks", event, at])
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
    old = jsonc.read(before)
    for length in range(len(path) - 1, 0, -1):
        parent = path[:length]
        if _value_at(jsonc.read(text), parent) in ({}, []) and _value_at(old, parent) is None:
            text = jsonc.without(text, parent)
    return text


def _marks(text: str) -> tuple[int, int]:
    """Where the section begins and where the text goes on; equal if there is none. Raises: NotReadable."""
    start, end = text.find(_BEGIN), text.find(_END)
    if start < 0 and end < 0:
        return 0, 0
    if not 0 <= start < end or text.count(_BEGIN) > 1 or text.count(_END) > 1:
        raise jsonc.NotReadable(f"has not just one {_BEGIN} with one {_END} behind it; put that right by hand")
    end += len(_END)
    return start, end + (text[end : end + 1] == "\n")
