"""What differs between two recalls, field by field of the request."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime
from enum import IntEnum

from hummock.core.explain import Change
from hummock.core.memory import Filter
from hummock.core.recall import Intent, RecallPath, RecallQuery

_FILTER = "filter."
_PATHS: Mapping[str, str] = {
    "text": "query_text",
    "intent": "intent.keywords",
    "paths": "paths",
    "candidates": "candidates",
    "top_k": "top_k",
    "code_top_k": "code_top_k",
    "domain_top_k": "domain_top_k",
    "min_similarity": "min_similarity",
    "decay_mode": "decay.mode",
    "relevance_weight": "relevance_weight",
    "near_twin_bar": "near_twin_bar",
    "window_turns": "window_turns",
}
_NAMES = {path: name for name, path in _PATHS.items()}


def changes(asked: RecallQuery, changed: RecallQuery) -> tuple[Change, ...]:
    """Every field that differs, by its path in the request, and its new value."""
    own = [
        Change(field=path, value=_text(getattr(changed, name)))
        for name, path in _PATHS.items()
        if getattr(asked, name) != getattr(changed, name)
    ]
    of_filter = [
        Change(field=f"{_FILTER}{field.name}", value=_condition_text(getattr(changed.filter, field.name)))
        for field in fields(Filter)
        if getattr(asked.filter, field.name) != getattr(changed.filter, field.name)
    ]
    return (*own, *of_filter)


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


def _condition_text(value: object) -> str:
    """The same for a condition of the filter, where numbers are Unix seconds."""
    return datetime.fromtimestamp(value, UTC).isoformat() if isinstance(value, float) else _text(value)


def _text(value: object) -> str:
    """A value as people write it; empty for none."""
    match value:
        case None:
            return ""
        case Intent(keywords=keywords):
            return ", ".join(keywords)
        case IntEnum():
            return value.name
        case str():
            return value
        case float():
            return f"{value:g}"
        case frozenset():
            return "" if value == frozenset(RecallPath) else ", ".join(map(_text, sorted(value)))
        case Sequence():
            return ", ".join(map(_text, value))
    return str(value)
