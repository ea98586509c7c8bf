"""What a project says where its requests say nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Final

from hummock.core.recall import RecallQuery
from hummock.core.settings import NO_SETTINGS, PresetSettings, ProjectSettings

_ORIGINS: Final = "origins"
_WINDOW: Final = "window_turns"
_NUMBERS: Final = tuple(field.name for field in fields(PresetSettings) if field.name != _ORIGINS)
"""Fields that a query has under the same name."""


def tuned(query: RecallQuery, settings: ProjectSettings) -> tuple[RecallQuery, tuple[str, ...]]:
    """The query with what the project says of its preset, and the paths of what came from there.

    A value of the query stands; so do the origins of its filter.
    """
    if settings is NO_SETTINGS:
        return query, ()
    said = settings.preset(query.preset)
    filled = [name for name in _numbers(query) if getattr(said, name) is not None and getattr(query, name) is None]
    values = {name: getattr(said, name) for name in filled}
    if said.origins is not None and not query.filter.origins:
        filled.append(_ORIGINS)
        values["filter"] = replace(query.filter, origins=said.origins)
    group = query.preset.name.lower()
    return (replace(query, **values), tuple(f"{group}.{name}" for name in filled)) if filled else (query, ())


def _numbers(query: RecallQuery) -> Iterator[str]:
    """Those that mean something to the query."""
    return (name for name in _NUMBERS if query.session_id or name != _WINDOW)
