"""Composes a whole text: memories read by the model, then the others in their form, after a stable prefix if any."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, replace
from typing import Final

from msgspec import structs

from hummock.core.memory import Memory, MemoryKind
from hummock.core.render import MemoryMark, RenderedMemory, RenderForm, Tier
from hummock.render.context import CONTEXT_BUDGET_TOKENS, render_context
from hummock.render.escape import marks_of
from hummock.render.listing import (
    CLOSING,
    LIST_BUDGET_TOKENS,
    body_of,
    full_entry,
    opening,
    render_index,
    render_memories,
)
from hummock.render.section import Form, Frame, Section, Selected, Wording, count_blocks
from hummock.render.waterfall import WATERFALL_BUDGET_TOKENS, render_waterfall
from hummock.text.attacks import reading_as_orders


@dataclass(frozen=True, slots=True, kw_only=True)
class FormOfText:
    """A form of the prompt.

    Attributes:
        budget_tokens: Default budget.
        tier: The most that it shows of a memory.
        by_kind: Whether it groups memories by kind.
    """

    write: Form
    budget_tokens: int
    tier: Tier = Tier.FULL
    by_kind: bool = False


FORMS: Final[dict[RenderForm, FormOfText]] = {
    RenderForm.CONTEXT: FormOfText(write=render_context, budget_tokens=CONTEXT_BUDGET_TOKENS, by_kind=True),
    RenderForm.WATERFALL: FormOfText(write=render_waterfall, budget_tokens=WATERFALL_BUDGET_TOKENS),
    RenderForm.INDEX: FormOfText(write=render_index, budget_tokens=LIST_BUDGET_TOKENS, tier=Tier.INDEX),
    RenderForm.MEMORIES: FormOfText(write=render_memories, budget_tokens=LIST_BUDGET_TOKENS),
    RenderForm.MESSAGES: FormOfText(write=render_memories, budget_tokens=LIST_BUDGET_TOKENS),
}


_ORDERS: Final = "reads as an order"


def compose(selected: Sequence[Selected], read: Sequence[Selected], frame: Frame, form: FormOfText) -> Section:
    """Write the memories read by the model in full, then the others in the form; the former take their room first.

    Args:
        selected: Best first, without duplicates; those in `read` are not repeated.
        read: Memories that the model asked to read.
        frame: Its budget is that of the whole text.
        form: The form of the others.
    """
    if not read:
        return behind(Section(), tuple(selected), frame, form)
    first = render_read(read, frame)
    others = without(selected, {item.memory.id for item in read})
    return behind(first, others, replace(frame, force_best=False), form)


def render_read(selected: Sequence[Selected], frame: Frame) -> Section:
    """Write memories that a model asked to read: all of them in full, whatever they take."""
    if not selected:
        return Section()
    blocks = [full_entry(item, frame) for item in selected]
    count_blocks(blocks, frame.counter)
    text = "".join([opening(frame.wording), *[block.text for block in blocks], CLOSING])
    token_count = frame.counter.count(text)
    memories = tuple(
        item.report(Tier.FULL, block.token_count, "read: always in full")
        for item, block in zip(selected, blocks, strict=True)
    )
    over_budget = token_count > frame.budget_tokens
    return Section(text=text, token_count=token_count, over_budget=over_budget, memories=memories)


def without(items: Sequence[Selected], ids: Set[str]) -> tuple[Selected, ...]:
    """Return the memories whose ids are not among these."""
    return tuple([item for item in items if item.memory.id not in ids])


def without_answer(selected: Sequence[Selected], memories: Sequence[RenderedMemory]) -> set[str]:
    """Ids of the questions that a text shows although its budget has left out their answers."""
    tiers = {one.memory_id: one.tier for one in memories}
    return {
        item.memory.id
        for item in selected
        if item.answer_id
        and tiers.get(item.answer_id) is Tier.DROPPED
        and tiers.get(item.memory.id) is not Tier.DROPPED
    }


def behind(first: Section, others: tuple[Selected, ...], frame: Frame, form: FormOfText) -> Section:
    """Append memories in the form to a finished text, within the rest of the budget."""
    room = frame.budget_tokens - first.token_count
    while True:
        second = form.write(others, replace(frame, budget_tokens=max(room, 0)))
        text = first.text + second.text
        token_count = frame.counter.count(text) if first.text else second.token_count
        excess = token_count - frame.budget_tokens
        # A text can have more tokens than its parts.
        if excess <= 0 or not second.text or second.over_budget or room <= 0:
            return Section(
                text=text,
                token_count=token_count,
                over_budget=excess > 0,
                memories=(*first.memories, *second.memories),
                tools=second.tools,
            )
        room -= excess


def marked(memories: Sequence[RenderedMemory], items: Iterable[Selected], frame: Frame) -> tuple[RenderedMemory, ...]:
    """Result for each memory, with remarks for the reader."""
    by_id = {item.memory.id: item for item in items}
    stored = [by_id[one.memory_id].memory for one in memories]
    out = []
    of_records, are_orders = marks_of(stored, frame.as_of), _are_orders(stored, memories, frame.wording)
    for one, of_record, is_order in zip(memories, of_records, are_orders, strict=True):
        marks = of_record + (MemoryMark.INSTRUCTION_LIKE,) * is_order
        if by_id[one.memory_id].is_replaced:
            marks += (MemoryMark.LIKELY_REPLACED,)
        if by_id[one.memory_id].memory.pinned:
            marks += (MemoryMark.PINNED,)
        out.append(structs.replace(one, marks=marks) if marks else one)
    return tuple(out)


def _are_orders(stored: Sequence[Memory], memories: Sequence[RenderedMemory], wording: Wording) -> list[bool]:
    """Whether what a model sees of each memory reads as an order; kept with the memory for the next rendering."""
    keys = [(one.tier, wording.language) for one in memories]
    found = [vars(memory).get(_ORDERS, {}).get(key) for memory, key in zip(stored, keys, strict=True)]
    new = [place for place, is_order in enumerate(found) if is_order is None]
    texts = [_shown(stored[place], memories[place].tier, wording) for place in new]
    are_code = [stored[place].kind is MemoryKind.CODE_FRAGMENT for place in new]
    for place, is_order in zip(new, reading_as_orders(texts, are_code) if new else (), strict=True):
        found[place] = vars(stored[place]).setdefault(_ORDERS, {})[keys[place]] = is_order
    return found


def _shown(memory: Memory, tier: Tier, wording: Wording) -> str:
    """The text of the memory for a model."""
    if tier is Tier.DROPPED:
        return ""
    body = body_of(memory, wording) if tier is Tier.FULL else memory.index.summary
    return "\n".join((memory.index.title, *memory.index.tags, body))


GIVES_WAY: Final = "left out: there is room for its answer alone"
_UNANSWERING: Final = "left out: nothing stored bears on the query"


def with_given_way(section: Section, selected: Sequence[Selected], shown: Sequence[Selected]) -> Section:
    """The section with a report on each question that gave its room to its answer."""
    told = {item.memory.id for item in shown} | {memory.memory_id for memory in section.memories}
    reports = [item.report(reason=GIVES_WAY) for item in selected if item.memory.id not in told]
    return replace(section, memories=(*section.memories, *reports))


def with_left_out(section: Section, left_out: Sequence[Selected]) -> Section:
    """The section with a report on each memory that is left out and not shown all the same."""
    shown = {memory.memory_id for memory in section.memories}
    reports = [item.report(reason=_UNANSWERING) for item in left_out if item.memory.id not in shown]
    return replace(section, memories=(*section.memories, *reports))


def with_nothing_known(section: Section, frame: Frame) -> Section:
    """The section with a line at its end that nothing is known, if the budget has room for it."""
    text = f"{section.text}{frame.wording.nothing_known}\n"
    token_count = frame.counter.count(text)
    return replace(section, text=text, token_count=token_count) if token_count <= frame.budget_tokens else section
