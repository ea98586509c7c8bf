"""Tables by which a kernel writes messages from their values, made from the contract's descriptors.

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
from numpy.typing import NDArray

from hummock_kernels.messages import DOUBLE, INLINE, MARKED, MESSAGE, NUMBER, ONE_OF, SKIPPED, SPAN, TEXT, TIME

Layout = Sequence["str | tuple[str, Any] | Layout | Mapping[str, Layout]"]
"""The order of a message's values, if it is not the contract's: names of fields, and "" for a value that is not sent.

A list holds the names of more fields of the message, whose values are in a list of their own. A pair is a field and the
layout of its message, or its kind if that is HEX or MARKED. A mapping is a field of several, whose list of values
begins with the number of one of them, from 1.
"""

_TIMES = {"google.protobuf.Timestamp": TIME, "google.protobuf.Duration": SPAN}
_KINDS = {
    FieldDescriptor.TYPE_BOOL: NUMBER,
    FieldDescriptor.TYPE_BYTES: TEXT,
    FieldDescriptor.TYPE_DOUBLE: DOUBLE,
    FieldDescriptor.TYPE_ENUM: NUMBER,
    FieldDescriptor.TYPE_INT32: NUMBER,
    FieldDescriptor.TYPE_INT64: NUMBER,
    FieldDescriptor.TYPE_MESSAGE: MESSAGE,
    FieldDescriptor.TYPE_STRING: TEXT,
    FieldDescriptor.TYPE_UINT32: NUMBER,
    FieldDescriptor.TYPE_UINT64: NUMBER,
}
_FIXED, _DELIMITED = 1, 2  # Wire types.

_NO_LAYOUTS: Mapping[Any, Layout] = {}

encode = Encoder().encode
"""Encodes values for `hummock_kernels.messages.written`."""


def table_of(kind: Descriptor, layouts: Mapping[Any, Layout] = _NO_LAYOUTS) -> NDArray[np.int64]:
    """The kernel's table of a message; `layouts` are of messages by their descriptors, if not the contract's order.

    Raises: KeyError, for a field of a type that the kernel does not write.
    """
    table = _Table(layouts)
    table.add(kind)
    return np.array(table.rows, np.int64)


class _Table:
    """Rows of messages, those of each one after the other."""

    def __init__(self, layouts: Mapping[Any, Layout]) -> None:
        self._layouts = layouts
        self.rows: list[tuple[int, ...]] = []

    def add(self, of: Descriptor, layout: Layout | None = None) -> int:
        """Adds the rows of a message, and returns the first."""
        first = len(self.rows)
        fields = layout or self._layouts.get(of) or [field.name for field in of.fields]
        self.rows += [()] * len(fields)
        for row, field in enumerate(fields, first):
            self.rows[row] = self._row(of, field)
        return first

    def _row(self, of: Descriptor, field: Any) -> tuple[int, ...]:
        match field:
            case "":
                return SKIPPED, 0, 0, 0, 0
            case list():
                return INLINE, 0, 0, 0, self.add(of, field)
            case dict():
                return ONE_OF, 0, 0, 0, self.add(of, [*field.items()])
            case (str(name), more):
                return self._field(of.fields_by_name[name], more)
            case _:
                return self._field(of.fields_by_name[field], None)

    def _field(self, field: FieldDescriptor, more: Layout | int | None) -> tuple[int, ...]:
        message = field.message_type
        kind = more if isinstance(more, int) else _KINDS[field.type]
        if message is not None:
            kind = _TIMES.get(message.full_name, MESSAGE)
        wire = _FIXED if kind in (DOUBLE, MARKED) else _DELIMITED * (kind != NUMBER)
        keeps_zero = field.is_repeated or field.has_presence or kind == MARKED
        first = self.add(message, None if isinstance(more, int) else more) if kind == MESSAGE and message else 0
        return kind, field.number << 3 | wire, field.is_repeated, keeps_zero, first
