"""Formats of stored records.

Records are MessagePack arrays. They evolve by addition only: a new field goes to the end and has a default, so that
older records can be read, and older versions skip unknown fields.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Generic, TypeGuard, TypeVar

import msgspec
from msgspec.structs import astuple, fields

from hummock.core.memory import Memory, MemoryIndex, MemoryKind, Origin, Payload, SecretPolicy
from hummock.core.project import Project, ProjectInfo
from hummock.core.recall import DecayMode
from hummock.core.review import Quarantined, ReviewPolicy
from hummock.core.settings import NO_SETTINGS, PresetSettings, ProjectSettings, SmallTalkPolicy
from hummock.store.errors import EntryDamaged
from hummock.store.tables import integrity, keys
from hummock.store.tables.engine import Table, Transaction
from hummock.store.tables.integrity import Damage

SCHEMA = 3  # 2: memories have checksums. 3: other entries have them too (`integrity.py`).


class SpaceRecord(msgspec.Struct, array_like=True, frozen=True):
    """An embedding space and its number in keys."""

    number: int
    id: str
    model: str
    dim: int
    token_dim: int
    left: float = 0.0  # When another space took its place, in Unix seconds; 0 if that never happened.


class DirectoryRecord(msgspec.Struct, array_like=True, frozen=True):
    """Description of a directory; `schema` always stays the first field."""

    schema: int
    active_space: int
    spaces: tuple[SpaceRecord, ...]
    analyzer: int = 1  # Version that made its terms; directories without it were made by version 1.


class Reanalysed(msgspec.Struct, array_like=True, frozen=True):
    """Progress of an update of a directory's terms: all memories before this document of this project are done."""

    project: int
    doc: int


class SchemaRecord(msgspec.Struct, array_like=True, frozen=True):
    """The start of a DirectoryRecord of any version."""

    schema: int


class ProjectRecord(msgspec.Struct, array_like=True):
    """A project; counters never decrease. The fields of `ProjectInfo` are where they were added."""

    name: str
    create_time: float
    active_space: int
    tech_stack: tuple[str, ...] = ()
    path: str = ""
    seq: int = 0
    content_seq: int = 0
    next_doc: int = 1
    next_term: int = 0
    kinds: dict[int, int] = {}
    ops_after: int = 0  # The operations of all writes after this one are stored.
    tech_stack_origin: int = 0
    path_origin: int = 0  # Origins of tech_stack and path; 0 if unset or not recorded.
    entries_seq: int = 0  # Sequence number of the newest write that stored or removed an ENTRY.
    pending: int = 0  # Number of memories without vectors yet.
    has_superseding: bool = False  # Whether a memory that replaces others was ever stored.
    has_expiring: bool = False  # Whether a memory with an expiry time was ever stored.


class MemoryRecord(msgspec.Struct, frozen=True):
    """A memory as stored in its table: without its payload, and with the store's own fields."""

    memory: Memory  # On disk the fields of its index are inlined in the place of the index.
    text: bytes = b""  # Its key in `by_text`, empty if it has none.
    session_position: int = -1  # Its place among the memories of its session; -1 without one.
    digests: bytes = b""  # Concatenated digests of its chunks' texts; empty if unknown.


class RequestRecord(msgspec.Struct, array_like=True, frozen=True):
    """A write accepted under a request_id, with its reply."""

    fingerprint: bytes
    seq: int
    reply: bytes
    time: float


encode = msgspec.msgpack.Encoder().encode
decode_array = msgspec.msgpack.Decoder(list[Any]).decode
Value = TypeVar("Value", bound=msgspec.Struct)


def converter(kind: type[Value]) -> Callable[[object], Value]:
    """Return `msgspec.convert` to this type, which is described at once.

    msgspec describes a type when it first decodes it, and two threads that do so together crash the process.
    """
    msgspec.msgpack.Decoder(kind)
    return partial(msgspec.convert, type=kind)  # noqa: TID251


class Fields(Generic[Value]):
    """Converts values of one type to arrays of their field values.

    For types that are not `array_like`, because stored replies have them by field name, or a table stores only some
    of their fields.
    """

    def __init__(self, kind: type[Value], *, but_for: str = "") -> None:
        """`but_for` is a field to leave out."""
        self.kind = kind
        self._convert = converter(kind)
        self._left_out = [place for place, name in enumerate(kind.__struct_fields__) if name == but_for]
        self._names = [name for name in kind.__struct_fields__ if name != but_for]
        self._parts = {self._names.index(one.name): Fields(one.type) for one in fields(kind) if _has_names(one.type)}

    def values(self, value: Value) -> list[Any]:
        """Field values in order."""
        held = list(astuple(value))
        for place in self._left_out:
            del held[place]
        for place, part in self._parts.items():
            held[place] = part.values(held[place])
        return held

    def value(self, values: Sequence[Any], **left_out: object) -> Value:
        """Inverse of `values`; missing values at the end get their defaults, surplus ones are skipped."""
        return self._convert(self._named(values) | left_out)

    def _named(self, values: Sequence[Any]) -> dict[str, Any]:
        named = dict(zip(self._names, values, strict=False))
        for place, part in self._parts.items():
            if place < len(values):
                named[self._names[place]] = part._named(values[place])
        return named


def _has_names(kind: object) -> TypeGuard[type[msgspec.Struct]]:
    """Whether a field's type is a Struct that msgspec would not encode as an array."""
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct) and not kind.__struct_config__.array_like


