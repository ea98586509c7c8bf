"""A text whose beginning stays the same from turn to turn, so that prompt caches can reuse it.

The prefix holds memories that earlier turns recalled, in full and without scores; the tail holds what this turn adds.
The state that the caller sends back lists the memories of the prefix, so that the same state and memories give the same
bytes on any server. The prefix is rebuilt if the caller asks for it, if one of its memories was removed or changed, if
it is empty, and if it exceeds a reduced budget. If a large memory is forced into one turn, the prefix shrinks only in
that turn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from msgspec import structs

from hummock.core.render import (
    MAX_PREFIX_MEMORIES,
    Locale,
    PrefixState,
    Quotas,
    SeenMemory,
    StablePrefix,
    TailPlacement,
    Tier,
)
from hummock.render.compose import FormOfText, behind, render_read, without
from hummock.render.exchanges import answered
from hummock.render.section import Frame, Section, Selected

Select = Callable[[Sequence[str]], Sequence[Selected]]
"""Returns memories by id, in order, without those that do not exist."""

_PREFIX_SHARE: Final = 0.7
"""Share of the budget and of the quotas that the prefix takes at most, so that a turn has room for new memories."""
_WANTED_SHARE: Final = 0.6
"""Share of the text that a settled prefix should be; below it a new layout is advised."""
_SETTLED_TURNS: Final = 8
"""A layout is not judged before so many turns have used it."""
_GROWTH: Final = 1.1
"""Least ratio of tokens, new to old, at which a new layout is advised."""
_UNBOUNDED: Final = 1 << 40


def render_stable(
    selected: Sequence[Selected],
    read: Sequence[Selected],
    frame: Frame,
    form: FormOfText,
    tail: TailPlacement,
    locale: Locale,
    select: Select,
) -> tuple[Section, StablePrefix]:
    """Write the prefix, then the memories read by the model, then the others in the form.

    Memories read by the model follow the prefix even if it contains them, since it may show only their index.

    Args:
        selected: Best first, without duplicates.
        read: Memories that the model asked to read.
        frame: Its budget is that of the whole text.
        form: The form of prefix and tail.
        tail: Placement, and the state after the previous turn.
        locale: The language of the frame's wording.
        select: Finds the memories of earlier turns.

    Returns:
        The whole text, and the prefix with the state for the next turn.
    """
    before = tail.state
    number = 1 if before is None else before.turn + 1
    turn = _Turn(
        selected=selected,
        read=read,
        frame=frame,
        form=form,
        seen=_seen(before, [item for item in selected if not item.drawback], number),
        select=select,
    )
    base = before if before and before.prefix_ids and not tail.rebase else None
    layout = turn.unchanged(base) if base else turn.laid_out(_share_tokens(frame))
    text = turn.whole(layout)
    if base and text.over_budget and layout.token_count > _share_tokens(frame):
        base = None
        layout = turn.laid_out(_share_tokens(frame))
        text = turn.whole(layout)
    prefix = layout
    while text.over_budget and prefix.text:
        # Forced memories come first: the prefix gets the rest of the budget, which may be nothing.
        prefix = turn.laid_out(prefix.token_count - (text.token_count - frame.budget_tokens))
        text = turn.whole(prefix)
    state = PrefixState(
        turn=number,
        base_turn=base.base_turn if base else number,
        as_of=base.as_of if base else frame.as_of,
        locale=locale,
        prefix_ids=tuple(one.memory_id for one in layout.memories),
        seen=turn.seen,
        prefix_tokens=prefix.token_count + (base.prefix_tokens if base else 0),
        all_tokens=text.token_count + (base.all_tokens if base else 0),
    )
    advised = _too_small(state) and turn.laid_out(_share_tokens(frame)).token_count > layout.token_count * _GROWTH
    return text, StablePrefix(text=prefix.text, token_count=prefix.token_count, state=state, rebase_advised=advised)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Turn:
    """Inputs of one turn; `seen` includes this turn's memories."""

    selected: Sequence[Selected]
    read: Sequence[Selected]
    frame: Frame
    form: FormOfText
    seen: tuple[SeenMemory, ...]
    select: Select

    def unchanged(self, state: PrefixState) -> Section:
        """The prefix of the turns before."""
        return self._prefix(self.select(state.prefix_ids), replace(self.frame, as_of=state.as_of))

    def laid_out(self, room_tokens: int) -> Section:
        """Build a new prefix of the most recalled memories that fit; empty if there is no room."""
        if room_tokens <= 0:
            return Section()
        known = {item.memory.id: item for item in self.selected}
        loaded = self.select([one.memory_id for one in self.seen if one.memory_id not in known])
        known |= {item.memory.id: item for item in loaded}
        items = [known[one.memory_id] for one in self.seen if one.memory_id in known]
        quotas = _share_of_quotas(self.frame.quotas)
        frame = replace(self.frame, budget_tokens=room_tokens, quotas=quotas, force_best=False, query="")
        tried = self.form.write(tuple(items), frame)
        fits = answered(items, {one.memory_id for one in tried.memories if one.tier is self.form.tier})
        prefix = self._prefix([item for item in items if item.memory.id in fits], self.frame)
        # The project's facts alone may exceed the room.
        return prefix if prefix.token_count <= room_tokens else Section()

    def whole(self, prefix: Section) -> Section:
        """The text with this prefix; its memories have the scores of this turn."""
        read = render_read(self.read, self.frame)
        in_prefix = {one.memory_id for one in prefix.memories}
        forced = not self.read and bool(self.selected) and self.selected[0].memory.id not in in_prefix
        frame = replace(
            self.frame,
            info=None if prefix.text else self.frame.info,
            force_best=forced,
            standing=tuple(one.kind for one in prefix.memories),
        )
        scores = {item.memory.id: item.score or 0.0 for item in self.selected}
        first = Section(
            text=prefix.text + read.text,
            token_count=prefix.token_count + read.token_count,
            memories=(
                *(structs.replace(one, score=scores.get(one.memory_id, 0.0)) for one in prefix.memories),
                *read.memories,
            ),
        )
        shown = in_prefix | {item.memory.id for item in self.read}
        text = behind(first, without(self.selected, shown), frame, self.form)
        return replace(text, tools=text.tools or prefix.tools)

    def _prefix(self, items: Sequence[Selected], frame: Frame) -> Section:
        # Scores and the words for excerpts belong to one turn.
        unscored = tuple(Selected(memory=item.memory) for item in items)
        prefix = self.form.write(unscored, replace(frame, budget_tokens=_UNBOUNDED, force_best=False, query=""))
        return replace(prefix, memories=tuple(one for one in prefix.memories if one.tier is not Tier.DROPPED))


