"""Printing: answers to stdout, everything about them to stderr."""

from __future__ import annotations

import unicodedata

from google.protobuf.duration_pb2 import Duration
from google.protobuf.json_format import MessageToJson
from google.protobuf.message import Message
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

__all__ = [
    "age",
    "columns",
    "milliseconds",
    "new_table",
    "note",
    "print_json",
    "print_line",
    "print_table",
    "printable",
    "warn",
]

_SECONDS_PER_DAY = 86_400
_KEPT_CONTROLS = "\n\t"


def printable(text: str) -> str:
    """The text without what a terminal would obey: stored text must not move the cursor or change colours."""
    return "".join(
        character
        for character in text
        if character in _KEPT_CONTROLS or unicodedata.category(character) not in {"Cc", "Cs"}
    )


def print_line(text: str) -> None:
    """One line or more of the answer, to stdout, as they are; at once, for who reads a pipe waits for them."""
    print(text, flush=True)


def print_json(message: Message) -> None:
    """The message in protobuf's JSON mapping; Chinese stays Chinese."""
    print(MessageToJson(message, ensure_ascii=False))


def print_table(table: Table) -> None:
    """To stdout; as wide as the terminal, 80 columns where there is none."""
    Console(markup=False, highlight=False, emoji=False).print(table)


def columns() -> int:
    """The terminal's width; 80 where there is none."""
    return Console().width


def new_table(*, title: str = "") -> Table:
    """A table without vertical lines, its title on the left."""
    return Table(
        title=Text(title) if title else None, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False
    )


def note(text: str) -> None:
    """A line about the answer, to stderr."""
    Console(stderr=True, markup=False, highlight=False, emoji=False, soft_wrap=True).print(Text(text))


def warn(text: str) -> None:
    """A line that must not be overlooked, to stderr, yellow on a terminal."""
    Console(stderr=True, highlight=False, emoji=False, soft_wrap=True).print(Text(text, style="yellow"))


def age(days: float) -> str:
    """An age in its largest fitting unit: "40 s", "5 min", "2 h", "12 d", "3 y"."""
    seconds = days * _SECONDS_PER_DAY
    for limit_s, unit_s, name in ((60, 1, "s"), (3600, 60, "min"), (_SECONDS_PER_DAY, 3600, "h")):
        if seconds < limit_s:
            return f"{int(seconds // unit_s)} {name}"
    return f"{int(days)} d" if days < 365 else f"{days / 365.25:.0f} y"


def milliseconds(elapsed: Duration) -> str:
    """A duration as "3.1 ms"."""
    return f"{elapsed.ToNanoseconds() / 1e6:.1f} ms"
