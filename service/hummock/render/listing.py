"""Forms that are lists, which stop at the first memory that does not fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import add
from typing import Final

from hummock.core.memory import Memory, MemoryKind
from hummock.core.render import Tier
from hummock.core.time_zone import wall_clock
from hummock.render import escape
from hummock.render.section import Frame, Section, Selected, read_memory
from hummock.render.tagged import INDEX_CLOSING, body_of, index_entry, index_opening, numbered
from hummock.text.tokens import TokenCounter

LIST_BUDGET_TOKENS: Final = 2000

_MEMORIES: Final = "Relevant Memories (for reference):\n"
_FIRST_SECOND: Final = -62_135_510_400  # 0001-01-02
_LAST_SECOND: Final = 253_402_214_399  # 9999-12-30
_COUNTED_ENTRIES: Final = 16
_COUNTED_CHARACTERS: Final = 8192


@dataclass(frozen=True, slots=True, kw_only=True)
class _List:
    """Layout of a list.

    `write` makes an entry of a memory, `number` what stands in front of it. The first entry stands in the list whatever
    it takes where `forces_first`.
    """

    opening: str
    closing: str
    write: Callable[[Selected], str]
    tier: Tier
    reason: str
    number: Callable[[int], str] = lambda _: ""
    forces_first: bool = False


def render_index(selected: Sequence[Selected], frame: Frame) -> Section:
    """Write titles, tags and summaries, and the tool that reads on; the first that does not fit ends the list."""
    look = _List(
        opening=index_opening(frame),
        closing=INDEX_CLOSING,
        write=lambda item: index_entry(item.memory, frame.as_of),
        number=numbered,
        tier=Tier.INDEX,
        reason="index only: this form lists",
    )
    return _listed(selected, look, frame)


def render_memories(selected: Sequence[Selected], frame: Frame) -> Section:
    """Write memories in full, each behind its time and origin, as the memory context of a chat.

    The time is the event's, else that of learning it, by the reader's clock.
    """
    look = _List(
        opening=_MEMORIES,
        closing=f"\n{frame.wording.data_notice}\n",
        write=lambda item: _line(item, frame),
        tier=Tier.FULL,
        reason="in full: it fits",
        forces_first=frame.force_best,
    )
    return _listed(selected, look, frame)


def _listed(selected: Sequence[Selected], look: _List, frame: Frame) -> Section:
    counter = frame.counter
    room = frame.budget_tokens - counter.count(look.opening) - counter.count(look.closing)
    entries: list[str] = []
    costs: list[int] = []
    for entry, cost in _counted(selected, look, counter):
        if cost > room and (entries or not look.forces_first):
            break
        entries.append(entry)
        costs.append(cost)
        room -= cost
    text = _assembled(entries, look)
    # A text can have more tokens than its parts.
    while (token_count := counter.count(text)) > frame.budget_tokens and len(entries) > look.forces_first:
        entries.pop()
        text = _assembled(entries, look)
    shown = [
        item.rendered(look.tier, cost, look.reason) for item, cost, _ in zip(selected, costs, entries, strict=False)
    ]
    return Section(
        text=text,
        token_count=token_count,
        over_budget=token_count > frame.budget_tokens,
        memories=(*shown, *(item.dropped() for item in selected[len(shown) :])),
        tools=(read_memory(frame),) if entries and look.tier is Tier.INDEX else (),
    )


def _counted(selected: Sequence[Selected], look: _List, counter: TokenCounter) -> Iterator[tuple[str, int]]:
    """The entries with their tokens, a few at a time: few are written for nothing, and counting many costs less.

    Numbers are counted apart: those of a turn's memories change, and what is counted once is known in the next.
    """
    numbers: list[str] = []
    few: list[str] = []
    characters = 0
    for number, item in enumerate(selected, start=1):
        numbers.append(look.number(number))
        few.append(look.write(item))
        characters += len(few[-1])
        if len(few) == _COUNTED_ENTRIES or characters > _COUNTED_CHARACTERS:
            yield from _with_numbers(numbers, few, counter)
            numbers, few, characters = [], [], 0
    yield from _with_numbers(numbers, few, counter)


def _with_numbers(numbers: Sequence[str], few: Sequence[str], counter: TokenCounter) -> Iterator[tuple[str, int]]:
    counts = counter.counts([*numbers, *few])
    return zip(map(add, numbers, few), map(add, counts, counts[len(few) :]), strict=False)


def _assembled(entries: Sequence[str], look: _List) -> str:
    return "".join([look.opening, *entries, look.closing]) if entries else ""


def _line(item: Selected, frame: Frame) -> str:
    memory = item.memory
    moment = memory.create_time if memory.event_time is None else memory.event_time
    # Years that are far off are cut, a day before the calendar's ends, so that every zone has room.
    local = wall_clock(min(max(moment, _FIRST_SECOND), _LAST_SECOND), frame.zone)
    text = escape.listed(_named(memory, frame), keeps_keys=escape.keeps_keys(memory))
    return f"- [{local:%Y-%m-%d %H:%M}][{memory.origin.name.lower()}] {text}\n"


def _named(memory: Memory, frame: Frame) -> str:
    """The body; of an entry behind its name, where it does not hold it: a codex seldom says again what it speaks of."""
    body, title = body_of(memory, frame.wording), memory.index.title.removesuffix("…")
    return body if memory.kind is not MemoryKind.ENTRY or title in body else f"{title}: {body}"
