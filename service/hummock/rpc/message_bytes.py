"""Bytes of messages, written from values by the contract's descriptors in one call of a kernel.

A message's values are a list of those of its fields, in the contract's order: a list for a repeated field and for a
message, seconds since 1970 for a Timestamp, seconds for a Duration, None for what is not set. Values at the end may be
missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from msgspec.msgpack import Encoder

from hummock_kernels.messages import (
    DOUBLE,
    INLINE,
    MARKED,
    MESSAGE,
    MOST_GROWTH,
    NUMBER,
    ONE_OF,
    SKIPPED,
    SPAN,
    TEXT,
    TIME,
    put_message,
)

Layout = Sequence["str | tuple[str, Any] | Layout | Mapping[str, Layout]"]
"""The order of a message's values, if it is not the contract's: names of fields, and "" for a value that is not sent.

A list holds the names of more fields of the message, whose values are in a list of their own. A pair is a field and the
layout of its message, or its kind if that is HEX or MARKED. A mapping is a field of several, whose list of values
begins with the number of one of them, from 1.
"""

_TIMES = {"google.protobuf.Timestamp": TIME, "google.protobuf.Duration": SPAN}
_KINDS = {FieldDescriptor.TYPE_DOUBLE: DOUBLE, FieldDescriptor.TYPE_STRING: TEXT, FieldDescriptor.TYPE_BYTES: TEXT}
_FIXED, _DELIMITED = 1, 2  # Wire types.

_NO_LAYOUTS: Mapping[Any, Layout] = {}
_encode = Encoder().encode


class MessageBytes:
    """Writes messages of one kind."""

    def __init__(self, kind: Descriptor, layouts: Mapping[Any, Layout] = _NO_LAYOUTS) -> None:
        """`layouts` are of messages by their descriptors; the others have the contract's order."""
        self._layouts = layouts
        self._rows: list[tuple[int, ...]] = []
        self._add(kind)
        self._table = np.array(self._rows, np.int64)

    def __call__(self, values: Sequence[Any]) -> bytes:
        """The message of these values."""
        return self.marked(values, 0)[0]

    def marked(self, values: Sequence[Any], most: int) -> tuple[bytes, list[int]]:
        """The message of these values, and the ends in it of the `most` MARKED numbers that it may have."""
        data = np.frombuffer(_encode(values), np.uint8)
        out, marks = np.empty(MOST_GROWTH * len(data), np.uint8), np.zeros(most + 1, np.int64)
        length = put_message(data, self._table, out, marks)
        return out[:length].tobytes(), marks[1 : marks[0] + 1].tolist()

    def _add(self, of: Descriptor, layout: Layout | None = None) -> int:
        """Adds the rows of a message, and returns the first."""
        first = len(self._rows)
        fields = layout or self._layouts.get(of) or [field.name for field in of.fields]
        self._rows += [()] * len(fields)
        for row, field in enumerate(fields, first):
            self._rows[row] = self._row(of, field)
        return first

    def _row(self, of: Descriptor, field: Any) -> tuple[int, ...]:
        match field:
            case "":
                return SKIPPED, 0, 0, 0, 0
            case list():
                return INLINE, 0, 0, 0, self._add(of, field)
            case dict():
                return ONE_OF, 0, 0, 0, self._add(of, [*field.items()])
            case (str(name), more):
                return self._field(of.fields_by_name[name], more)
            case _:
                return self._field(of.fields_by_name[field], None)

    def _field(self, field: FieldDescriptor, more: Layout | int | None) -> tuple[int, ...]:
        message = field.message_type
        kind = more if isinstance(more, int) else _KINDS.get(field.type, NUMBER)
        if message is not None:
            kind = _TIMES.get(message.full_name, MESSAGE)
        wire = _FIXED if kind in (DOUBLE, MARKED) else _DELIMITED * (kind != NUMBER)
        keeps_zero = field.is_repeated or field.has_presence or kind == MARKED
        first = self._add(message, None if isinstance(more, int) else more) if kind == MESSAGE and message else 0
        return kind, field.number << 3 | wire, field.is_repeated, keeps_zero, first
