"""Choosing memories that fit the query and differ from each other."""

import numpy as np

from hummock_kernels._jit import REASSOCIATE, helper, kernel
from hummock_kernels._types import (
    F32,
    F32_1D,
    F32_2D,
    I64,
    I64_1D,
    OUT_I64_1D,
    OUT_U8_1D,
    U64_1D,
    Flags,
    Indices,
    Longs,
    Matrix,
    Tuple,
    Vector,
)


@helper(fastmath=REASSOCIATE)
def _dot(one: Vector, other: Vector) -> np.float32:
    # float32 start value: 0.0 would widen the accumulator to float64.
    total = np.float32(0)
    for column in range(one.shape[0]):
        total += one[column] * other[column]
    return total


@helper()
def _gain(relevance: np.float32, closest: np.float32, weight: float) -> np.float32:
    gain = weight * relevance - (np.float32(1) - weight) * closest
    return np.float32(-np.inf) if np.isnan(gain) else np.float32(gain)


@kernel(Tuple((OUT_I64_1D, OUT_U8_1D))(F32_2D, U64_1D, I64_1D, F32_1D, F32, F32, F32, I64))
def mmr(
    vectors: Matrix,
    names: Longs,
    rows: Indices,
    relevance: Vector,
    weight: float,
    alike: float,
    twin_bar: float,
    keep: int,
) -> tuple[Indices, Flags]:
    """Candidates in the order chosen by maximal marginal relevance, and which are near-twins of one chosen before.

    (all, dim), (all,), (n,) and (n,) -> places in `rows`, (at most keep,), and as many flags.

    Each step takes the largest weight * relevance - (1 - weight) * (largest cosine to one already chosen). Near-twins
    of a chosen candidate wait until nothing else is left, and are then chosen by the same rule. Equal gains go to
    the smaller place.

    Args:
        vectors: Unit vectors; a zero row, or one that holds a NaN, has similarity 0 to all others.
        names: Equal for what may be versions of one thing; 0 for what has no name.
        rows: The vector and the name of each candidate.
        relevance: Larger is better, in the range of a cosine; a NaN comes last.
        weight: In [0, 1]; 1 ignores diversity.
        alike: A cosine counts no further than this: what is alike is not the less wanted for being very much alike.
        twin_bar: Two of one name whose cosine reaches it are near-twins; above 1 there are none.
        keep: Upper bound on the result; 0 or less gives nothing.

    Source: Carbonell & Goldstein, SIGIR 1998; that a gain which only falls need not be known exactly to be passed
    over: Minoux, Optimization Techniques 1978.
    """
    n = rows.shape[0]
    chosen = np.empty(max(min(keep, n), 0), np.int64)
    closest = np.zeros(n, np.float32)
    compared = np.zeros(n, np.int64)
    is_chosen = np.zeros(n, np.bool_)
    is_twin = np.zeros(n, np.uint8)
    for step in range(chosen.shape[0]):
        pick = -1
        best = np.float32(-np.inf)
        for i in range(n):
            if is_chosen[i]:
                continue
            # A candidate only loses by what it is compared with, all but the first, before which it resembles nothing.
            # So whoever does not win by what is known need not be compared further.
            while True:
                gain = _gain(relevance[i], closest[i], weight)
                is_better = pick < 0 or gain > best
                if pick >= 0 and is_twin[i] != is_twin[pick]:
                    is_better = is_twin[pick] != 0
                if compared[i] == step or (compared[i] > 0 and not is_better):
                    break
                similarity = _dot(vectors[rows[i]], vectors[rows[chosen[compared[i]]]])
                if np.isnan(similarity):
                    similarity = np.float32(0)
                name = names[rows[i]]
                is_twin[i] |= similarity >= twin_bar and name != 0 and name == names[rows[chosen[compared[i]]]]
                similarity = min(similarity, np.float32(alike))
                # The first choice sets it: cosines may be negative.
                closest[i] = similarity if compared[i] == 0 else max(closest[i], similarity)
                compared[i] += 1
            if is_better:
                pick = i
                best = gain
        chosen[step] = pick
        is_chosen[pick] = True
    return chosen, is_twin[chosen]
