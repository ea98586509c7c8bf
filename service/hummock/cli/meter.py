"""How far a long command is: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

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
from rich.text import Text

from hummock.cli.output import note

__all__ = ["Meter"]

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
