"""Late interaction: how well each candidate's words, in context, answer each word of the query."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hummock.core.candidates import Candidates
from hummock.recall.gather import Probe
from hummock_kernels.maxsim import max_sims


def late_scores(found: Candidates, probe: Probe) -> NDArray[np.float32]:
    """Max-sim of each candidate's best chunk, (n,) float32 in [-1, 1].

    NaN for candidates without token vectors, and for all of them when the query has none. A score of exactly 0 is NaN
    too: of two models that make one space, the query's token vectors are one's and the candidate's the other's.
    """
    if found.tokens is None or not len(probe.tokens):
        return np.full(len(found), np.nan, np.float32)
    scores = max_sims(probe.tokens, found.tokens.values, found.tokens.start)
    scores[scores == 0] = np.nan
    return scores
