"""Messages of the contract as bytes, written from their values in MessagePack by a table of fields.

A message's values are a list in the order of its rows in the table. Nil is never sent; zeros, empty texts and empty
lists are left out where the contract does not tell them from what is unset.
"""

import numpy as np

from hummock_kernels._jit import helper, kernel
from hummock_kernels._types import I64, I64_2D, OUT_I64_1D, OUT_U8_1D, U8_1D, Flags, Indices

# Kinds of fields. HEX writes bytes as text. INLINE is a list of more fields of the same message; the first number in
# the list of a ONE_OF says which of its rows, from 1, it is.
SKIPPED, NUMBER, TEXT, HEX, MESSAGE, INLINE, ONE_OF, DOUBLE, MARKED, TIME, SPAN = range(11)

KIND, TAG, IS_MANY, KEEPS_ZERO, FIRST = range(5)
"""Columns of the table: kind, field number and wire type, two flags, and the first row of a message in the field."""

LAST_MICROSECOND = 253_402_300_799_999_999
"""The last microsecond of the year 9999, and of a Timestamp."""

MOST_GROWTH = 12
"""Bytes of a message for each byte of its values, at most: a negative integer of one takes ten behind a tag of two."""

_NIL, _INTEGER, _FLOAT, _BYTES, _LIST = range(5)

# Columns of the stack of lists that are being read: the next value's row, how far the one after it is from there, how
# many are left, and of a message where it begins in the output and the first mark in it.
ROW, STEP, LEFT, BODY, MARK = range(5)
_NO_BODY = -1
_MOST_DEPTH = 32

_MICROSECONDS, _NANOSECONDS = 1_000_000, 1_000_000_000


@helper()
def _value(data: Flags, at: int) -> tuple[int, int, int]:
    """What the value at `at` is; its number, bits or length; where it ends, or its bytes or items begin."""
    first = int(np.int64(data[at]))
    if first < 0x80:
        return _INTEGER, first, at + 1
    if first < 0xA0:
        return _LIST, first & 15, at + 1
    if first < 0xC0:
        return _BYTES, first & 31, at + 1
    if first == 0xC0:
        return _NIL, 0, at + 1
    if first >= 0xE0:
        return _INTEGER, first - 256, at + 1
    if first < 0xC4:
        return _INTEGER, first - 0xC2, at + 1
    if first < 0xC7:
        what, width = _BYTES, 1 << (first - 0xC4)
    elif first < 0xCC:
        what, width = _FLOAT, 8
    elif first < 0xD9:
        what, width = _INTEGER, 1 << (first & 3)
    elif first < 0xDC:
        what, width = _BYTES, 1 << (first - 0xD9)
    else:
        what, width = _LIST, 2 << (first - 0xDC)
    number = 0
    for place in range(at + 1, at + 1 + width):
        number = number << 8 | int(np.int64(data[place]))
    if 0xD0 <= first < 0xD3 and number >> 8 * width - 1:
        number -= 1 << 8 * width
    return what, number, at + 1 + width


@helper()
def _put_varint(number: int, out: Flags, end: int) -> int:
    """Write an int64, a negative one in ten bytes; returns the new end, as all `_put` do."""
    while number < 0 or number > 127:
        out[end] = number & 127 | 128
        number = number >> 7 & (1 << 57) - 1
        end += 1
    out[end] = number
    return end + 1


