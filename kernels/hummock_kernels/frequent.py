"""What an inverted index knows of its terms, so that few of their postings need be read (see `bm25.best_by_bm25`)."""

import numpy as np

from hummock_kernels._bits import bit_count
from hummock_kernels._jit import kernel
from hummock_kernels._types import (
    F32,
    F32_1D,
    I32_1D,
    I64,
    I64_1D,
    OUT_F32_1D,
    OUT_I32_2D,
    OUT_U64_2D,
    Counts,
    Docs,
    Indices,
    Longs,
    Tuple,
    Vector,
)


@kernel(Tuple((OUT_U64_2D, OUT_I32_2D))(I64_1D, I32_1D, I64_1D, I64))
def presence_of(indptr: Indices, post_doc: Docs, terms: Indices, docs: int) -> tuple[Longs, Counts]:
    """Which documents hold each of these terms, as bits, 64 documents a word, and how many do before each word.

    Args:
        indptr: (index terms + 1,), with `post_doc`: the index (see `bm25`).
        post_doc: Documents, below `docs`.
        terms: (n,) below the number of the index's terms.
        docs: How many are indexed.

    Returns:
        (n, words) bits and (n, words) counts; there is a word for `docs` itself.
    """
    presence = np.zeros((terms.shape[0], docs // 64 + 1), np.uint64)
    before = np.zeros(presence.shape, np.int32)
    for row in range(terms.shape[0]):
        for p in range(indptr[terms[row]], indptr[terms[row] + 1]):
            presence[row, post_doc[p] >> 6] |= np.uint64(1) << np.uint64(post_doc[p] & 63)
        for word in range(1, presence.shape[1]):
            before[row, word] = before[row, word - 1] + np.int32(bit_count(presence[row, word - 1]))
    return presence, before


@kernel(OUT_F32_1D(I64_1D, I32_1D, F32_1D, F32_1D, F32, F32, F32))
def greatest_shares(
    indptr: Indices,
    post_doc: Docs,
    post_weight: Vector,
    doc_length: Vector,
    mean_length: float,
    k1: float,
    b: float,
) -> Vector:
    """The greatest share of its gain that each term gives to a document, (terms,) in [0, 1].

    Arguments are those of `bm25.bm25_scores`.
    """
    floor = np.float32(k1 * (np.float32(1) - b))
    slope = np.float32(k1 * b / mean_length) if mean_length > 0 else np.float32(0)
    greatest = np.zeros(indptr.shape[0] - 1, np.float32)
    for term in range(greatest.shape[0]):
        share = np.float32(0)
        for p in range(indptr[term], indptr[term + 1]):
            if post_weight[p] > 0:
                share = max(share, post_weight[p] / (post_weight[p] + (floor + slope * doc_length[post_doc[p]])))
        greatest[term] = share
    return greatest