_to_memory = converter(Memory)
_to_settings = converter(ProjectSettings)
decode_schema = msgspec.msgpack.Decoder(SchemaRecord).decode
decode_directory = msgspec.msgpack.Decoder(DirectoryRecord).decode
decode_reanalysed = msgspec.msgpack.Decoder(Reanalysed).decode
decode_project = msgspec.msgpack.Decoder(ProjectRecord).decode
decode_payload = msgspec.msgpack.Decoder(Payload).decode
decode_held = msgspec.msgpack.Decoder(Quarantined).decode
decode_request = msgspec.msgpack.Decoder(RequestRecord).decode

_PAYLOAD = Memory.__struct_fields__.index("payload")
_INDEX = Memory.__struct_fields__.index("index")
_INDEX_END = _INDEX + len(MemoryIndex.__struct_fields__)
_NOTED = _INDEX_END + len(Memory.__struct_fields__[_INDEX + 1 : _PAYLOAD])
_LATER = _NOTED + 3
"""Positions in a record: start and end of the index's fields, start of the store's own fields, and start of the memory
fields that were added later."""


def encode_memory(memory: Memory, text: bytes, session_position: int, digests: bytes = b"") -> bytes:
    """Encode the record of a memory; see `MemoryRecord`."""
    held = astuple(memory)
    values = list(held[:_PAYLOAD])
    values[_INDEX : _INDEX + 1] = astuple(memory.index)
    # Most memories have none of the fields at the end.
    return encode((*values, text, session_position, *_with_something((digests, *held[_PAYLOAD + 1 :]))))


def _with_something(values: Sequence[Any]) -> Sequence[Any]:
    end = len(values)
    while end and not values[end - 1]:
        end -= 1
    return values[:end]


def decode_memory(value: bytes) -> MemoryRecord:
    """Inverse of `encode_memory`."""
    values = decode_array(value)
    return MemoryRecord(_memory(values, None), *values[_NOTED:_LATER])


def memory_of(value: bytes, payload: bytes | None) -> Memory:
    """Decode a memory; None leaves out its payload. Raises: msgspec.DecodeError: a record is damaged or lost."""
    return _memory(decode_array(value), None if payload is None else decode_payload(payload))


def _memory(values: list[Any], payload: Payload | None) -> Memory:
    index = values[_INDEX:_INDEX_END]
    return _to_memory([*values[:_INDEX], index, *values[_INDEX_END:_NOTED], payload, *values[_LATER:]])


_ORIGINS = {int(origin): origin for origin in Origin}


def info_of(record: ProjectRecord) -> ProjectInfo:
    """A project's information."""
    return ProjectInfo(
        tech_stack=record.tech_stack,
        path=record.path,
        tech_stack_origin=_ORIGINS.get(record.tech_stack_origin),
        path_origin=_ORIGINS.get(record.path_origin),
    )


def project_of(record: ProjectRecord, emb_space: str) -> Project:
    """The project of a record."""
    return Project(
        name=record.name,
        info=info_of(record),
        create_time=record.create_time,
        seq=record.seq,
        content_seq=record.content_seq,
        emb_space=emb_space,
        kinds={MemoryKind(kind): count for kind, count in sorted(record.kinds.items()) if count > 0},
        pending_count=record.pending,
    )


_PRESETS = [
    place for place, group in enumerate(msgspec.structs.astuple(NO_SETTINGS)) if isinstance(group, PresetSettings)
]
_ORIGINS_PLACE = PresetSettings.__struct_fields__.index("origins")
_POLICIES = {
    ProjectSettings.__struct_fields__.index("secrets"): frozenset(SecretPolicy),
    ProjectSettings.__struct_fields__.index("review"): frozenset(ReviewPolicy),
    ProjectSettings.__struct_fields__.index("turns"): frozenset(SmallTalkPolicy),
}
_DECAY_MODE = PresetSettings.__struct_fields__.index("decay_mode")


def read_settings(txn: Transaction, table: Table, number: int, damage: Damage) -> ProjectSettings:
    """The settings of a project; `NO_SETTINGS` if it has none or they are damaged, which is recorded."""
    key, what = keys.project_prefix(number), "the settings of a project"
    value = txn.get(key, db=table)
    if value is None:
        return NO_SETTINGS
    try:
        return integrity.decoded(what, key, value, unpack)
    except EntryDamaged:
        # The defaults are safe, and the project stays usable; setting its settings again repairs them.
        damage.note_entry(what, key)
        return NO_SETTINGS


def write_settings(txn: Transaction, table: Table, number: int, settings: ProjectSettings) -> None:
    """Replace the settings of a project."""
    key = keys.project_prefix(number)
    if settings == NO_SETTINGS:
        txn.delete(key, db=table)
    else:
        txn.put(key, integrity.seal(key, pack(settings)), db=table)


def pack(settings: ProjectSettings) -> bytes:
    """Encode settings as arrays of their field values; unset origins become an empty array."""
    values = msgspec.to_builtins(settings)
    for place in _PRESETS:
        values[place][_ORIGINS_PLACE] = sorted(values[place][_ORIGINS_PLACE] or ())
    return encode(values)


def unpack(value: bytes) -> ProjectSettings:
    """Inverse of `pack`."""
    values = decode_array(value)
    for place in _PRESETS:
        _skip_unknown(values[place] if place < len(values) else [])
    for place, known in _POLICIES.items():
        if len(values) > place and values[place] and values[place][0] not in known:
            values[place] = []
    return _to_settings(values)


def _skip_unknown(preset: list[Any]) -> None:
    if len(preset) > _ORIGINS_PLACE:
        preset[_ORIGINS_PLACE] = [origin for origin in preset[_ORIGINS_PLACE] if origin in set(Origin)] or None
    if len(preset) > _DECAY_MODE and preset[_DECAY_MODE] not in set(DecayMode):
        preset[_DECAY_MODE] = None
