"""Fair queues: of jobs, where interactive work goes before bulk and projects and their callers share; of refusals."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from contextlib import suppress
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from typing import Generic, TypeVar

Item = TypeVar("Item")

BULK_ONE_IN = 8
"""While both wait, one piece of work in so many is bulk: it never starves."""

_KEPT_LINES = 1024

REFUSALS_PER_S = 100.0
REFUSALS_AT_ONCE = 32
"""Refusals that are sent without a pause after a quiet moment."""

_TO_SEND_S = 0.1
"""Part of a caller's deadline that is left for sending the refusal."""


@dataclass(slots=True, eq=False)
class _Line(Generic[Item]):
    """Jobs of one project in one lane, whose callers take turns.

    Attributes:
        had_s: Worker time charged to the project.
        place: Breaks ties.
        waiting: Number of jobs.
        callers: Jobs of each caller that has some, in the order of the callers' turns.
    """

    had_s: float
    place: int = 0
    waiting: int = 0
    callers: OrderedDict[str, deque[Item]] = field(default_factory=OrderedDict)

    def push(self, caller: str, item: Item) -> None:
        """Append a job to its caller's."""
        self.callers.setdefault(caller, deque()).append(item)
        self.waiting += 1

    def pop(self) -> Item:
        """Remove the next job; its caller goes behind the others."""
        caller, items = self.callers.popitem(last=False)
        item = items.popleft()
        if items:
            self.callers[caller] = items
        self.waiting -= 1
        return item

    def remove(self, caller: str, item: Item) -> None:
        """Takes out what waits."""
        items = self.callers[caller]
        items.remove(item)
        if not items:
            del self.callers[caller]
        self.waiting -= 1

    def length(self, caller: str) -> int:
        """Jobs of a caller."""
        return len(self.callers.get(caller, ()))


@dataclass(slots=True, eq=False)
class _Lane(Generic[Item]):
    """Queues of several projects, served by the least worker time charged.

    `starts` is a heap of (time charged, place, project) with an entry for each line that waits. An entry is skipped if
    its line was charged, served or emptied since. `now_s` is the time of the line served last.
    """

    lines: dict[str, _Line[Item]] = field(default_factory=dict)
    starts: list[tuple[float, int, str]] = field(default_factory=list)
    now_s: float = 0.0
    busy: int = 0
    waiting: int = 0

    def end_one(self) -> None:
        """A line waits no longer."""
        self.busy -= 1
        if not self.busy:
            self.starts.clear()


