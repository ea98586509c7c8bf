"""Late interaction: how well each candidate's words, in context, answer each word of the query."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hummock.core.candidates import Candidates
from hummock.recall.gather import Probe
from hummock_kernels.maxsim import max_sims


def late_scores(found: Candidates, probe: Probe, token_mark: float = 0.0) -> NDArray[np.float32]:
    """Max-sim of each candidate's best chunk, (n,) float32 in [-1, 1].

    NaN for candidates without token vectors, for all of them when the query has none, and where two models make one
    space and the query's token vectors are one's, the candidate's the other's.

    Args:
        found: The candidates.
        probe: The query.
        token_mark: Of the space. It adds its square to each product of one model's token vectors, takes as much from
            one of different models', and of the length of a token vector it leaves the rest to the words.
    """
    if found.tokens is None or not len(probe.tokens):
        return np.full(len(found), np.nan, np.float32)
    scores = max_sims(probe.tokens, found.tokens.values, found.tokens.start)
    if not token_mark:
        return scores
    marked = np.float32(token_mark**2)
    of_other_model = scores < 0
    scores = (scores - marked) / (1 - marked)
    scores[of_other_model] = np.nan
    return scores
