"""Sentences of people about entries, with the entries that they mean: made up for these tests."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hummock.core.learning import Entry

_FILE = Path(__file__).with_name("said.txt")


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Entries, whose ids are their names, and sentences with the names that they refer to."""

    name: str
    entries: tuple[Entry, ...]
    said: tuple[tuple[str, frozenset[str]], ...]


def worlds() -> list[World]:
    """All worlds."""
    parts = _FILE.read_text("utf-8").split("\n@ ")[1:]
    return [_world(*part.split("\n", 1)) for part in parts]


def _world(name: str, text: str) -> World:
    lines = [line for line in text.splitlines() if line.strip()]
    entries = [_entry(line[2:]) for line in lines if line.startswith("= ")]
    said = [line.rsplit("|", 1) for line in lines if not line.startswith("= ")]
    return World(
        name=name, entries=tuple(entries), said=tuple((sentence.strip(), _names(meant)) for sentence, meant in said)
    )


def _entry(line: str) -> Entry:
    name, _, keywords = line.partition(":")
    return Entry(memory_id=name.strip(), title=name.strip(), keywords=tuple(sorted(_names(keywords))))


def _names(text: str) -> frozenset[str]:
    return frozenset(name.strip() for name in text.split(",") if name.strip())
