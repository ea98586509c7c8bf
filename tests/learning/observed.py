"""Turns that were observed, with the words in them that stand for an entry: made up for these tests."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_FILE = Path(__file__).with_name("observed.txt")


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """An entry, the words that may be learnt of it, and the turns that used it."""

    title: str
    text: str
    keywords: frozenset[str]
    turns: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedWorld:
    """Entries, and turns that used none of them."""

    name: str
    entries: tuple[Called, ...]
    chatter: tuple[str, ...]

    def turns(self) -> list[tuple[str, tuple[str, ...]]]:
        """All turns with the entries that each used, in an order that mixes them."""
        said = [
            (place / len(lines), text, used)
            for lines, used in (*((one.turns, (one.title,)) for one in self.entries), (self.chatter, ()))
            for place, text in enumerate(lines)
        ]
        return [(text, used) for _, text, used in sorted(said, key=lambda turn: turn[0])]


def observed_worlds() -> list[ObservedWorld]:
    """All worlds."""
    return [_world(*part.split("\n", 1)) for part in _FILE.read_text("utf-8").split("\n@ ")[1:]]


def _world(name: str, text: str) -> ObservedWorld:
    entries, *chatter = text.split("\n~ ")
    return ObservedWorld(
        name=name,
        entries=tuple(_called(part) for part in entries.removeprefix("= ").split("\n= ")),
        chatter=tuple(line.strip() for line in chatter),
    )


def _called(part: str) -> Called:
    head, *turns = part.strip().splitlines()
    names, _, text = head.partition("|")
    title, _, keywords = names.partition(":")
    return Called(
        title=title.strip(),
        text=text.strip(),
        keywords=frozenset(keyword.strip() for keyword in keywords.split(",")),
        turns=tuple(turns),
    )
