"""Notes that tell a change, each with the older note that it most likely replaces."""

from typing import NamedTuple

import numpy as np

from hummock_kernels._jit import helper, kernel, named
from hummock_kernels._types import (
    F32_1D,
    F64,
    I64,
    I64_1D,
    OUT_I64_1D,
    U16_2D,
    U32_1D,
    Doubles,
    Halves,
    Indices,
    Tuple,
    Vector,
    Words,
)
from hummock_kernels.mmr import similarity_of
from hummock_kernels.pool import ROWS, Rows


class Replacing(NamedTuple):
    """What makes a note a change of another.

    Attributes:
        traits: Bits of `traits` that are looked at.
        tells: Those bits of a note that tells a change.
        dated: Bit of `traits` of an event time that was read from the text, which is not when it was said.
        note: The kind of notes.
        model: The origin of what a model said.
        least_age_s: Least seconds between both.
        about_as_much: Difference of two cosines that says little about which of two older notes is meant.
        one_thing: Least cosine of two notes about one thing.
        fitting: Least relevance of the newer note, as a share of that of the older one.
        bearing: Least relevance of the older note, as a share of the best.
    """

    traits: int
    tells: int
    dated: int
    note: int
    model: int
    least_age_s: float
    about_as_much: float
    one_thing: float
    fitting: float
    bearing: float


REPLACING = named(Replacing, I64, I64, I64, I64, I64, F64, F64, F64, F64, F64)


@helper()
def _told(candidates: Rows, rows: Indices, dated: int) -> Doubles:
    """When each was said, in Unix seconds."""
    told = np.empty(rows.shape[0], np.float64)
    for place in range(rows.shape[0]):
        row = candidates[rows[place]]
        is_read = np.isnan(row.event_time) or row.traits & dated != 0
        told[place] = row.create_time if is_read else row.event_time
    return told


@helper()
def _telling(candidates: Rows, rows: Indices, told: Doubles, rule: Replacing) -> Indices:
    """Places of those that tell a change, the newest last; of one time the first place first (insertion sort)."""
    telling = np.empty(rows.shape[0], np.int64)
    count = 0
    for place in range(rows.shape[0]):
        if candidates[rows[place]].traits & rule.traits == rule.tells:
            at = count
            while at > 0 and told[telling[at - 1]] > told[place]:
                telling[at] = telling[at - 1]
                at -= 1
            telling[at] = place
            count += 1
    return telling[:count]


@helper()
def _may_replace(candidates: Rows, writers: Words, newer: int, older: int, rule: Replacing) -> bool:
    """Whether one row may replace another, by kind, by whom and for whom they were told."""
    one, other = candidates[newer], candidates[older]
    if other.kind != rule.note or (one.origin == rule.model) != (other.origin == rule.model):
        return False
    if one.speaker != 0 and other.speaker != 0 and one.speaker != other.speaker:
        return False
    return bool(writers.shape[0] == 0 or writers[newer] == 0 or writers[newer] == writers[older])


@kernel(Tuple((OUT_I64_1D, OUT_I64_1D))(U16_2D, I64_1D, ROWS, U32_1D, I64_1D, F32_1D, REPLACING))
def replaced(
    vectors: Halves,
    vector_row: Indices,
    candidates: Rows,
    writers: Words,
    rows: Indices,
    relevance: Vector,
    rule: Replacing,
) -> tuple[Indices, Indices]:
    """Places of notes that tell a change, the newest last, and the place of what each most likely replaces.

    (m, dim), (all,), (all,), (all,), (n,) and (n,) -> places in `rows`, (pairs,) and (pairs,).

    That is the first of the older notes by the same person that are about as much like it as any. What a writer says
    that nobody vouches for replaces only what that writer has said.

    Args:
        vectors: float16 unit vectors in uint16; a zero row, or one with a NaN, has similarity 0 to all others.
        vector_row: The row in `vectors` of each of all candidates; -1 without one.
        candidates: All candidates.
        writers: The writer of each of all candidates, 0 for the one who vouches for all; (0,) if all are vouched for.
        rows: Those among which pairs are looked for, best first.
        relevance: Of each of these.
        rule: What makes a note a change of another.
    """
    told = _told(candidates, rows, rule.dated)
    telling = _telling(candidates, rows, told, rule)
    newer = np.empty(telling.shape[0], np.int64)
    older = np.empty(telling.shape[0], np.int64)
    pairs = 0
    best = np.float32(0)
    for value in relevance:
        best = max(best, value)
    cosine = np.empty(rows.shape[0], np.float32)
    for place in telling:
        closest = np.float32(-1)
        for other in range(rows.shape[0]):
            cosine[other] = -1
            is_older = told[other] <= told[place] - rule.least_age_s
            if is_older and _may_replace(candidates, writers, rows[place], rows[other], rule):
                cosine[other] = similarity_of(vectors, vector_row[rows[place]], vector_row[rows[other]])
                closest = max(closest, cosine[other])
        least = max(np.float32(closest - np.float32(rule.about_as_much)), np.float32(rule.one_thing))
        for other in range(rows.shape[0]):
            if cosine[other] >= least:
                fits = relevance[place] >= np.float32(rule.fitting) * relevance[other]
                if fits and relevance[other] >= np.float32(rule.bearing) * best:
                    newer[pairs], older[pairs] = place, other
                    pairs += 1
                break
    return newer[:pairs], older[:pairs]
