"""Conversion between messages and values whose fields have the same names.

A field `x` of seconds since 1970 is a Timestamp `x` in a message, a field `x_s` of seconds a Duration `x`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import cache, partial
from operator import attrgetter
from typing import Any, TypeVar

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from hummock.rpc import values

AnyMessage = TypeVar("AnyMessage", bound=Message)
Value = TypeVar("Value")

_TIME, _SPAN = "google.protobuf.Timestamp", "google.protobuf.Duration"


def message_of(kind: type[AnyMessage], value: object = None, /, **others: Any) -> AnyMessage:
    """A message with the fields of a value, whose own values become messages too; None leaves a field unset.

    Args:
        kind: The message's type.
        value: Has each field of the message, but for the others.
        others: Fields that the value lacks, or that differ from its own.

    Raises: AttributeError: the value lacks a field. ValueError: the message lacks one of the others.
    """
    for name, source, convert in _fields(kind.DESCRIPTOR):
        part = others[name] if name in others else getattr(value, source)
        others[name] = part if part is None or convert is None else convert(part)
    return kind(**others)


def value_of(kind: Callable[..., Value], message: Message, place: str = "", /, **others: object) -> Value:
    """A value with the fields of a message, which holds no messages: None for an unset one that may be unset.

    Args:
        kind: The value's type; fields that the message and the others lack have defaults.
        message: The message.
        place: Its path within the request, ending in a dot.
        others: Fields that the message lacks, or that differ from its own.

    Raises: InvalidRequest: a time is out of range.
    """
    for name, read in _readers(kind, message.DESCRIPTOR):
        if name not in others:
            others[name] = values.time(place + name, message, name) if read is None else read(message)
    return kind(**others)


@cache
def _fields(of: Any) -> list[tuple[str, str, Callable[[Any], object] | None]]:
    """Each field of a message, the value's field for it, and what converts that."""
    found: list[tuple[str, str, Callable[[Any], object] | None]] = []
    for field in of.fields:
        convert = field.message_type and _converter(field.message_type)
        source = f"{field.name}_s" if convert is values.duration else field.name
        found.append((field.name, source, partial(map, convert) if convert and field.is_repeated else convert))
    return found


def _converter(of: Descriptor) -> Callable[[Any], object]:
    if of.full_name == _TIME:
        return values.timestamp
    if of.full_name == _SPAN:
        return values.duration
    kind = GetMessageClass(of)
    return lambda part: part if isinstance(part, Message) else message_of(kind, part)


@cache
def _readers(kind: Any, of: Descriptor) -> list[tuple[str, Callable[[Any], object] | None]]:
    """Each field of a value that a message has, and what reads it; None for a time."""
    names = [field.name for field in fields(kind)] if is_dataclass(kind) else kind.__struct_fields__
    sources = {name: of.fields_by_name.get(name) or of.fields_by_name.get(name.removesuffix("_s")) for name in names}
    return [(name, _reader(source)) for name, source in sources.items() if source is not None]


def _reader(field: FieldDescriptor) -> Callable[[Any], object] | None:
    name, kind = field.name, field.message_type and field.message_type.full_name
    if kind == _TIME:
        return None
    if field.is_repeated:
        return lambda message: tuple(getattr(message, name))
    if kind == _SPAN:
        return lambda message: values.seconds(getattr(message, name)) if message.HasField(name) else None
    if field.has_presence:
        return lambda message: getattr(message, name) if message.HasField(name) else None
    return attrgetter(name)
