"""The context form: the project, its domains, learning records, other memories and code as Markdown sections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hummock.core.render import RenderedMemory, Tier
from hummock.render.blocks import Chapter, chapters_of, project_block
from hummock.render.selection import Frame, Section, Selected
from hummock.text.tokens import TokenCounter

CONTEXT_BUDGET_TOKENS: Final = 4000
_NO_ROOM: Final = "the budget is used up"


def render_context(selected: Sequence[Selected], frame: Frame) -> Section:
    """Write the sections that fit the budget, in the form of an IDE plugin's enhanced context.

    The project is charged first, then domains, records, other memories and code: what is charged last gives way first.
    The first domain that does not fit ends the domains; the first record, memory or fragment that does not fit ends the
    text. The whole text counts, and is never above the budget. Before the first memory it says that memories are data.

    Args:
        selected: Best first within a kind, without duplicates.
        frame: Its `info` is None when the project is not known.
    """
    counter, budget_tokens, info = frame.counter, frame.budget_tokens, frame.info
    chapters = chapters_of(selected, frame)
    project = "" if info is None else project_block(info, frame.wording)
    notice = f"{frame.wording.data_notice}\n\n"
    if (project_cost := counter.count(project)) > budget_tokens:
        project, project_cost = "", 0
    kept = _admitted(chapters, budget_tokens - project_cost - counter.count(notice), counter)
    text = _assembled(project, notice, chapters, kept)
    # A text can have more tokens than its parts.
    while (token_count := counter.count(text)) > budget_tokens:
        project = project if any(kept) else ""
        _give_way(kept)
        text = _assembled(project, notice, chapters, kept)
    if not any(kept) and (info is None or not (info.tech_stack or info.path)):
        text, token_count = "", 0
    return Section(text=text, token_count=token_count, memories=_memories(chapters, kept))


def _admitted(chapters: Sequence[Chapter], room: int, counter: TokenCounter) -> list[list[int]]:
    """The token counts of the blocks of each chapter that fit."""
    counted = iter(
        counter.counts(
            [text for chapter in chapters for text in (chapter.heading, *(one.text for one in chapter.blocks))]
        )
    )
    all_costs = [(next(counted), [next(counted) for _ in chapter.blocks]) for chapter in chapters]
    kept: list[list[int]] = []
    for chapter, (heading_cost, block_costs) in zip(chapters, all_costs, strict=True):
        costs: list[int] = []
        kept.append(costs)
        for cost in block_costs:
            needed = cost if costs else heading_cost + cost
            if needed > room:
                if chapter.ends_text:
                    return kept + [[] for _ in chapters[len(kept) :]]
                break
            room -= needed
            costs.append(cost)
    return kept


def _give_way(kept: Sequence[list[int]]) -> None:
    """Takes the last block of the least important chapter that has any."""
    for costs in reversed(kept):
        if costs:
            costs.pop()
            return


def _assembled(project: str, notice: str, chapters: Sequence[Chapter], kept: Sequence[Sequence[int]]) -> str:
    parts = [project, notice] if any(kept) else [project]
    for chapter, costs in zip(chapters, kept, strict=True):
        if costs:
            parts.append(chapter.heading)
            parts.extend(block.text for block in chapter.blocks[: len(costs)])
    return "".join(parts)


def _memories(chapters: Sequence[Chapter], kept: Sequence[Sequence[int]]) -> tuple[RenderedMemory, ...]:
    memories: list[RenderedMemory] = []
    for chapter, costs in zip(chapters, kept, strict=True):
        for block, cost in zip(chapter.blocks, costs, strict=False):
            memories.append(block.item.rendered(Tier.FULL, cost, block.reason))
        memories.extend(block.item.dropped(_NO_ROOM) for block in chapter.blocks[len(costs) :])
        memories.extend(item.dropped(chapter.quota_reason) for item in chapter.beyond_quota)
    return tuple(memories)
