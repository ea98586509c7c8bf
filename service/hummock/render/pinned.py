"""The pinned memories of a prompt: a list in front of its form, the same from turn to turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hummock.core.memory import Memory
from hummock.core.render import Tier
from hummock.render import escape
from hummock.render.escape import UNVERIFIED, is_unverified, said_by
from hummock.render.listing import body_of, told_at
from hummock.render.section import Block, Frame, Section, Selected, kept_block

MOST_PINNED: Final = 64
"""Pinned memories that are looked at for a prompt, the newest writes; of a dozen tokens each they fill the budget."""

_MOST_OF_BUDGET: Final = 0.5
"""Share of the whole budget, so that something is left for what the query asks."""

_REASON: Final = "pinned: in every prompt"


def render_pinned(pinned: Sequence[Memory], selected: Sequence[Selected], frame: Frame, limit_tokens: int) -> Section:
    """Write the newest pinned memories that fit, each in full, by their writes.

    The text depends on these memories, the language, the time zone and the budget alone, so that it stays the same as
    long as none is pinned or changed.

    Args:
        pinned: Newest write first.
        selected: Those of them that the query found have its scores in the report.
        frame: Its budget is that of the whole text.
        limit_tokens: Most stored tokens of the memories together.

    Returns:
        The list; its memories are all that are in it, and those that did not fit and were not selected.
    """
    room, kept = limit_tokens, []
    for memory in pinned:
        if memory.token_count <= room:
            room -= memory.token_count
            kept.append(memory)
    kept.reverse()
    text, token_count = _written(kept, frame)
    while token_count > frame.budget_tokens * _MOST_OF_BUDGET:
        kept = kept[1:]
        text, token_count = _written(kept, frame)
    shown = {memory.id for memory in kept}
    scores = {item.memory.id: item.score or 0.0 for item in selected}
    left_out = f"pinned, but pinned memories may have {limit_tokens} tokens and half of the budget together"
    return Section(
        text=text,
        token_count=token_count,
        memories=(
            *(
                Selected(memory=memory, score=scores.get(memory.id)).report(
                    Tier.FULL, _line(memory, frame).token_count, _REASON
                )
                for memory in kept
            ),
            *(
                Selected(memory=memory).report(reason=left_out)
                for memory in pinned
                if memory.id not in shown and memory.id not in scores
            ),
        ),
    )


def _written(memories: Sequence[Memory], frame: Frame) -> tuple[str, int]:
    """The list and its tokens; empty for no memories."""
    if not memories:
        return "", 0
    wording = frame.wording
    lines = [_line(memory, frame).text for memory in memories]
    text = "".join([f"{wording.pinned}\n{wording.data_notice}\n\n", *lines, "\n"])
    return text, frame.counter.count(text)


def _line(memory: Memory, frame: Frame) -> Block:
    key = frame.wording.language, frame.counter, frame.zone
    return kept_block(memory, "pinned line", key, lambda: _written_line(memory, frame))


def _written_line(memory: Memory, frame: Frame) -> Block:
    title, body = memory.index.title.removesuffix("…"), body_of(memory, frame.wording)
    text = escape.beside_forms(body if title in escape.one_line(body) else f"{title}: {body}")
    mark = f" {UNVERIFIED}" if is_unverified(memory) else ""
    said = f"[{memory.origin.name.lower()}]{said_by(memory)}"
    line = f"- [{told_at(memory, frame.zone):%Y-%m-%d %H:%M}]{said}{mark} {text}\n"
    return Block(line, token_count=frame.counter.count(line))
