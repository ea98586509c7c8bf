"""The waterfall form: the best memory in full, the others in full, as index entries, or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hummock.core.render import Tier
from hummock.render.entries import (
    closing,
    full_entry,
    index_closing,
    index_entry,
    index_opening_with_rule,
    least_tokens,
    opening,
)
from hummock.render.selection import Frame, Section, Selected
from hummock.render.tools import read_memory

WATERFALL_BUDGET_TOKENS: Final = 2000

_BEST: Final = "best match: always in full"
_FITS: Final = "in full: it fits"
_INDEX_FITS: Final = "index only: the body does not fit"
_NO_ROOM: Final = "the budget is used up"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Placed:
    """A memory with its tier and, unless it is dropped, its text."""

    item: Selected
    tier: Tier
    reason: str
    text: str = ""
    token_count: int = 0


def render_waterfall(selected: Sequence[Selected], frame: Frame) -> Section:
    """Write the best memory in full and as much of the others as the budget has room for.

    Each of the others is tried in full, then as an index entry; the first whose index entry does not fit is dropped
    with all behind it. The whole text counts. It is above the budget only when the best memory alone is, and is forced.

    Args:
        selected: Best first, without duplicates.
        frame: Its `info` is not said.
    """
    placed = _waterfall(selected, frame)
    text = _assembled(placed, frame)
    forced_count = int(frame.force_best)
    # A text can have more tokens than its parts.
    while (token_count := frame.counter.count(text)) > frame.budget_tokens and _shown_count(placed) > forced_count:
        last = _shown_count(placed) - 1
        placed = [*placed[:last], *(_dropped(one.item) for one in placed[last:])]
        text = _assembled(placed, frame)
    return Section(
        text=text,
        token_count=token_count,
        over_budget=token_count > frame.budget_tokens,
        memories=tuple(one.item.rendered(one.tier, one.token_count, one.reason) for one in _in_text_order(placed)),
        tools=(read_memory(frame),) if any(one.tier is Tier.INDEX for one in placed) else (),
    )


def _waterfall(selected: Sequence[Selected], frame: Frame) -> list[_Placed]:
    counter = frame.counter
    room = frame.budget_tokens - counter.count(opening(frame.wording)) - counter.count(closing())
    index_frame = counter.count(index_opening_with_rule(frame)) + counter.count(index_closing())
    placed: list[_Placed] = []
    listed_count = 0
    for item in selected:
        forced = frame.force_best and not placed
        if forced or least_tokens(item.memory, counter) <= room:
            full = full_entry(item.memory, frame)
            cost = counter.count(full)
            if forced or cost <= room:
                reason = _BEST if forced else _FITS
                placed.append(_Placed(item=item, tier=Tier.FULL, reason=reason, text=full, token_count=cost))
                room -= cost
                continue
        line = index_entry(listed_count + 1, item.memory, frame.as_of)
        cost = counter.count(line)
        # All entries stand in the same frame.
        needed = cost if listed_count else cost + index_frame
        if needed > room:
            break
        placed.append(_Placed(item=item, tier=Tier.INDEX, reason=_INDEX_FITS, text=line, token_count=cost))
        room -= needed
        listed_count += 1
    return [*placed, *(_dropped(item) for item in selected[len(placed) :])]


def _dropped(item: Selected) -> _Placed:
    return _Placed(item=item, tier=Tier.DROPPED, reason=_NO_ROOM)


def _shown_count(placed: Sequence[_Placed]) -> int:
    return sum(one.tier is not Tier.DROPPED for one in placed)


def _in_text_order(placed: Sequence[_Placed]) -> list[_Placed]:
    return sorted(placed, key=lambda one: one.tier)


def _assembled(placed: Sequence[_Placed], frame: Frame) -> str:
    full = [one.text for one in placed if one.tier is Tier.FULL]
    lines = [one.text for one in placed if one.tier is Tier.INDEX]
    if not (full or lines):
        return ""
    index = [index_opening_with_rule(frame), *lines, index_closing()] if lines else []
    return "".join([opening(frame.wording), *full, *index, closing()])
