"""Two inverted indexes made one, beside those who read and write: no sort, one pass."""

import numpy as np

from hummock_kernels._jit import kernel
from hummock_kernels._types import (
    F32_1D,
    I32_1D,
    I64,
    I64_1D,
    OUT_F32_1D,
    OUT_I32_1D,
    OUT_I64_1D,
    Docs,
    Indices,
    Tuple,
    Vector,
)


@kernel(Tuple((OUT_I64_1D, OUT_I32_1D, OUT_F32_1D))(I64_1D, I32_1D, F32_1D, I64_1D, I32_1D, F32_1D, I64, I32_1D))
def merge_postings(
    indptr: Indices,
    post_doc: Docs,
    post_weight: Vector,
    newer_indptr: Indices,
    newer_doc: Docs,
    newer_weight: Vector,
    base: int,
    place: Docs,
) -> tuple[Indices, Docs, Vector]:
    """The index of older and newer documents, whose numbers change on the way.

    Args:
        indptr: (terms + 1,), with `post_doc` and `post_weight`: the older index (see `bm25`).
        post_doc: Documents, below `base`.
        post_weight: Counts, weighted by field and summed.
        newer_indptr: (at least terms + 1,), with the next two: the newer index.
        newer_doc: Documents, counted from `base`.
        newer_weight: Their weighted counts.
        base: Number of the first newer document.
        place: (documents of both,) the new number of each, ascending; one below 0 is left out.

    Returns:
        indptr of as many terms as the newer index has, post_doc and post_weight.
    """
    terms = newer_indptr.shape[0] - 1
    merged_indptr = np.zeros(terms + 1, np.int64)
    merged_doc = np.empty(post_doc.shape[0] + newer_doc.shape[0], np.int32)
    merged_weight = np.empty(merged_doc.shape[0], np.float32)
    size = 0
    for term in range(terms):
        if term < indptr.shape[0] - 1:
            for p in range(indptr[term], indptr[term + 1]):
                doc = place[post_doc[p]]
                merged_doc[size], merged_weight[size] = doc, post_weight[p]
                size += doc >= 0
        for p in range(newer_indptr[term], newer_indptr[term + 1]):
            doc = place[base + newer_doc[p]]
            merged_doc[size], merged_weight[size] = doc, newer_weight[p]
            size += doc >= 0
        merged_indptr[term + 1] = size
    return merged_indptr, merged_doc[:size], merged_weight[:size]