@helper()
def _put_time(bits: int, kind: int, out: Flags, end: int) -> int:
    """Write a Timestamp of whole microseconds, or a Duration, whose seconds are a float64 of these bits."""
    unit = _MICROSECONDS if kind == TIME else _NANOSECONDS
    count = int(np.rint(np.array([bits]).view(np.float64)[0] * unit))
    if kind == TIME:
        # So far from 1970 the last instants of the year 9999 round up to a time that no Timestamp holds.
        count = min(count, LAST_MICROSECOND)
    start = end
    for tag, part in ((0x08, count // unit), (0x10, count % unit * (_NANOSECONDS // unit))):
        if part:
            out[end + 1] = tag
            end = _put_varint(part, out, end + 2) - 1
    out[start] = end - start
    return end + 1


@helper()
def _put_scalar(kind: int, number: int, data: Flags, start: int, out: Flags, end: int) -> int:
    """Write a value behind its tag: a number, the bits of one, or as many bytes, which begin at `start`."""
    if kind == NUMBER:
        return _put_varint(number, out, end)
    if kind == TEXT:
        end = _put_varint(number, out, end)
        # Slices count from 0, so that the loop is compiled to one of wide registers.
        to, text = out[end : end + number], data[start : start + number]
        for place in range(number):
            to[place] = text[place]
        return end + number
    if kind == HEX:
        end = _put_varint(2 * number, out, end)
        for place in range(2 * number):
            digit = int(np.int64(data[start + place // 2])) >> 4 * (1 - place % 2) & 15
            out[end + place] = digit + (48 if digit < 10 else 87)
        return end + 2 * number
    if kind >= TIME:
        return _put_time(number, kind, out, end)
    for place in range(8):
        out[end + place] = number >> 8 * place & 255
    return end + 8


@helper()
def _put_length(out: Flags, start: int, end: int, marks: Indices, mark: int) -> int:
    """Move what stands between `start` and `end`, and its marks from `mark` on, and put its length before it."""
    width = 1
    while end - start >> 7 * width:
        width += 1
    out[start + width : end + width] = out[start:end].copy()
    marks[mark : marks[0] + 1] += width
    _put_varint(end - start, out, start)
    return end + width


@helper()
def _push(stack: Indices, depth: int, row: int, step: int, left: int, body: int, mark: int) -> int:
    stack[depth, ROW], stack[depth, STEP], stack[depth, LEFT] = row, step, left
    stack[depth, BODY], stack[depth, MARK] = body, mark
    return depth + 1


@kernel(I64(U8_1D, I64_2D, OUT_U8_1D, OUT_I64_1D))
def put_message(data: Flags, table: Indices, out: Flags, marks: Indices) -> int:
    """Write a message, and return its length.

    Args:
        data: The list of its values in MessagePack: signed integers of 64 bits, times as float64, no maps, and lists
            up to 32 deep. Nothing of this is checked.
        table: (n, 5) rows of `KIND` to `FIRST`; those of a message follow one another, those of this one come first.
        out: Room for MOST_GROWTH times the bytes of `data`.
        marks: 0, and room for the end of each MARKED number in `out`; gets their count and these ends.
    """
    stack = np.empty((_MOST_DEPTH, 5), np.int64)
    what, number, at = _value(data, 0)
    end, depth = 0, _push(stack, 0, 0, 1, number, _NO_BODY, 0)
    while depth:
        top = depth - 1
        if stack[top, LEFT] == 0:
            if stack[top, BODY] != _NO_BODY:
                end = _put_length(out, stack[top, BODY], end, marks, stack[top, MARK])
            depth = top
            continue
        row = stack[top, ROW]
        stack[top, ROW] += stack[top, STEP]
        stack[top, LEFT] -= 1
        what, number, start = _value(data, at)
        at = start + number if what == _BYTES else start
        kind = table[row, KIND]
        if what == _LIST and table[row, IS_MANY] and stack[top, STEP]:
            depth = _push(stack, depth, row, 0, number, _NO_BODY, 0)
        elif what == _LIST:
            body = _NO_BODY
            if kind == ONE_OF:
                row = table[row, FIRST] + int(np.int64(data[start])) - 1
            if kind != INLINE:
                body = end = _put_varint(table[row, TAG], out, end)
            depth = _push(stack, depth, table[row, FIRST], 1, number, body, marks[0] + 1)
        elif what != _NIL and kind != SKIPPED:
            if kind >= DOUBLE and what == _INTEGER:
                number = np.array([np.float64(number)]).view(np.int64)[0]
            if number or table[row, KEEPS_ZERO]:
                end = _put_varint(table[row, TAG], out, end)
                end = _put_scalar(kind, number, data, start, out, end)
            if kind == MARKED:
                marks[0] += 1
                marks[marks[0]] = end
    return end


def written(values: bytes, table: Indices, most_marks: int = 0) -> tuple[bytes, list[int]]:
    """A message as `put_message` writes it, and the ends of its MARKED numbers, at most `most_marks`."""
    data = np.frombuffer(values, np.uint8)
    out, marks = np.empty(MOST_GROWTH * len(data), np.uint8), np.zeros(most_marks + 1, np.int64)
    length = put_message(data, table, out, marks)
    return out[:length].tobytes(), marks[1 : marks[0] + 1].tolist()
