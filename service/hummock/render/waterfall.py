"""The waterfall form: the best memory in full, the others in full, as index entries, or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hummock.core.render import Tier
from hummock.render.listing import (
    BEST_SHARE,
    CLOSING,
    INDEX_CLOSING,
    cut_entry,
    full_entry,
    index_entry,
    index_opening_with_rule,
    least_tokens,
    numbered,
    opening,
)
from hummock.render.section import Block, Frame, Section, Selected, count_blocks, read_memory

WATERFALL_BUDGET_TOKENS: Final = 2000

_WRITTEN_AT_ONCE: Final = 16
_BEST: Final = "best match"
_IN_FULL: Final = "in full"
_FITS: Final = "in full: it fits"
_INDEX_FITS: Final = "index only: the body does not fit"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Placed:
    """A memory in the text."""

    item: Selected
    tier: Tier
    reason: str
    text: str
    token_count: int
    is_whole: bool = False


def render_waterfall(selected: Sequence[Selected], frame: Frame) -> Section:
    """Write the best memory in full and as much of the others as the budget has room for.

    Of a best memory that does not fit a passage that bears on the query is shown. Each of the others is tried in full,
    then as an index entry; the first whose index entry does not fit is dropped with all after it. The whole text
    counts. It exceeds the budget only if the shortest passage of a forced best memory does.

    Args:
        selected: Best first, without duplicates.
        frame: Its `info` is not used.
    """
    placed = _placed(selected, frame)
    text = _assembled(placed, frame)
    # A text can have more tokens than its parts.
    while (token_count := frame.counter.count(text)) > frame.budget_tokens and len(placed) > frame.force_best:
        placed.pop()
        text = _assembled(placed, frame)
    dropped = [item.report() for item in selected[len(placed) :]]
    in_text_order = sorted(placed, key=lambda one: one.tier)
    return Section(
        text=text,
        token_count=token_count,
        over_budget=token_count > frame.budget_tokens,
        memories=(*(one.item.report(one.tier, one.token_count, one.reason) for one in in_text_order), *dropped),
        tools=() if all(one.is_whole for one in placed) else (read_memory(frame),),
    )


def _placed(selected: Sequence[Selected], frame: Frame) -> list[_Placed]:
    """The first memories, as many as there is room for."""
    counter = frame.counter
    room = frame.budget_tokens - counter.count(opening(frame.wording)) - counter.count(CLOSING)
    index_frame = counter.count(index_opening_with_rule(frame)) + counter.count(INDEX_CLOSING)
    entries = _FullEntries(selected, frame)
    placed: list[_Placed] = []
    listed_count = 0
    for place, item in enumerate(selected):
        is_best = frame.force_best and not placed
        full = entries.written(place, room) if entries.may_fit(place, room) else None
        fits = full is not None and full.token_count <= room
        if is_best and not fits:
            full = cut_entry(item, frame, int(room * BEST_SHARE))
        if full is not None and (fits or is_best):
            reason = f"{_BEST}: {full.reason or _IN_FULL}" if is_best else _FITS
            placed.append(
                _Placed(
                    item=item,
                    tier=Tier.FULL,
                    reason=reason,
                    text=full.text,
                    token_count=full.token_count,
                    is_whole=fits,
                )
            )
            room -= full.token_count
            continue
        line = numbered(listed_count + 1) + index_entry(item, frame).text
        cost = counter.count(line)
        # All index entries share one frame, charged with the first.
        needed = cost if listed_count else cost + index_frame
        if needed > room:
            break
        placed.append(_Placed(item=item, tier=Tier.INDEX, reason=_INDEX_FITS, text=line, token_count=cost))
        room -= needed
        listed_count += 1
    return placed


class _FullEntries:
    """The memories in full with their tokens, some of them at a time: to count many at once costs less."""

    def __init__(self, selected: Sequence[Selected], frame: Frame) -> None:
        self._selected = selected
        self._frame = frame
        self._least = least_tokens([item.memory for item in selected], frame.counter)
        self._written: dict[int, Block] = {}

    def may_fit(self, place: int, room: int) -> bool:
        """False where the memory is known, without writing it, to take more than the room."""
        return self._least[place] <= room

    def written(self, place: int, room: int) -> Block:
        """Return the entry of a memory; some of the next ones are written too, if they may fit as well."""
        if place not in self._written:
            places = [place]
            for other in range(place + 1, min(place + _WRITTEN_AT_ONCE, len(self._selected))):
                room -= self._least[other - 1]
                if not self.may_fit(other, room):
                    break
                places.append(other)
            blocks = [full_entry(self._selected[each], self._frame) for each in places]
            count_blocks(blocks, self._frame.counter)
            self._written.update(zip(places, blocks, strict=True))
        return self._written[place]


def _assembled(placed: Sequence[_Placed], frame: Frame) -> str:
    full = [one.text for one in placed if one.tier is Tier.FULL]
    lines = [one.text for one in placed if one.tier is Tier.INDEX]
    if not (full or lines):
        return ""
    index = [index_opening_with_rule(frame), *lines, INDEX_CLOSING] if lines else []
    return "".join([opening(frame.wording), *full, *index, CLOSING])
