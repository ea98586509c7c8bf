"""Printing: answers to stdout, everything about them to stderr; tables of hits, and how far a long command is."""

from __future__ import annotations

import sys
import time
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Self

from google.protobuf.duration_pb2 import Duration
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

from hummock.v1 import memory_pb2 as memory_pb
from hummock.v1 import recall_pb2 as pb

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


_LINE_EVERY_S = 5.0


class Meter:
    """Shows stages on stderr while it is entered; `clock` gives seconds from some start."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._bar = _bar() if sys.stderr.isatty() else None
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
        """How much of a stage is done; `total` is None while it is not known."""
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
            self._bar.console.print(Text(text), soft_wrap=True)


class _RateColumn(ProgressColumn):
    """How many a second."""

    def render(self, task: Task) -> Text:
        """The task's speed, as rich estimates it."""
        speed = task.finished_speed or task.speed
        return Text(f"{speed:.0f}/s" if speed else "")


def _bar() -> Progress:
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        _RateColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True, highlight=False),
    )


def _line(stage: str, done: int, total: int | None, elapsed_s: float) -> str:
    rate = done / elapsed_s if elapsed_s > 0 else 0.0
    if total is None or not rate:
        return f"{stage}: {done}"
    return f"{stage}: {done}/{total}, {rate:.0f}/s, {max(0.0, total - done) / rate:.0f} s left"


_KIND_WORDS = {
    memory_pb.MEMORY_KIND_LEARNING_RECORD: "record",
    memory_pb.MEMORY_KIND_DOMAIN_KNOWLEDGE: "domain",
    memory_pb.MEMORY_KIND_CODE_FRAGMENT: "code",
    memory_pb.MEMORY_KIND_NOTE: "note",
    memory_pb.MEMORY_KIND_ENTRY: "entry",
}
_MAX_TITLE_CHARACTERS = 120
# Below this an id or a whole path would leave no room for the title; --json has them always.
_WIDE_COLUMNS = 110


def print_recall(response: pb.RecallResponse) -> None:
    """Hits, code fragments and domains as tables to stdout; the receipt to stderr."""
    if not (response.hits or response.code_fragments or response.domains):
        note("nothing was recalled")
    for title, hits in (
        ("", response.hits),
        ("code fragments", response.code_fragments),
        ("domains", response.domains),
    ):
        if hits:
            print_table(_table(title, hits, wide=columns() >= _WIDE_COLUMNS))
    print_receipt(response.receipt)
    print_degraded(response.degraded)


def print_receipt(receipt: pb.Receipt) -> None:
    """One line to stderr: the time that the recall and each of its stages took, and how much was searched."""
    stages = " · ".join(f"{each.stage} {milliseconds(each.elapsed)}" for each in receipt.stages)
    searched = sum(group.searched for group in receipt.groups)
    note(f"{milliseconds(receipt.elapsed)}: {stages} · {searched} searched")


def print_degraded(degraded: Iterable[pb.Degradation]) -> None:
    """What the service had to leave out, to stderr."""
    for each in degraded:
        warn(f"degraded: {each.path}: {each.message or each.reason}")


def kind_word(kind: memory_pb.MemoryKind.ValueType) -> str:
    """A kind in one short word; a kind of a newer service by its number."""
    return _KIND_WORDS.get(kind, str(int(kind)))


def title_of(memory: memory_pb.Memory, *, whole_path: bool = True) -> str:
    """What names a memory: symbol and place of code on two lines, else its title, else its id.

    Args:
        memory: In any view.
        whole_path: Whether there is room for a path; else the file's name stands for it.
    """
    fragment = memory.payload.code_fragment
    if not fragment.path:
        return _one_line(memory.index.title or memory.id)
    path = fragment.path if whole_path else fragment.path.rpartition("/")[2]
    place = f"{_one_line(path)}:{fragment.start_line}" if fragment.start_line else _one_line(path)
    return f"{_one_line(fragment.symbol)}\n{place}" if fragment.symbol else place


def _one_line(text: str) -> str:
    line = " ".join(printable(text).split())
    return line if len(line) <= _MAX_TITLE_CHARACTERS else f"{line[: _MAX_TITLE_CHARACTERS - 1]}…"


def _table(title: str, hits: Sequence[pb.Hit], *, wide: bool) -> Table:
    table = new_table(title=title)
    table.add_column("score", justify="right", no_wrap=True)
    table.add_column("sim", justify="right", no_wrap=True)
    table.add_column("words", justify="right", no_wrap=True)
    table.add_column("kind", no_wrap=True)
    table.add_column("title", ratio=3, overflow="fold")
    table.add_column("why", ratio=2, overflow="fold")
    table.add_column("age", justify="right", no_wrap=True)
    if wide:
        table.add_column("id", ratio=2, overflow="fold")
    for hit in hits:
        table.add_row(
            Text(f"{hit.score:.2f}", style="bold"),
            f"{hit.similarity:.2f}",
            f"{hit.keyword_score:.1f}",
            kind_word(hit.memory.kind),
            Text(title_of(hit.memory, whole_path=wide)),
            Text(_why(hit), style="dim"),
            age(hit.age_days),
            *([Text(printable(hit.memory.id))] if wide else []),
        )
    return table


def _why(hit: pb.Hit) -> str:
    paths = "+".join(pb.RecallPath.Name(path).removeprefix("RECALL_PATH_").lower() for path in hit.paths)
    terms = _one_line(" ".join(hit.matched_terms))
    twin = "near twin" if hit.near_twin else ""
    return ", ".join(part for part in (paths, terms, twin) if part)
