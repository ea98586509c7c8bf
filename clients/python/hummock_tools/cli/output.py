"""Printing: answers to stdout, everything about them to stderr; memories in words, and how far a long command is."""

from __future__ import annotations

import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import TracebackType
from typing import Self, TypeVar

import grpc
import typer
from google.protobuf.json_format import MessageToJson
from google.protobuf.message import Message
from rich import box
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from hummock_client.v1 import memory_pb2
from hummock_client.v1.context_service_pb2 import SecretsFound
from hummock_tools.cli.connection import CALL_TIMEOUT_S, CommandFailed, Service, connect

Request = TypeVar("Request", bound=Message)
Reply = TypeVar("Reply", bound=Message)

_SECONDS_PER_DAY = 86_400
# Controls but tab and newline, marks and overrides of direction, line and paragraph separators, lone surrogates.
_COMMANDS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
_MAX_LINE_CHARACTERS = 120
_LINE_EVERY_S = 5.0
_KIND_WORDS = {
    memory_pb2.MEMORY_KIND_LEARNING_RECORD: "record",
    memory_pb2.MEMORY_KIND_DOMAIN_KNOWLEDGE: "domain",
    memory_pb2.MEMORY_KIND_CODE_FRAGMENT: "code",
    memory_pb2.MEMORY_KIND_NOTE: "note",
    memory_pb2.MEMORY_KIND_ENTRY: "entry",
}


def printable(text: str) -> str:
    """Escape control characters of a text for a terminal as a backslash, "u" and their number.

    Stored text must not move the cursor, change colours or the direction of adjacent text.
    """
    return _COMMANDS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def one_line(text: str) -> str:
    """The text on one line, printable, at most 120 characters."""
    line = " ".join(printable(text).split())
    return line if len(line) <= _MAX_LINE_CHARACTERS else f"{line[: _MAX_LINE_CHARACTERS - 1]}…"


def confirm(question: str, otherwise: str) -> None:
    """Asks on stderr. Raises: CommandFailed, which says what did not happen, unless the answer is yes."""
    try:
        if typer.confirm(printable(question), err=True):
            return
    except typer.Abort:
        pass
    raise CommandFailed(otherwise)


def print_line(text: str) -> None:
    """Print lines of the answer to stdout, printable; flushed, since a pipe's reader waits for them."""
    print(printable(text), flush=True)


def ask(
    target: str,
    method: Callable[[Service], grpc.UnaryUnaryMultiCallable[Request, Reply]],
    request: Request,
    *,
    json: bool = False,
) -> Reply:
    """The service's reply to one request; with `json` it is printed and ends the command. Raises: CommandFailed."""
    with connect(target) as service:
        reply = method(service)(request, timeout=CALL_TIMEOUT_S)
    if json:
        print_json(reply)
        raise typer.Exit
    return reply


def print_json(message: Message, *, indent: int | None = 2) -> None:
    """The message in protobuf's JSON mapping, on one line where `indent` is None; Chinese stays Chinese."""
    # JSON parsers read the escapes of `printable` as the original characters.
    print_line(MessageToJson(message, ensure_ascii=False, indent=indent))


def print_table(table: Table) -> None:
    """Prints a table to stdout; as wide as the terminal, 80 columns without one."""
    Console(markup=False, highlight=False, emoji=False).print(table)


def print_page(table: Table, nothing: str, next_page_token: str = "") -> None:
    """One page of a list: its table, or `nothing` on stderr if it has no rows, and how to get the page after it."""
    if table.row_count:
        print_table(table)
    else:
        note(nothing)
    if next_page_token:
        note(f"there are more: --page {next_page_token}")