class Turns(Generic[Item]):
    """Waiting jobs of all projects. Not safe for several threads: the caller holds a lock.

    A line that becomes active starts at the time of the line served last: unused time is not saved up.

    Source: Goyal, Vin & Cheng, Start-time Fair Queueing, SIGCOMM 1996.
    """

    def __init__(self) -> None:
        self._interactive: _Lane[Item] = _Lane()
        self._bulk: _Lane[Item] = _Lane()
        self._since_bulk = 0
        self._places = count()

    def __len__(self) -> int:
        return self._interactive.waiting + self._bulk.waiting

    def push(self, project: str, item: Item, *, caller: str = "", is_bulk: bool = False) -> None:
        """Append a job to its project's queue, among those of its caller."""
        lane = self._bulk if is_bulk else self._interactive
        line = lane.lines.get(project)
        if line is None:
            if len(lane.lines) >= _KEPT_LINES:
                lane.lines = {name: one for name, one in lane.lines.items() if one.waiting or one.had_s > lane.now_s}
            line = lane.lines[project] = _Line(had_s=lane.now_s)
        if not line.waiting:
            line.had_s, line.place = max(line.had_s, lane.now_s), next(self._places)
            heappush(lane.starts, (line.had_s, line.place, project))
            lane.busy += 1
        line.push(caller, item)
        lane.waiting += 1

    def pop(self, expected_s: float) -> tuple[str, Item] | None:
        """Remove the next job, with its project; None if the queue is empty.

        Args:
            expected_s: Expected time of the job; `charge` corrects it when the time is known.
        """
        is_bulk = self._bulk.busy > 0 and (not self._interactive.busy or self._since_bulk >= BULK_ONE_IN - 1)
        lane = self._bulk if is_bulk else self._interactive
        while lane.busy:
            start_s, place, project = heappop(lane.starts)
            line = lane.lines.get(project)
            if line is None or not line.waiting or (line.had_s, line.place) != (start_s, place):
                continue
            self._since_bulk = 0 if is_bulk else self._since_bulk + 1
            lane.now_s = start_s
            # Ties go to the project that was served the longest time ago.
            line.had_s, line.place = start_s + expected_s, next(self._places)
            item = line.pop()
            lane.waiting -= 1
            if line.waiting:
                heappush(lane.starts, (line.had_s, line.place, project))
            else:
                lane.end_one()
            return project, item
        return None

    def charge(self, project: str, more_s: float, *, is_bulk: bool = False) -> None:
        """A project's work took so much more than was expected; negative is less."""
        lane = self._bulk if is_bulk else self._interactive
        line = lane.lines.get(project)
        if line is not None and more_s:
            line.had_s += more_s
            if line.waiting:
                heappush(lane.starts, (line.had_s, line.place, project))

    def remove(self, project: str, item: Item, *, caller: str = "", is_bulk: bool = False) -> None:
        """Takes out what waits."""
        lane = self._bulk if is_bulk else self._interactive
        line = lane.lines[project]
        line.remove(caller, item)
        lane.waiting -= 1
        if not line.waiting:
            lane.end_one()

    def ahead(self, project: str, caller: str = "") -> int:
        """Estimate the number of interactive jobs that run before a new job of a project's caller."""
        line = self._interactive.lines.get(project)
        if line is None or not line.waiting:
            return min(self._interactive.busy, self._interactive.waiting)
        of_project = min(_before(line.length(caller), len(line.callers)), line.waiting)
        return min(_before(of_project, self._interactive.busy), self._interactive.waiting)

    def length(self, project: str, caller: str | None = None) -> int:
        """Interactive work that waits: of a project, or of one of its callers."""
        line = self._interactive.lines.get(project)
        if line is None:
            return 0
        return line.waiting if caller is None else line.length(caller)

    def longest(self) -> tuple[str, str, Item] | None:
        """The newest job of the project with most interactive work, and there of the caller with most of it.

        Returns:
            Project, caller, job; None if there is none.
        """
        lines = self._interactive.lines
        lengths = ((line.waiting, -line.place, name) for name, line in lines.items())
        waiting, _, project = max(lengths, default=(0, 0, ""))
        if not waiting:
            return None
        caller, items = max(lines[project].callers.items(), key=lambda each: len(each[1]))
        return project, caller, items[-1]


def _before(own: int, parties: int) -> int:
    """Turns before a new one of a party with `own` waiting turns, or with none beside `parties` others."""
    return own * parties + parties - 1 if own else parties


class Refusals:
    """Spaces refusals out, so that clients that repeat refused calls at once take a small part of the service's time.

    A refusal costs as much as a third of a recall. Beyond REFUSALS_AT_ONCE, REFUSALS_PER_S are sent, and callers take
    turns: whoever is seldom refused hears it at once. Belongs to the event loop.
    """

    def __init__(self) -> None:
        self._waiting: Turns[asyncio.Future[None]] = Turns()
        self._next_s = 0.0
        self._is_timed = False

    async def turn(self, caller: str, left_s: float | None = None) -> None:
        """Return when a refusal may be sent to this caller, who waits for `left_s` more seconds."""
        told: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.push(caller, told)
        if not self._is_timed:
            self._tell()
        with suppress(TimeoutError):
            await asyncio.wait_for(told, None if left_s is None else left_s - _TO_SEND_S)

    def end(self) -> None:
        """Let all go that wait."""
        while (one := self._waiting.pop(1.0)) is not None:
            if not one[1].done():
                one[1].set_result(None)

    def _tell(self) -> None:
        loop = asyncio.get_running_loop()
        self._next_s = max(self._next_s, loop.time() - REFUSALS_AT_ONCE / REFUSALS_PER_S)
        while self._next_s <= loop.time() and (one := self._waiting.pop(1.0)) is not None:
            if not one[1].done():  # its caller still waits
                one[1].set_result(None)
                self._next_s += 1 / REFUSALS_PER_S
        self._is_timed = len(self._waiting) > 0
        if self._is_timed:
            loop.call_at(self._next_s, self._tell)
