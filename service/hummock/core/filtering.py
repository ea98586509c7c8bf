"""Whether one memory passes a filter; `store/searching/filters.py` asks it of all memories of a view at once."""

from __future__ import annotations

from hummock.core import facets
from hummock.core.memory import CodeFragment, Filter, Memory


def passes(memory: Memory, where: Filter) -> bool:
    """Whether the memory meets all conditions; one on paths needs its payload."""
    return (
        (not where.kinds or memory.kind in where.kinds)
        and (not where.origins or memory.origin in where.origins)
        and (not where.session_ids or memory.session_id in where.session_ids)
        and (not where.speakers or memory.speaker in where.speakers)
        and (where.created_after is None or memory.create_time >= where.created_after)
        and (where.created_before is None or memory.create_time < where.created_before)
        and memory.id not in where.excluded_ids
        and _has_tags(memory, where.tags)
        and _is_at(memory, where.paths)
    )


def _has_tags(memory: Memory, tags: tuple[str, ...]) -> bool:
    return not tags or {facets.tag(tag) for tag in tags} <= {facets.tag(tag) for tag in memory.index.tags}


def _is_at(memory: Memory, paths: tuple[str, ...]) -> bool:
    if not paths:
        return True
    detail = None if memory.payload is None else memory.payload.detail
    if not isinstance(detail, CodeFragment):
        return False
    ends = {facets.path(end) for end in facets.path_ends(detail.path)}
    return any(facets.path(path) in ends for path in paths)
