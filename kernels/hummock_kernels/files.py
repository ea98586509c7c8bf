"""Adjustment of candidates' scores by other candidates of the same file."""

from typing import NamedTuple

import numpy as np

from hummock_kernels._jit import kernel, named
from hummock_kernels._types import F32, F32_1D, F64, I64, I64_1D, OUT_F32_1D, OUT_I64_1D, Indices, Tuple, Vector
from hummock_kernels.pool import ROWS, Rows

_TINY = np.finfo(np.float32).tiny


class FileShares(NamedTuple):
    """Weights of files in the order of candidates.

    Attributes:
        support: Share of its relevance that each of the best others lends.
        supporters: Number of those others.
        head_factor: Factor for a candidate without a name if another one of its file has a name.
        second_loss: Loss of all but the best candidate of a file.
    """

    support: float
    supporters: int
    head_factor: float
    second_loss: float


_SHARES = named(FileShares, F32, I64, F64, F64)


@kernel(Tuple((OUT_I64_1D, OUT_F32_1D, OUT_F32_1D))(I64_1D, F32_1D, F32_1D, ROWS, _SHARES))
def order_by_files(
    rows: Indices, relevance: Vector, score: Vector, candidates: Rows, shares: FileShares
) -> tuple[Indices, Vector, Vector]:
    """Candidates reordered by support from others of their file: places in `rows`, relevance and score.

    (n,), (n,), (n,) and (all,) -> (n,) each; (0,) each if nothing changes, as fewer than two have a file or
    none is relevant. The best candidate with a file keeps its relevance, and so do those without one. Ties keep their
    order. A score changes in proportion to its relevance.

    Args:
        rows: Candidates, best first.
        relevance: Relevance of each of these, not negative.
        score: Score of each of these, not negative.
        candidates: All candidates, by `file` and `name_hash`; 0 without one.
        shares: Weights of files.
    """
    places = np.empty(rows.shape[0], np.int64)
    count = 0
    for place in range(rows.shape[0]):
        if candidates[rows[place]].file:
            places[count] = place
            count += 1
    unchanged = np.empty(0, np.int64), np.empty(0, np.float32), np.empty(0, np.float32)
    if count < 2:
        return unchanged
    places = places[:count]
    file = np.empty(count, np.uint32)
    for at in range(count):
        file[at] = candidates[rows[places[at]]].file
    grouped = np.argsort(file, kind="mergesort")
    gained = np.empty(count, np.float64)
    best_own, best = np.float32(0), np.float32(0)
    begin = 0
    while begin < count:
        of_file = file[grouped[begin]]
        end = begin
        has_name = False
        # The best supporters, and the next one, which replaces each of these in its own support.
        nearest = np.zeros(shares.supporters + 1, np.float32)
        while end < count and file[grouped[end]] == of_file:
            place = places[grouped[end]]
            has_name |= candidates[rows[place]].name_hash != 0
            if end - begin <= shares.supporters:
                nearest[end - begin] = relevance[place]
            end += 1
        rest = np.float32(0)
        for at in range(1, shares.supporters):
            rest += nearest[at]
        of_best = nearest[0] + rest
        with_next = nearest[0] + (rest + nearest[shares.supporters])
        most = -np.inf
        for at in range(begin, end):
            place = places[grouped[at]]
            own = relevance[place]
            others = with_next - own if at - begin < shares.supporters else of_best
            is_head = has_name and not candidates[rows[place]].name_hash
            gained[grouped[at]] = np.float64(own + shares.support * others) * (shares.head_factor if is_head else 1.0)
            most = max(most, gained[grouped[at]])
            best_own = max(best_own, own)
        for at in range(begin, end):
            loss = shares.second_loss if gained[grouped[at]] < most else 0.0
            gained[grouped[at]] = np.float32(max(gained[grouped[at]] - loss, 0.0))
            best = max(best, np.float32(gained[grouped[at]]))
        begin = end
    if best <= 0:
        return unchanged
    raised, shown = relevance.copy(), np.empty(rows.shape[0], np.float32)
    for i in range(count):
        raised[places[i]] = np.float32(gained[i]) * (best_own / best)
    for place in range(rows.shape[0]):
        shown[place] = score[place] * (raised[place] / max(relevance[place], np.float32(_TINY)))
    order = np.argsort(-raised, kind="mergesort")
    return order, raised[order], shown[order]
