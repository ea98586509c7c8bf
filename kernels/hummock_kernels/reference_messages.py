"""Twin of the kernel that writes messages; re-exported by `reference`."""

import struct
from typing import Any

from hummock_kernels._types import Flags, Indices
from hummock_kernels.messages import (
    DOUBLE,
    HEX,
    INLINE,
    LAST_MICROSECOND,
    MARKED,
    MESSAGE,
    NUMBER,
    ONE_OF,
    SKIPPED,
    SPAN,
    TEXT,
    TIME,
)

_SIZED = {0xC4: (True, 1), 0xD9: (True, 1), 0xDC: (False, 2)}  # Whether its items are bytes, bytes of its size.
_NUMBERS = {0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q", 0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q", 0xCB: ">d"}


def put_message(data: Flags, table: Indices, out: Flags, marks: Indices) -> int:
    """Twin of `messages.put_message`."""
    values, _ = _decoded(data.tobytes(), 0)
    body, ends = _fields(values, table.tolist(), 0)
    out[: len(body)] = list(body)
    marks[: len(ends) + 1] = [len(ends), *ends]
    return len(body)


def _decoded(data: bytes, at: int) -> tuple[Any, int]:
    """The value at `at`, and where it ends."""
    first = data[at]
    if first < 0x80:
        return first, at + 1
    if first >= 0xE0:
        return first - 256, at + 1
    if 0xC0 <= first <= 0xC3:
        return {0xC0: None, 0xC2: False, 0xC3: True}[first], at + 1
    if first in _NUMBERS:
        form = struct.Struct(_NUMBERS[first])
        return form.unpack_from(data, at + 1)[0], at + 1 + form.size
    if first < 0xA0:
        is_bytes, size, at = False, first & 15, at + 1
    elif first < 0xC0:
        is_bytes, size, at = True, first & 31, at + 1
    else:
        base = max(each for each in _SIZED if each <= first)
        is_bytes, width = _SIZED[base]
        width <<= first - base
        size, at = int.from_bytes(data[at + 1 : at + 1 + width], "big"), at + 1 + width
    if is_bytes:
        return data[at : at + size], at + size
    values = []
    for _ in range(size):
        value, at = _decoded(data, at)
        values.append(value)
    return values, at


def _fields(values: list[Any], table: list[list[int]], first: int) -> tuple[bytes, list[int]]:
    """The fields with these values, and the ends of marked numbers in them."""
    body, marks = b"", []
    for row, value in zip(table[first:], values, strict=False):
        for one in value if row[2] else [value]:
            sent, ends = _field(one, table, row)
            marks += [len(body) + end for end in ends]
            body += sent
    return body, marks


def _field(value: Any, table: list[list[int]], row: list[int]) -> tuple[bytes, list[int]]:
    kind, tag, _, keeps_zero, first = row
    if value is None or kind == SKIPPED:
        return b"", []
    if kind == ONE_OF:
        return _field(value, table, table[first + value[0] - 1])
    if kind == INLINE:
        return _fields(value, table, first)
    if kind == MESSAGE:
        body, marks = _fields(value, table, first)
        head = _varint(tag) + _varint(len(body))
        return head + body, [len(head) + mark for mark in marks]
    sent = b""
    is_zero = struct.pack("<d", value) == bytes(8) if kind >= DOUBLE else not value
    if keeps_zero or not is_zero:
        sent = _varint(tag) + _scalar(kind, value)
    return sent, [len(sent)] if kind == MARKED else []


def _scalar(kind: int, value: Any) -> bytes:
    if kind == NUMBER:
        return _varint(int(value))
    if kind in (TEXT, HEX):
        text: bytes = value.hex().encode() if kind == HEX else value
        return _varint(len(text)) + text
    if kind in (TIME, SPAN):
        unit = 1_000_000 if kind == TIME else 1_000_000_000
        count = round(value * unit)
        seconds, parts = divmod(min(count, LAST_MICROSECOND) if kind == TIME else count, unit)
        nanoseconds = parts * (1_000_000_000 // unit)
        time = (b"\x08" + _varint(seconds) if seconds else b"") + (b"\x10" + _varint(nanoseconds) if parts else b"")
        return _varint(len(time)) + time
    return struct.pack("<d", value)


def _varint(number: int) -> bytes:
    number %= 1 << 64
    written = bytearray()
    while number > 127:
        written.append(number & 127 | 128)
        number >>= 7
    return bytes((*written, number))
