"""The waterfall form: the best memory in full, the others in full, as index entries, or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hummock.core.render import Tier
from hummock.render.entries import closing, full_entry, index_closing, index_entry, index_opening, opening
from hummock.render.headings import Wording
from hummock.render.selection import Section, Selected
from hummock.render.tools import read_memory
from hummock.text.tokens import TokenCounter

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


def render_waterfall(
    selected: Sequence[Selected], wording: Wording, budget_tokens: int, counter: TokenCounter
) -> Section:
    """Write the best memory in full and as much of the others as the budget has room for.

    Each of the others is tried in full, then as an index entry; the first whose index entry does not fit is dropped
    with all behind it. The whole text counts. It is above the budget only when the best memory alone is.

    Args:
        selected: Best first, without duplicates.
        wording: The language.
        budget_tokens: At least 1.
        counter: Counts the text's tokens.
    """
    if not selected:
        return Section()
    placed = _waterfall(selected, wording, budget_tokens, counter)
    text = _assembled(placed, wording)
    # A text can have more tokens than its parts.
    while (token_count := counter.count(text)) > budget_tokens and _shown_count(placed) > 1:
        last = _shown_count(placed) - 1
        placed = [*placed[:last], *(_dropped(one.item) for one in placed[last:])]
        text = _assembled(placed, wording)
    return Section(
        text=text,
        token_count=token_count,
        over_budget=token_count > budget_tokens,
        memories=tuple(one.item.rendered(one.tier, one.token_count, one.reason) for one in _in_text_order(placed)),
        tools=(read_memory(wording),) if any(one.tier is Tier.INDEX for one in placed) else (),
    )


def _waterfall(
    selected: Sequence[Selected], wording: Wording, budget_tokens: int, counter: TokenCounter
) -> list[_Placed]:
    best = full_entry(selected[0].memory, wording)
    placed = [_Placed(item=selected[0], tier=Tier.FULL, reason=_BEST, text=best, token_count=counter.count(best))]
    room = budget_tokens - counter.count(opening(wording)) - counter.count(closing()) - placed[0].token_count
    index_frame = counter.count(index_opening(wording)) + counter.count(index_closing())
    number = 1
    for item in selected[1:]:
        full = full_entry(item.memory, wording)
        if (cost := counter.count(full)) <= room:
            placed.append(_Placed(item=item, tier=Tier.FULL, reason=_FITS, text=full, token_count=cost))
            room -= cost
            continue
        line = index_entry(number, item.memory)
        cost = counter.count(line)
        if cost + index_frame > room:
            break
        placed.append(_Placed(item=item, tier=Tier.INDEX, reason=_INDEX_FITS, text=line, token_count=cost))
        room -= cost + index_frame
        # Later entries stand in the same frame.
        index_frame = 0
        number += 1
    return [*placed, *(_dropped(item) for item in selected[len(placed) :])]


def _dropped(item: Selected) -> _Placed:
    return _Placed(item=item, tier=Tier.DROPPED, reason=_NO_ROOM)


def _shown_count(placed: Sequence[_Placed]) -> int:
    return sum(one.tier is not Tier.DROPPED for one in placed)


def _in_text_order(placed: Sequence[_Placed]) -> list[_Placed]:
    return sorted(placed, key=lambda one: one.tier)


def _assembled(placed: Sequence[_Placed], wording: Wording) -> str:
    full = [one.text for one in placed if one.tier is Tier.FULL]
    lines = [one.text for one in placed if one.tier is Tier.INDEX]
    index = [index_opening(wording), *lines, index_closing()] if lines else []
    return "".join([opening(wording), *full, *index, closing()])