def new_table(columns: Mapping[str, str | int] | None = None, title: str = "") -> Table:
    """A table without vertical lines, its title on the left.

    Its columns are by heading: "left" or "right" for short values, which are never wrapped, or the column's share of
    what is left of the width; 0 is as wide as its values.
    """
    heading = Text(title) if title else None
    table = Table(title=heading, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name, width in (columns or {}).items():
        if isinstance(width, int):
            table.add_column(name, ratio=width or None, overflow="fold")
        else:
            table.add_column(name, justify="right" if width == "right" else "left", no_wrap=True)
    return table


def cell(text: str, style: str = "") -> Text:
    """A printable text as a table takes it."""
    return Text(printable(text), style)


def note(text: str, style: str = "") -> None:
    """A printable line about the answer, to stderr."""
    Console(stderr=True, highlight=False, emoji=False, soft_wrap=True).print(Text(printable(text), style))


def warn(text: str) -> None:
    """A line that must not be overlooked, to stderr, yellow on a terminal."""
    note(text, "yellow")


def age(days: float) -> str:
    """An age in its largest fitting unit: "40 s", "5 min", "2 h", "12 d", "3 y"."""
    seconds = days * _SECONDS_PER_DAY
    for limit_s, unit_s, name in ((60, 1, "s"), (3600, 60, "min"), (_SECONDS_PER_DAY, 3600, "h")):
        if seconds < limit_s:
            return f"{int(seconds // unit_s)} {name}"
    return f"{int(days)} d" if days < 365 else f"{days / 365.25:.0f} y"


def kind_word(kind: memory_pb2.MemoryKind.ValueType) -> str:
    """A kind in one short word; a kind of a newer service by its number."""
    return _KIND_WORDS.get(kind, str(int(kind)))


def title_of(memory: memory_pb2.Memory, *, whole_path: bool = True) -> str:
    """Return the heading of a memory: symbol and place of code on two lines, else its title, else its id."""
    fragment = memory.code_fragment
    if not fragment.path:
        return one_line(memory.title or memory.id)
    path = fragment.path if whole_path else fragment.path.rpartition("/")[2]
    place = f"{one_line(path)}:{fragment.start_line}" if fragment.start_line else one_line(path)
    return f"{one_line(fragment.symbol)}\n{place}" if fragment.symbol else place


class Meter:
    """Shows stages on stderr while it is entered; `clock` gives seconds from some start."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            _RateColumn(),
            TimeRemainingColumn(),
        )
        console = Console(stderr=True, highlight=False)
        self._bar = Progress(*columns, console=console) if sys.stderr.isatty() else None
        self._tasks: dict[str, TaskID] = {}
        self._started_s: dict[str, float] = {}
        self._last_line_s = clock()

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show(self, stage: str, done: int, total: int | None) -> None:
        """Shows the progress of a stage; `total` is None while it is not known."""
        if self._bar is not None:
            if stage not in self._tasks:
                self._tasks[stage] = self._bar.add_task(stage, total=total)
            self._bar.update(self._tasks[stage], completed=done, total=total)
            return
        now_s = self._clock()
        started_s = self._started_s.setdefault(stage, now_s)
        if now_s - self._last_line_s >= _LINE_EVERY_S:
            self._last_line_s = now_s
            note(_line(stage, done, total, now_s - started_s))

    def say(self, text: str) -> None:
        """A line above the bar."""
        if self._bar is None:
            note(text)
        else:
            self._bar.console.print(Text(printable(text)), soft_wrap=True)


class _RateColumn(ProgressColumn):
    """A column with the rate per second."""

    def render(self, task: Task) -> Text:
        """The task's speed, as rich estimates it."""
        speed = task.finished_speed or task.speed
        return Text(f"{speed:.0f}/s" if speed else "")


def _line(stage: str, done: int, total: int | None, elapsed_s: float) -> str:
    rate = done / elapsed_s if elapsed_s > 0 else 0.0
    if total is None or not rate:
        return f"{stage}: {done}"
    return f"{stage}: {done}/{total}, {rate:.0f}/s, {max(0.0, total - done) / rate:.0f} s left"


HOW_TO_KEEP = "`hummock projects settings set {project} secrets.policy=warn` keeps such texts; learn them again then"
"""Advice for people who meant to keep the redacted text."""


def secret_sums(found: Iterable[SecretsFound]) -> Iterator[str]:
    """Summary lines such as "redacted 3 secrets: 2 cloud key, 1 password"; another line for secrets stored as given."""
    replaced: Counter[str] = Counter()
    stored: Counter[str] = Counter()
    for each in found:
        (replaced if each.redacted else stored)[each.kind] += each.count
    if replaced:
        yield f"redacted {_sum(replaced)}"
    if stored:
        yield f"stored as given {_sum(stored)}"


def _sum(counts: Mapping[str, int]) -> str:
    total, kinds = sum(counts.values()), ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))
    return f"{total} {'secret' if total == 1 else 'secrets'}: {kinds}"
