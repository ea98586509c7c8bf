"""Which field of a message that cannot be read holds a text that is none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

_MOST_DEPTH = 32
_SEVEN_BITS = 0x7F
_MORE = 0x80
_LAST_SHIFT = 63
_VARINT, _EIGHT_BYTES, _LENGTH, _FOUR_BYTES = 0, 1, 2, 5


class _Garbled(Exception):
    """The bytes are no message at all."""


def bad_text_field(message_type: type[Message], data: bytes) -> str:
    """The path of the first field that holds a text which is not UTF-8; empty where there is none, or no telling."""
    try:
        return _first_bad(cast(Descriptor, message_type.DESCRIPTOR), memoryview(data), 0)
    except _Garbled:
        return ""


def _first_bad(message_type: Descriptor, data: memoryview, depth: int) -> str:
    if depth > _MOST_DEPTH:
        raise _Garbled
    counts: dict[str, int] = {}
    for number, value in _fields(data):
        field = message_type.fields_by_number.get(number)
        if field is None:
            continue
        place = counts[field.name] = counts.get(field.name, -1) + 1
        inner = _bad_in(field, value, depth)
        if inner is not None:
            path = f"{field.name}[{place}]" if field.is_repeated else field.name
            return f"{path}.{inner}" if inner else path
    return ""


def _bad_in(field: FieldDescriptor, value: memoryview, depth: int) -> str | None:
    """What in this field is bad: "" for its own text, a path for what is inside it, None for nothing."""
    if field.type == FieldDescriptor.TYPE_STRING:
        return None if _is_utf8(value) else ""
    if field.message_type is not None:
        return _first_bad(field.message_type, value, depth + 1) or None
    return None


def _fields(data: memoryview) -> Iterator[tuple[int, memoryview]]:
    """Numbers and bytes of the fields that have a length; the others are passed over."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        kind = tag & 7
        if kind == _VARINT:
            _, at = _varint(data, at)
        elif kind in {_EIGHT_BYTES, _FOUR_BYTES}:
            at += 8 if kind == _EIGHT_BYTES else 4
        elif kind == _LENGTH:
            size, at = _varint(data, at)
            if size > len(data) - at:
                raise _Garbled
            yield tag >> 3, data[at : at + size]
            at += size
        else:
            raise _Garbled


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    """The number, and where what follows it begins."""
    value = 0
    for shift in range(0, _LAST_SHIFT + 1, 7):
        if at >= len(data):
            raise _Garbled
        byte = data[at]
        at += 1
        value |= (byte & _SEVEN_BITS) << shift
        if not byte & _MORE:
            return value, at
    raise _Garbled


def _is_utf8(value: memoryview) -> bool:
    try:
        str(value, "utf-8")
    except UnicodeDecodeError:
        return False
    return True
