"""A project's settings as they lie in the store: one record a project, none where it says nothing.

As in `record_codec`, records evolve by addition only. What this version does not know, it skips.
"""

from __future__ import annotations

from typing import Any

import lmdb
import msgspec

from hummock.core.memory import Origin
from hummock.core.recall import DecayMode
from hummock.core.settings import NO_SETTINGS, PresetSettings, ProjectSettings
from hummock.store.lmdb import keys
from hummock.store.lmdb.environment import Tables
from hummock.store.lmdb.record_codec import decode_array, encode

_PRESETS = [
    place for place, group in enumerate(msgspec.structs.astuple(NO_SETTINGS)) if isinstance(group, PresetSettings)
]
_ORIGINS = PresetSettings.__struct_fields__.index("origins")
_DECAY_MODE = PresetSettings.__struct_fields__.index("decay_mode")


def read_settings(txn: lmdb.Transaction[bytes], tables: Tables, number: int) -> ProjectSettings:
    """The settings of a project; `NO_SETTINGS` where it has none."""
    value = txn.get(keys.project_prefix(number), db=tables.settings)
    return NO_SETTINGS if value is None else unpack(value)


def write_settings(txn: lmdb.Transaction[bytes], tables: Tables, number: int, settings: ProjectSettings) -> None:
    """Replaces the settings of a project."""
    key = keys.project_prefix(number)
    if settings == NO_SETTINGS:
        txn.delete(key, db=tables.settings)
    else:
        txn.put(key, pack(settings), db=tables.settings)


def pack(settings: ProjectSettings) -> bytes:
    """The record of settings: arrays of what their fields hold, with no origins where nothing is said of them."""
    values = msgspec.to_builtins(settings)
    for place in _PRESETS:
        values[place][_ORIGINS] = sorted(values[place][_ORIGINS] or ())
    return encode(values)


def unpack(value: bytes) -> ProjectSettings:
    """Inverse of `pack`."""
    values = decode_array(value)
    for place in _PRESETS:
        _skip_unknown(values[place] if place < len(values) else [])
    return msgspec.convert(values, ProjectSettings)


def _skip_unknown(preset: list[Any]) -> None:
    """Leaves out the origins and the decay mode of a later version."""
    if len(preset) > _ORIGINS:
        preset[_ORIGINS] = [origin for origin in preset[_ORIGINS] if origin in set(Origin)] or None
    if len(preset) > _DECAY_MODE and preset[_DECAY_MODE] not in set(DecayMode):
        preset[_DECAY_MODE] = None
