"""The next change to a recall that has lost a memory: what the stage that lost it would have to be told."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

from hummock.core.explain import LossStage, Numbers, Verdict
from hummock.core.memory import CodeFragment, Filter, Memory, MemoryKind
from hummock.core.recall import MAX_QUERY_CHARACTERS, MAX_TOP_K, DecayMode, Intent, RecallPath, RecallQuery
from hummock.recall.plan import CODE, DOMAINS, NO_TWINS, decay_of
from hummock.recall.presets import PRESETS

MAX_CANDIDATES = 1000
MAX_EXCLUDED = 512
MAX_NAMES = 64
_ONLY_RELEVANCE = 1.0
_OTHER_TEXT = "?"
"""At the end of a query it changes what the query equals, and next to nothing of what it means."""


def remedied(query: RecallQuery, verdict: Verdict, memory: Memory) -> RecallQuery | None:
    """The recall with one change that takes the memory past the stage that lost it; None where there is none.

    It may be lost at a later stage then. Only what the contract allows is proposed.

    Args:
        query: As it was asked for.
        verdict: What it did with the memory; its stage is not None.
        memory: It, with its payload.
    """
    if verdict.stage is None:
        return query
    return _REMEDIES[verdict.stage](query, verdict, memory)


def with_room(query: RecallQuery, group: str, room: int) -> RecallQuery:
    """The recall with room for so many hits in a group."""
    if group == CODE:
        return replace(query, code_top_k=room)
    if group == DOMAINS:
        return replace(query, domain_top_k=room)
    return replace(query, top_k=room)


def _say_more(query: RecallQuery, verdict: Verdict, memory: Memory) -> RecallQuery | None:
    del verdict, memory
    return replace(query, intent=Intent(keywords=(query.text.strip(),)))


def _open_group(query: RecallQuery, verdict: Verdict, memory: Memory) -> RecallQuery | None:
    del verdict
    defaults = PRESETS[query.preset]
    if memory.kind is MemoryKind.CODE_FRAGMENT:
        return replace(query, code_top_k=defaults.code_top_k or 1)
    return replace(query, domain_top_k=defaults.domain_top_k or 1)


def _loosen(query: RecallQuery, verdict: Verdict, memory: Memory) -> RecallQuery | None:
    """Every condition that it does not meet takes it in as well, or falls where that cannot be."""
    where = query.filter
    loose: dict[str, Callable[[], Filter]] = {
        "kinds": lambda: replace(where, kinds=where.kinds | {memory.kind}),
        "origins": lambda: replace(where, origins=(where.origins or PRESETS[query.preset].origins) | {memory.origin}),
        "tags": lambda: replace(where, tags=()),
        "session_ids": lambda: replace(where, session_ids=_with(where.session_ids, memory.session_id)),
        "paths": lambda: replace(where, paths=_with(where.paths, _path_of(memory))),
        "speakers": lambda: replace(where, speakers=_with(where.speakers, memory.speaker)),
        "created_after": lambda: replace(where, created_after=None),
        "created_before": lambda: replace(where, created_before=None),
        "excluded_ids": lambda: replace(
            where, excluded_ids=tuple(name for name in where.excluded_ids if name != memory.id)
        ),
    }
    for name in verdict.failed:
        where = loose[name]()
    return replace(query, filter=where)


def _with(names: tuple[str, ...], name: str) -> tuple[str, ...]:
    """With one more; none at all, which is no condition, where the memory has none or there is no room."""
    return (*names, name) if name and len(names) < MAX_NAMES else ()


def _path_of(memory: Memory) -> str:
    detail = memory.payload.detail if memory.payload else None
    return detail.path if isinstance(detail, CodeFragment) else ""


def _shorten_window(query: RecallQuery, verdict: Verdict, memory: Memory) -> RecallQuery | None:
    del memory
    return replace(query, window_turns=int(verdict.value) - 1)


def _widen(query: RecallQuery, verdict: Verdict, memory: Memory) -> RecallQuery | None:
    rank, pool = int(verdict.value), int(verdict.threshold)
    # A prefilter may miss one whose rank would do.
    wanted = rank if rank > pool else 2 * pool
    if rank and wanted <= MAX_CANDIDATES:
        return replace(query, candidates=wanted)
    if query.paths != frozenset(RecallPath):
        return replace(query, paths=frozenset(RecallPath))
    return _narrow(query, verdict, memory)


def _reword(query: RecallQuery, verdict: Verdict, memory: Memory) -> RecallQuery | None:
    del verdict, memory
    return replace(query, text=query.text[: MAX_QUERY_CHARACTERS - len(_OTHER_TEXT)] + _OTHER_TEXT)


def _lower_minimum(query: RecallQuery, verdict: Verdict, memory: Memory) -> RecallQuery | None:
    del memory
    # Down to two digits, which people read and a float32 keeps below the similarity.
    return replace(query, min_similarity=max(-1.0, math.floor(verdict.value * 100 - 1e-3) / 100))


def _exclude_copies(query: RecallQuery, verdict: Verdict, memory: Memory) -> RecallQuery | None:
    del memory
    excluded = (*query.filter.excluded_ids, *verdict.others)
    if len(excluded) > MAX_EXCLUDED:
        return None
    return replace(query, filter=replace(query.filter, excluded_ids=excluded))


def _lengthen(query: RecallQuery, verdict: Verdict, memory: Memory) -> RecallQuery | None:
    numbers = verdict.numbers or Numbers()
    if numbers.place <= MAX_TOP_K:
        # Room beyond the pool makes a larger pool, in which others may come before it.
        room = numbers.place if numbers.place <= numbers.pool else min(2 * numbers.place, MAX_TOP_K)
        return with_room(query, verdict.group, room)
    if numbers.relevance_rank <= MAX_TOP_K:
        return replace(query, relevance_weight=_ONLY_RELEVANCE, near_twin_bar=NO_TWINS)
    if decay_of(query).mode is not DecayMode.OFF:
        return replace(query, decay_mode=DecayMode.OFF)
    return _narrow(query, verdict, memory)


def _keep_twins(query: RecallQuery, verdict: Verdict, memory: Memory) -> RecallQuery | None:
    del verdict, memory
    return replace(query, near_twin_bar=NO_TWINS)


def _by_relevance(query: RecallQuery, verdict: Verdict, memory: Memory) -> RecallQuery | None:
    del verdict, memory
    return replace(query, relevance_weight=_ONLY_RELEVANCE)


def _narrow(query: RecallQuery, verdict: Verdict, memory: Memory) -> RecallQuery | None:
    """The next condition that it meets and others may not: where it is from, then its kind, then when it was made."""
    del verdict
    where, path, second = query.filter, _path_of(memory), float(math.floor(memory.create_time))
    end = second + 1 if where.created_before is None else min(second + 1, where.created_before)
    for is_open, narrower in (
        (path and where.paths != (path,), replace(where, paths=(path,))),
        (
            memory.session_id and where.session_ids != (memory.session_id,),
            replace(where, session_ids=(memory.session_id,)),
        ),
        (memory.index.tags and not where.tags, replace(where, tags=memory.index.tags)),
        (where.kinds != {memory.kind}, replace(where, kinds=frozenset({memory.kind}))),
        (
            where.created_after is None or where.created_after < second,
            replace(where, created_after=second, created_before=end),
        ),
    ):
        if is_open:
            return replace(query, filter=narrower)
    return None


_REMEDIES: Mapping[LossStage, Callable[[RecallQuery, Verdict, Memory], RecallQuery | None]] = {
    LossStage.QUERY: _say_more,
    LossStage.GROUP: _open_group,
    LossStage.FILTER: _loosen,
    LossStage.WINDOW: _shorten_window,
    LossStage.CANDIDATES: _widen,
    LossStage.ECHO: _reword,
    LossStage.MIN_SIMILARITY: _lower_minimum,
    LossStage.DUPLICATE: _exclude_copies,
    LossStage.RANK: _lengthen,
    LossStage.NEAR_TWIN: _keep_twins,
    LossStage.DIVERSITY: _by_relevance,
}
