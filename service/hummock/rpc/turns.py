"""Fair queue of jobs: interactive work goes before bulk, and projects share the workers."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Item = TypeVar("Item")

BULK_ONE_IN = 8
"""While both wait, one piece of work in so many is bulk: it never starves."""

_KEPT_LINES = 1024


@dataclass(slots=True, eq=False)
class _Line(Generic[Item]):
    """Queue of one project; `had_s` is the worker time charged to it."""

    had_s: float
    waiting: deque[Item] = field(default_factory=deque)


class _Lines(Generic[Item]):
    """Lines that take turns by the time that each has had.

    A line that comes, or comes again, begins at the time of the one that was served last: what it did not use before
    is not saved up. Source: Goyal, Vin & Cheng, Start-time Fair Queueing, SIGCOMM 1996.
    """

    def __init__(self) -> None:
        self._lines: dict[str, _Line[Item]] = {}
        self._busy: dict[str, _Line[Item]] = {}
        self._now_s = 0.0
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def busy(self) -> int:
        """Projects that wait."""
        return len(self._busy)

    def length(self, project: str) -> int:
        """Number of a project's waiting jobs."""
        line = self._busy.get(project)
        return len(line.waiting) if line else 0

    def push(self, project: str, item: Item) -> None:
        line = self._lines.get(project)
        if line is None:
            if len(self._lines) >= _KEPT_LINES:
                self._forget()
            line = self._lines[project] = _Line(had_s=self._now_s)
        if not line.waiting:
            line.had_s = max(line.had_s, self._now_s)
            self._busy[project] = line
        line.waiting.append(item)
        self._count += 1

    def pop(self, expected_s: float) -> tuple[str, Item]:
        """Remove the next job and charge its project the expected time."""
        # Ties go to the project that was served the longest time ago.
        project = min(self._busy, key=lambda name: self._busy[name].had_s)
        line = self._busy.pop(project)
        self._now_s = line.had_s
        line.had_s += expected_s
        item = line.waiting.popleft()
        self._count -= 1
        if line.waiting:
            self._busy[project] = line
        return project, item

    def charge(self, project: str, more_s: float) -> None:
        line = self._lines.get(project)
        if line is not None:
            line.had_s += more_s

    def remove(self, project: str, item: Item) -> None:
        line = self._busy[project]
        line.waiting.remove(item)
        self._count -= 1
        if not line.waiting:
            del self._busy[project]

    def longest(self) -> str | None:
        """The project with most that waits; None where none does."""
        return max(self._busy, key=lambda name: len(self._busy[name].waiting), default=None)

    def newest(self, project: str) -> Item:
        """The newest job of a project, which must have one."""
        return self._busy[project].waiting[-1]

    def _forget(self) -> None:
        """Lets go of lines that owe nothing."""
        for name in [name for name, line in self._lines.items() if not line.waiting and line.had_s <= self._now_s]:
            del self._lines[name]


class Turns(Generic[Item]):
    """Waiting jobs of all projects. Not safe for several threads: the caller holds a lock."""

    def __init__(self) -> None:
        self._interactive: _Lines[Item] = _Lines()
        self._bulk: _Lines[Item] = _Lines()
        self._since_bulk = 0

    def __len__(self) -> int:
        return len(self._interactive) + len(self._bulk)

    def push(self, project: str, item: Item, *, is_bulk: bool = False) -> None:
        """Append a job to its project's queue."""
        self._lines(is_bulk=is_bulk).push(project, item)

    def pop(self, expected_s: float) -> tuple[str, Item] | None:
        """Remove the next job, with its project; None if the queue is empty.

        Args:
            expected_s: Expected time of the job; `charge` corrects it when the time is known.
        """
        is_bulk = self._bulk.busy > 0 and (not self._interactive.busy or self._since_bulk >= BULK_ONE_IN - 1)
        lines = self._lines(is_bulk=is_bulk)
        if not lines.busy:
            return None
        self._since_bulk = 0 if is_bulk else self._since_bulk + 1
        return lines.pop(expected_s)

    def charge(self, project: str, more_s: float, *, is_bulk: bool = False) -> None:
        """A project's work took so much more than was expected; negative is less."""
        self._lines(is_bulk=is_bulk).charge(project, more_s)

    def remove(self, project: str, item: Item, *, is_bulk: bool = False) -> None:
        """Takes out what waits."""
        self._lines(is_bulk=is_bulk).remove(project, item)

    def ahead(self, project: str) -> int:
        """About how much interactive work is done before what the project would add now."""
        others = self._interactive.busy - (self._interactive.length(project) > 0)
        return min(self._interactive.length(project) * (others + 1) + others, len(self._interactive))

    def length(self, project: str) -> int:
        """Interactive work of a project that waits."""
        return self._interactive.length(project)

    def longest(self) -> tuple[str, Item, int] | None:
        """The project with the longest queue of interactive work: name, newest job, length. None if there is none."""
        project = self._interactive.longest()
        if project is None:
            return None
        return project, self._interactive.newest(project), self._interactive.length(project)

    def _lines(self, *, is_bulk: bool) -> _Lines[Item]:
        return self._bulk if is_bulk else self._interactive
