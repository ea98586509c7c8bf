"""Exports of version 1, read as what they are in the version of today.

They had a memory's title, summary and tags below "index", its content, raw text and detail below "payload", and the two
numbers of a history under other names.
"""

from __future__ import annotations

from hummock_client.v1.transfer_pb2 import TransferRecord
from hummock_tools.importing.fields import Fields, Value

_VERSION, _CURRENT = 1, 2
_HISTORY = {"messages": "maxMessages", "characters": "maxCharacters"}


def upgraded(value: Value) -> Value:
    """The JSON of a record as an export of today has it; what is of today already stays as it is."""
    memory, header = _within(value, "memory", "memory"), _within(value, "header", "settings")
    if memory:
        return _with(value, "memory", "memory", _flat(memory))
    history = header.get("history")
    if isinstance(history, dict):
        renamed: Fields = {_HISTORY.get(name, name): number for name, number in history.items()}
        return _with(value, "header", "settings", {**header, "history": renamed})
    return value


def _within(value: Value, outer: str, inner: str) -> Fields:
    """The object at a path of two names; an empty one where there is none."""
    above = value.get(outer) if isinstance(value, dict) else None
    found = above.get(inner) if isinstance(above, dict) else None
    return found if isinstance(found, dict) else {}


def _with(value: Value, outer: str, inner: str, fields: Fields) -> Value:
    """A copy of the value with another object at a path of two names; the value itself if it has no `outer` object."""
    above = value[outer] if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(above, dict):
        return value
    return {**value, outer: {**above, inner: fields}}


def of_today(record: TransferRecord) -> TransferRecord:
    """The record, whose header says the version that it has been read as."""
    if record.header.version == _VERSION:
        record.header.version = _CURRENT
    return record


def _flat(memory: Fields) -> Fields:
    flat = {name: value for name, value in memory.items() if name not in ("index", "payload")}
    for name in ("index", "payload"):
        held = memory.get(name, {})
        flat |= held if isinstance(held, dict) else {name: held}
    return flat