def _share_tokens(frame: Frame) -> int:
    return int(frame.budget_tokens * _PREFIX_SHARE)


def _share_of_quotas(quotas: Quotas) -> Quotas:
    return replace(
        quotas,
        domains=int(quotas.domains * _PREFIX_SHARE),
        learning_records=int(quotas.learning_records * _PREFIX_SHARE),
        code_fragments=int(quotas.code_fragments * _PREFIX_SHARE),
    )


def _too_small(state: PrefixState) -> bool:
    settled = state.turn - state.base_turn >= _SETTLED_TURNS
    return settled and state.prefix_tokens < state.all_tokens * _WANTED_SHARE


def _seen(before: PrefixState | None, selected: Sequence[Selected], number: int) -> tuple[SeenMemory, ...]:
    """Count recalled memories up to this turn, most often first, ties newest first; the oldest are dropped."""
    known = {one.memory_id: one for one in before.seen} if before else {}
    now = {
        item.memory.id: SeenMemory(
            memory_id=item.memory.id,
            turns=1 + (known[item.memory.id].turns if item.memory.id in known else 0),
            last_turn=number,
        )
        for item in selected
    }
    counted = [*now.values(), *(one for one in known.values() if one.memory_id not in now)]
    # By age, not by count: otherwise a new memory would be dropped before its second recall.
    remembered = sorted(counted, key=lambda one: (-one.last_turn, -one.turns))[:MAX_PREFIX_MEMORIES]
    return tuple(sorted(remembered, key=lambda one: (-one.turns, -one.last_turn)))
