"""Finds the change of a recall that takes a memory past the stage that lost it, and writes it out."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from enum import IntEnum

from msgspec.structs import replace

from hummock.core.explain import Change, LossStage, Numbers, Verdict
from hummock.core.memory import CodeFragment, Filter, Memory, MemoryKind
from hummock.core.recall import CAPPED, MAX_QUERY_CHARACTERS, MAX_TOP_K, DecayMode, Intent, RecallPath, RecallQuery
from hummock.recall.plan import CODE, DOMAINS, NO_TWINS, PRESETS, decay_of

MAX_CANDIDATES = 1000
MAX_EXCLUDED = 512
MAX_NAMES = 64
"""The most that the contract allows."""

_ONLY_RELEVANCE = 1.0
_OTHER_TEXT = ","
"""Appended to a query so that it no longer equals a memory's text. Unlike a final mark a comma counts for that, and it
hardly changes the meaning."""

_FILTER = "filter."
_PATHS: Mapping[str, str] = {
    "text": "query_text",
    "intent": "intent.keywords",
    "paths": "paths",
    "candidates": "tuning.candidates",
    "top_k": "tuning.top_k",
    "code_top_k": "tuning.code_top_k",
    "domain_top_k": "tuning.domain_top_k",
    "min_similarity": "tuning.min_similarity",
    "decay_mode": "tuning.decay_mode",
    "relevance_weight": "tuning.relevance_weight",
    "near_twin_bar": "tuning.near_twin_bar",
    "writer_cap": "tuning.writer_cap",
    "window_turns": "tuning.window_turns",
    "include_superseded": "include_superseded",
}
_NAMES = {path: name for name, path in _PATHS.items()}


def remedied(query: RecallQuery, verdict: Verdict, memory: Memory) -> RecallQuery | None:
    """Change the recall so that the memory passes the stage that lost it; None if no change does.

    A later stage may still lose it. Only changes that the contract allows are proposed.

    Args:
        query: The query.
        verdict: The stage that lost the memory.
        memory: The memory, with its payload.
    """
    match verdict.stage:
        case None:
            return query
        case LossStage.QUERY:
            return replace(query, intent=Intent(keywords=(query.text.strip(),)))
        case LossStage.GROUP:
            return _open_group(query, memory.kind)
        case LossStage.FILTER:
            return _loosen(query, verdict.failed, memory)
        case LossStage.SUPERSEDED:
            return replace(query, include_superseded=True)
        case LossStage.WINDOW:
            return replace(query, window_turns=int(verdict.value) - 1)
        case LossStage.CANDIDATES:
            return _widen(query, verdict, memory)
        case LossStage.ECHO:
            return replace(query, text=query.text[: MAX_QUERY_CHARACTERS - len(_OTHER_TEXT)] + _OTHER_TEXT)
        case LossStage.MIN_SIMILARITY:
            # Down to two digits, which people read and a float32 keeps below the similarity.
            return replace(query, min_similarity=max(-1.0, math.floor(verdict.value * 100 - 1e-3) / 100))
        case LossStage.DUPLICATE:
            return _exclude(query, verdict.others)
        case LossStage.RANK:
            return _lengthen(query, verdict, memory)
        case LossStage.NEAR_TWIN:
            return replace(query, near_twin_bar=NO_TWINS)
        case LossStage.WRITER_CAP:
            return replace(query, writer_cap=CAPPED)
        case LossStage.DIVERSITY:
            return replace(query, relevance_weight=_ONLY_RELEVANCE)


def _open_group(query: RecallQuery, kind: MemoryKind) -> RecallQuery:
    defaults = PRESETS[query.preset]
    if kind is MemoryKind.CODE_FRAGMENT:
        return replace(query, code_top_k=defaults.code_top_k or 1)
    return replace(query, domain_top_k=defaults.domain_top_k or 1)


def _loosen(query: RecallQuery, failed: Sequence[str], memory: Memory) -> RecallQuery:
    """Every condition that it does not meet takes it in as well, or falls where that cannot be."""
    where = query.filter
    loose: dict[str, Callable[[], Filter]] = {
        "kinds": lambda: replace(where, kinds=where.kinds | {memory.kind}),
        "origins": lambda: replace(where, origins=(where.origins or PRESETS[query.preset].origins) | {memory.origin}),
        "tags": lambda: replace(where, tags=()),
        "metadata": lambda: replace(where, metadata=tuple(one for one in where.metadata if one in memory.metadata)),
        "session_ids": lambda: replace(where, session_ids=_with(where.session_ids, memory.session_id)),
        "paths": lambda: replace(where, paths=_with(where.paths, _path_of(memory))),
        "speakers": lambda: replace(where, speakers=_with(where.speakers, memory.speaker)),
        "writers": lambda: replace(where, writers=_with(where.writers, memory.writer)),
        "created_after": lambda: replace(where, created_after=None),
        "created_before": lambda: replace(where, created_before=None),
        "event_after": lambda: replace(where, event_after=None),
        "event_before": lambda: replace(where, event_before=None),
        "pinned": lambda: replace(where, pinned=False),
        "excluded_ids": lambda: replace(
            where, excluded_ids=tuple(name for name in where.excluded_ids if name != memory.id)
        ),
    }
    for name in failed:
        where = loose[name]()
    return replace(query, filter=where)


def _with(names: tuple[str, ...], name: str) -> tuple[str, ...]:
    """The names with one more; none at all, which is no condition, if the memory has none or there is no room."""
    return (*names, name) if name and len(names) < MAX_NAMES else ()


def _path_of(memory: Memory) -> str:
    detail = memory.payload.detail if memory.payload else None
    return detail.path if isinstance(detail, CodeFragment) else ""


def _widen(query: RecallQuery, verdict: Verdict, memory: Memory) -> RecallQuery | None:
    """A larger pool, else all paths, else fewer others in it."""
    rank, pool = int(verdict.value), int(verdict.threshold)
    # A prefilter may miss a memory of sufficient rank.
    wanted = rank if rank > pool else 2 * pool
    if rank and wanted <= MAX_CANDIDATES:
        return replace(query, candidates=wanted)
    if query.paths != frozenset(RecallPath):
        return replace(query, paths=frozenset(RecallPath))
    return _narrow(query, memory)


def _exclude(query: RecallQuery, copies: Sequence[str]) -> RecallQuery | None:
    excluded = (*query.filter.excluded_ids, *copies)
    if len(excluded) > MAX_EXCLUDED:
        return None
    return replace(query, filter=replace(query.filter, excluded_ids=excluded))


def _lengthen(query: RecallQuery, verdict: Verdict, memory: Memory) -> RecallQuery | None:
    """A longer list, else the order by relevance alone, else without age, else fewer others in it."""
    numbers = verdict.numbers or Numbers()
    if numbers.place <= MAX_TOP_K:
        # A larger top_k enlarges the pool, in which other memories may rank before it.
        room = numbers.place if numbers.place <= numbers.pool else min(2 * numbers.place, MAX_TOP_K)
        return with_room(query, verdict.group, room)
    if numbers.relevance_rank <= MAX_TOP_K:
        return replace(query, relevance_weight=_ONLY_RELEVANCE, near_twin_bar=NO_TWINS)
    if decay_of(query).mode is not DecayMode.OFF:
        return replace(query, decay_mode=DecayMode.OFF)
    return _narrow(query, memory)


def _narrow(query: RecallQuery, memory: Memory) -> RecallQuery | None:
    """Add the next condition that it meets and others may not: its source, then its kind, then its creation time."""
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


def with_room(query: RecallQuery, group: str, room: int) -> RecallQuery:
    """The recall with room for so many hits in a group."""
    if group == CODE:
        return replace(query, code_top_k=room)
    if group == DOMAINS:
        return replace(query, domain_top_k=room)
    return replace(query, top_k=room)


def fewest(asked: RecallQuery, changed: RecallQuery, is_enough: Callable[[RecallQuery], bool]) -> RecallQuery:
    """The recall with the changes that are needed: each is taken back where the others are enough."""
    differences = changes(asked, changed)
    for change in differences if len(differences) > 1 else ():
        without = _taken_back(asked, changed, change.field)
        if is_enough(without):
            changed = without
    return changed


def _taken_back(asked: RecallQuery, changed: RecallQuery, path: str) -> RecallQuery:
    if path.startswith(_FILTER):
        name = path.removeprefix(_FILTER)
        return replace(changed, filter=replace(changed.filter, **{name: getattr(asked.filter, name)}))
    name = _NAMES[path]
    return replace(changed, **{name: getattr(asked, name)})


def changes(asked: RecallQuery, changed: RecallQuery) -> tuple[Change, ...]:
    """Every field that differs, by its path in the request, and its new value."""
    own = [
        Change(field=path, value=_text(getattr(changed, name)))
        for name, path in _PATHS.items()
        if getattr(asked, name) != getattr(changed, name)
    ]
    of_filter = [
        Change(field=f"{_FILTER}{name}", value=_condition_text(getattr(changed.filter, name)))
        for name in Filter.__struct_fields__
        if getattr(asked.filter, name) != getattr(changed.filter, name)
    ]
    return (*own, *of_filter)


def _text(value: object) -> str:
    """A value as people write it; empty for none."""
    match value:
        case None:
            return ""
        case Intent(keywords=keywords):
            return ", ".join(keywords)
        case IntEnum():
            return value.name
        case bool():
            return str(value).lower()
        case str():
            return value
        case float():
            return f"{value:g}"
        case frozenset():
            return "" if value == frozenset(RecallPath) else ", ".join(map(_text, sorted(value)))
        case Sequence():
            return ", ".join(map(_text, value))
    return str(value)


def _condition_text(value: object) -> str:
    """The text of a filter condition; numbers are Unix seconds and are written as dates."""
    return datetime.fromtimestamp(value, UTC).isoformat() if isinstance(value, float) else _text(value)
