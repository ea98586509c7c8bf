"""Selection of memories that fit the query and differ from each other."""

from typing import NamedTuple

import numpy as np

from hummock_kernels._jit import REASSOCIATE, helper, kernel, named
from hummock_kernels._processor import half
from hummock_kernels._types import (
    F32,
    F32_1D,
    I64,
    I64_1D,
    OUT_I64_1D,
    OUT_U8_1D,
    U16_2D,
    U32_1D,
    Flags,
    Halves,
    Indices,
    Tuple,
    Vector,
    Words,
)
from hummock_kernels.pool import ROWS, Rows

TWIN = 1
"""Mark of a near-twin of one chosen before."""

OVER = 2
"""Mark of a candidate moved after a less relevant one because its writer had reached the cap."""

_WAITS = 2
"""Loss of a postponed candidate: larger than that of any near-twin."""


class Cap(NamedTuple):
    """Limit on the candidates of one writer among the first chosen.

    Attributes:
        writers: (all,) equal for candidates of one writer; 0 for uncounted ones. (0,) if none are counted.
        most: Largest number per writer, at least 1.
        first: Number of first choices to which the cap applies; no cap if not above `most`.
        near: Share of the largest relevance from which on others come before a writer's candidates over the cap.
    """

    writers: Words
    most: int
    first: int
    near: float


CAP = named(Cap, U32_1D, I64, I64, F32)
NO_CAP = Cap(writers=np.empty(0, np.uint32), most=1, first=0, near=1.0)


@helper(fastmath=REASSOCIATE)
def _dot(one: Halves, other: Halves) -> np.float32:
    # float32 start value: 0.0 would widen the accumulator to float64.
    total = np.float32(0)
    for column in range(one.shape[0]):
        total += half(one[column]) * half(other[column])
    return total


@helper()
def _gain(relevance: np.float32, closest: np.float32, weight: float) -> np.float32:
    gain = weight * relevance - (np.float32(1) - weight) * closest
    return np.float32(-np.inf) if np.isnan(gain) else np.float32(gain)


@helper()
def _least_near(relevance: Vector, near: float) -> np.float32:
    largest = np.float32(-np.inf)
    for one in relevance:
        # False for a NaN.
        if one > largest:
            largest = one
    return np.float32(np.float32(near) * largest)


@helper()
def _count(writers: Words, rows: Indices, chosen: Indices, writer: np.uint32) -> int:
    count = 0
    for place in chosen:
        count += writers[rows[place]] == writer
    return count


@helper()
def similarity_of(vectors: Halves, one: int, other: int) -> np.float32:
    """Cosine of two vectors by their rows; 0 without one, and where one has a NaN."""
    similarity = _dot(vectors[one], vectors[other]) if one >= 0 and other >= 0 else np.float32(0)
    return np.float32(0) if np.isnan(similarity) else similarity


@kernel(Tuple((OUT_I64_1D, OUT_U8_1D))(U16_2D, I64_1D, ROWS, I64_1D, F32_1D, F32, F32, F32, I64, CAP))
def mmr(
    vectors: Halves,
    vector_row: Indices,
    candidates: Rows,
    rows: Indices,
    relevance: Vector,
    weight: float,
    alike: float,
    twin_bar: float,
    keep: int,
    cap: Cap,
) -> tuple[Indices, Flags]:
    """Candidates in the order chosen by maximal marginal relevance, each with its marks.

    (m, dim), (all,), (all,), (n,) and (n,) -> places in `rows`, (at most keep,), and as many marks, of TWIN and OVER.

    Each step takes the largest weight * relevance - (1 - weight) * (largest cosine to one already chosen). Near-twins
    of a chosen candidate wait until nothing else is left, and are then chosen by the same rule. Equal gains go to
    the smaller place.

    A writer's candidates over the cap wait, near-twin or not, for those of others that are near. Without such others
    the order is the same as without a cap.

    Args:
        vectors: float16 unit vectors in uint16; a zero row, or one with a NaN, has similarity 0 to all others.
        vector_row: The row in `vectors` of each of all candidates; -1 without one.
        candidates: All candidates, by `name_hash` with equal names for possible versions of one thing; 0 without.
        rows: Those to choose from.
        relevance: Larger is better, in the range of a cosine; a NaN comes last.
        weight: In [0, 1]; 1 ignores diversity.
        alike: Upper bound on cosines, so that very similar candidates are not penalised more than similar ones.
        twin_bar: Two candidates of one name with at least this cosine are near-twins; above 1 there are none.
        keep: Upper bound on the result; 0 or less gives nothing.
        cap: Limit on candidates of one writer.

    Source: Carbonell & Goldstein, SIGIR 1998; lazy evaluation of decreasing gains: Minoux, Optimization Techniques
    1978.
    """
    n = rows.shape[0]
    chosen = np.empty(max(min(keep, n), 0), np.int64)
    closest = np.zeros(n, np.float32)
    compared = np.zeros(n, np.int64)
    is_chosen = np.zeros(n, np.bool_)
    is_twin = np.zeros(n, np.uint8)
    is_over = np.zeros(n, np.uint8)
    # Once a writer has reached the cap, his candidates and those that are not near wait for the rest.
    waits = np.zeros(n, np.uint8)
    is_held = np.zeros(n, np.bool_)
    has_held = False
    counts = cap.writers.shape[0] > 0 and cap.most < cap.first
    least = _least_near(relevance, cap.near) if counts else np.float32(0)
    for step in range(chosen.shape[0]):
        pick = -1
        best = np.float32(-np.inf)
        if has_held and step == cap.first:
            has_held = False
            waits[:] = 0
        for i in range(n):
            if is_chosen[i]:
                continue
            # A candidate's gain only falls with further comparisons, except the first, before which it has no cosine.
            # So a candidate that does not win by its known bound need not be compared further.
            while True:
                gain = _gain(relevance[i], closest[i], weight)
                is_better = pick < 0 or gain > best
                if pick >= 0 and is_twin[i] + waits[i] != is_twin[pick] + waits[pick]:
                    is_better = is_twin[i] + waits[i] < is_twin[pick] + waits[pick]
                if compared[i] == step or (compared[i] > 0 and not is_better):
                    break
                other = rows[chosen[compared[i]]]
                similarity = similarity_of(vectors, vector_row[rows[i]], vector_row[other])
                name = candidates[rows[i]].name_hash
                is_twin[i] |= similarity >= twin_bar and name != 0 and name == candidates[other].name_hash
                similarity = min(similarity, np.float32(alike))
                # The first choice sets it: cosines may be negative.
                closest[i] = similarity if compared[i] == 0 else max(closest[i], similarity)
                compared[i] += 1
            if is_better:
                pick = i
                best = gain
        chosen[step] = pick
        is_chosen[pick] = True
        if has_held and not waits[pick]:
            for i in range(n):
                if is_held[i] and not is_chosen[i] and relevance[i] > relevance[pick]:
                    is_over[i] = OVER
        if counts and step + 1 < cap.first:
            writer = cap.writers[rows[pick]]
            if writer != 0 and _count(cap.writers, rows, chosen[: step + 1], writer) == cap.most:
                for i in range(n):
                    is_held[i] |= cap.writers[rows[i]] == writer
                    # A NaN is not near.
                    if is_held[i] or not relevance[i] >= least:
                        waits[i] = _WAITS
                has_held = True
    return chosen, is_twin[chosen] | is_over[chosen]
