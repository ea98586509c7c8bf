"""Messages written by a kernel, against its twin."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hummock_kernels import messages, reference
from hummock_kernels.messages import (
    DOUBLE,
    HEX,
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
)

WIRE = {NUMBER: 0, DOUBLE: 1, MARKED: 1}
FLOATS = st.sampled_from([0.0, -0.0, 1.5, float("inf")]) | st.floats(-1e9, 1e9)
SIZES = st.sampled_from([0, 1, 31, 32, 127, 128, 255, 256, 16_384, 70_000])
VALUES = {
    SKIPPED: st.binary(max_size=40) | FLOATS | st.integers(-(2**40), 2**40) | st.none(),
    NUMBER: st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.integers(-300, 300),
    TEXT: st.text(max_size=40) | SIZES.map(lambda size: "x" * size),
    HEX: st.binary(max_size=20),
    DOUBLE: FLOATS | st.integers(-300, 300),
    MARKED: FLOATS,
    TIME: st.floats(-6e10, 2.6e11) | st.sampled_from([0.0, 1.0, 253_402_300_799.9999999]),
    SPAN: st.floats(0, 1e6) | st.just(0.25),
}


@st.composite
def written(draw: st.DrawFn) -> tuple[Any, Any]:
    """A table, and the values of its first message."""
    rows: list[list[int]] = []

    def message(depth: int, *chosen: int) -> tuple[int, st.SearchStrategy[Any]]:
        first, count = len(rows), draw(st.integers(0, 4))
        rows.extend([SKIPPED, 0, 0, 0, 0] for _ in range(len(chosen) + count))
        parts = [field(first + len(chosen) + place, depth) for place in range(count)]
        return first, st.tuples(*parts).map(lambda values: [*chosen, *values])

    def field(row: int, depth: int) -> st.SearchStrategy[Any]:
        kind = draw(st.sampled_from([*VALUES] + [MESSAGE, INLINE, ONE_OF] * (depth < 3)))
        is_many = kind not in (SKIPPED, INLINE, ONE_OF) and draw(st.booleans())
        number, first = draw(st.sampled_from([1, 15, 16, 29])), 0
        if kind in VALUES:
            value = VALUES[kind]
        elif kind == ONE_OF:
            first = len(rows)
            rows.extend([0] * 5 for _ in range(2))
            chosen = draw(st.integers(1, 2))
            inner, value = message(depth + 1, chosen)
            rows[first + chosen - 1] = [MESSAGE, number << 3 | 2, 0, 1, inner]
        else:
            first, value = message(depth + 1)
        rows[row] = [kind, number << 3 | WIRE.get(kind, 2), is_many, draw(st.booleans()) or kind == MARKED, first]
        return st.lists(value, max_size=4) if is_many else value | st.none()

    _, values = message(0)
    return np.array(rows, np.int64).reshape(-1, 5), draw(values)


@given(written())
def test_a_message_is_written_as_its_twin_writes_it(case: tuple[Any, Any]) -> None:
    table, values = case
    data = np.frombuffer(msgspec.msgpack.encode(values), np.uint8)
    found = []
    for put in (messages.put_message, reference.put_message):
        out, marks = np.zeros(MOST_GROWTH * len(data), np.uint8), np.zeros(2000, np.int64)
        length = put(data, table, out, marks)
        found.append((out[:length].tobytes(), marks.tolist()))
    assert found[0] == found[1]
