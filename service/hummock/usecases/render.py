"""Render: the prompt section of a recall, or of memories by id."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from hummock.core.errors import InvalidRequest
from hummock.core.project import Project
from hummock.core.recall import Hit, Recalled, RecallQuery
from hummock.core.render import Rendered, RenderForm, RenderQuery
from hummock.ports import Clock, Store
from hummock.render import (
    CONTEXT_BUDGET_TOKENS,
    WATERFALL_BUDGET_TOKENS,
    Section,
    Selected,
    locale_of,
    render_context,
    render_waterfall,
    wording_of,
)
from hummock.text.tokens import TokenCounter

_BUDGET_TOKENS: Final = {RenderForm.CONTEXT: CONTEXT_BUDGET_TOKENS, RenderForm.WATERFALL: WATERFALL_BUDGET_TOKENS}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """What is to be rendered, and what is reported of where it came from."""

    selected: tuple[Selected, ...]
    seq: int
    missing_ids: tuple[str, ...] = ()
    recalled: Recalled | None = None


class Render:
    """Writes prompt sections. A pure read."""

    def __init__(
        self, recall: Callable[[RecallQuery], Recalled], store: Store, counter: TokenCounter, clock: Clock
    ) -> None:
        self._recall = recall
        self._store = store
        self._counter = counter
        self._clock = clock

    def __call__(self, query: RenderQuery) -> Rendered:
        """Answer with the section that fits the budget; an unknown project gives an empty text.

        Raises: what the recall raises; fields that it finds wrong stand in `recall`.
        """
        recalled = None if query.recall is None else self._recalled(query.recall)
        started = self._clock.monotonic()
        project = self._store.project(query.project)
        if recalled is not None:
            source = _Source(selected=_of_hits(recalled, query.form), seq=recalled.seq, recalled=recalled)
        else:
            source = self._by_id(query, project)
        budget_tokens = query.budget_tokens or _BUDGET_TOKENS[query.form]
        section = self._section(query, source.selected, project, budget_tokens)
        return _rendered(section, source, budget_tokens, self._clock.monotonic() - started)

    def _recalled(self, query: RecallQuery) -> Recalled:
        try:
            return self._recall(replace(query, full=True))
        except InvalidRequest as error:
            error.move_into("recall.")
            raise

    def _by_id(self, query: RenderQuery, project: Project | None) -> _Source:
        ids = tuple(dict.fromkeys(query.memory_ids))
        # The seq was read before the memories: what it counts is in them.
        memories = self._store.get(query.project, ids, 0, full=True)
        found = zip(ids, memories, strict=True)
        return _Source(
            selected=tuple(Selected(memory=memory) for memory in memories if memory is not None),
            seq=project.seq if project else 0,
            missing_ids=tuple(memory_id for memory_id, memory in found if memory is None),
        )

    def _section(
        self, query: RenderQuery, selected: Sequence[Selected], project: Project | None, budget_tokens: int
    ) -> Section:
        wording = wording_of(query.locale or locale_of(query.recall.text if query.recall else None))
        if query.form is RenderForm.WATERFALL:
            return render_waterfall(selected, wording, budget_tokens, self._counter)
        return render_context(selected, project.info if project else None, wording, budget_tokens, self._counter)


def _of_hits(recalled: Recalled, form: RenderForm) -> tuple[Selected, ...]:
    """The hits of all groups, each memory once.

    The context form keeps each group's order, its own groups before the main one. The waterfall takes the best next
    hit of any group, so that each group's order holds; equal scores go to the smaller memory id.
    """
    if form is RenderForm.CONTEXT:
        hits: Iterable[Hit] = (*recalled.domains, *recalled.code_fragments, *recalled.hits)
    else:
        hits = _merged(recalled.hits, recalled.code_fragments, recalled.domains)
    first: dict[str, Hit] = {}
    for hit in hits:
        first.setdefault(hit.memory.id, hit)
    return tuple(Selected(memory=hit.memory, score=hit.score) for hit in first.values())


def _merged(*groups: Sequence[Hit]) -> list[Hit]:
    # Not heapq.merge: a group that was diversified is not sorted by score.
    queues = [list(reversed(group)) for group in groups]
    merged: list[Hit] = []
    while waiting := [queue for queue in queues if queue]:
        merged.append(min(waiting, key=lambda queue: (-queue[-1].score, queue[-1].memory.id)).pop())
    return merged


def _rendered(section: Section, source: _Source, budget_tokens: int, elapsed_s: float) -> Rendered:
    recalled = source.recalled
    return Rendered(
        text=section.text,
        token_count=section.token_count,
        budget_tokens=budget_tokens,
        over_budget=section.over_budget,
        memories=section.memories,
        tools=section.tools,
        missing_ids=source.missing_ids,
        intent=recalled.intent if recalled else None,
        receipt=recalled.receipt if recalled else None,
        degraded=recalled.degraded if recalled else (),
        render_elapsed_s=elapsed_s,
        seq=source.seq,
    )
