"""The context form: the project, its domains, learning records, other memories and code as Markdown sections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hummock.core.project import ProjectInfo
from hummock.core.render import RenderedMemory, Tier
from hummock.render.blocks import Block, Chapter, chapters_of, project_block
from hummock.render.headings import Wording
from hummock.render.selection import Section, Selected
from hummock.text.tokens import TokenCounter

CONTEXT_BUDGET_TOKENS: Final = 4000
_NO_ROOM: Final = "the budget is used up"


def render_context(
    selected: Sequence[Selected],
    info: ProjectInfo | None,
    wording: Wording,
    budget_tokens: int,
    counter: TokenCounter,
) -> Section:
    """Write the sections that fit the budget, in the form of an IDE plugin's enhanced context.

    The project is charged first, then domains, records, other memories and code: what is charged last gives way first.
    The first domain that does not fit ends the domains; the first record, memory or fragment that does not fit ends the
    text. The whole text counts, and is never above the budget.

    Args:
        selected: Best first within a kind, without duplicates.
        info: None when the project is not known.
        wording: The language.
        budget_tokens: At least 1.
        counter: Counts the text's tokens.
    """
    chapters = chapters_of(selected, wording)
    project = "" if info is None else project_block(info, wording)
    if counter.count(project) > budget_tokens:
        project = ""
    costs = [[counter.count(block.text) for block in chapter.blocks] for chapter in chapters]
    kept = [len(chapter.blocks) for chapter in chapters]
    text = _assembled(project, chapters, kept)
    if counter.count(text) > budget_tokens:
        kept = _admitted(chapters, costs, budget_tokens - counter.count(project), counter)
        text = _assembled(project, chapters, kept)
    # A text can have more tokens than its parts, and mostly has fewer.
    while (token_count := counter.count(text)) > budget_tokens:
        project = project if any(kept) else ""
        kept = _given_way(kept)
        text = _assembled(project, chapters, kept)
    if not any(kept) and (info is None or not (info.tech_stack or info.path)):
        text, token_count = "", 0
    return Section(text=text, token_count=token_count, memories=_memories(chapters, costs, kept))


def _admitted(
    chapters: Sequence[Chapter], costs: Sequence[Sequence[int]], room: int, counter: TokenCounter
) -> list[int]:
    """How many blocks of each chapter fit."""
    kept: list[int] = []
    for chapter, block_costs in zip(chapters, costs, strict=True):
        count = 0
        heading_cost = counter.count(chapter.heading) if block_costs else 0
        for cost in block_costs:
            needed = cost if count else heading_cost + cost
            if needed > room:
                break
            room -= needed
            count += 1
        if count < len(block_costs) and chapter.ends_text:
            room = 0
        kept.append(count)
    return kept


def _given_way(kept: Sequence[int]) -> list[int]:
    """One block less, from the least important chapter that has any."""
    last = max((place for place, count in enumerate(kept) if count), default=-1)
    return [count - (place == last) for place, count in enumerate(kept)]


def _assembled(project: str, chapters: Sequence[Chapter], kept: Sequence[int]) -> str:
    parts = [project]
    for chapter, count in zip(chapters, kept, strict=True):
        if count:
            parts.append(chapter.heading)
            parts.extend(block.text for block in chapter.blocks[:count])
    return "".join(parts)


def _memories(
    chapters: Sequence[Chapter], costs: Sequence[Sequence[int]], kept: Sequence[int]
) -> tuple[RenderedMemory, ...]:
    memories: list[RenderedMemory] = []
    for chapter, block_costs, count in zip(chapters, costs, kept, strict=True):
        for place, (block, cost) in enumerate(zip(chapter.blocks, block_costs, strict=True)):
            memories.append(_shown(block, cost) if place < count else block.item.dropped(_NO_ROOM))
        memories.extend(item.dropped(chapter.quota_reason) for item in chapter.beyond_quota)
    return tuple(memories)


def _shown(block: Block, cost: int) -> RenderedMemory:
    return block.item.rendered(Tier.FULL, cost, block.reason)
