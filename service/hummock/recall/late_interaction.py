"""Late interaction: how well each candidate's words, in context, answer each word of the query."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hummock.core.candidates import Candidates
from hummock.recall.gather import Probe
from hummock_kernels.maxsim import max_sims


def late_scores(found: Candidates, probe: Probe) -> NDArray[np.float32]:
    """Max-sim of each candidate's best chunk, (n,) float32 in [-1, 1].

    NaN for candidates without token vectors, and for all of them when the query has none.
    """
    if found.tokens is None or not len(probe.tokens):
        return np.full(len(found), np.nan, np.float32)
    return max_sims(probe.tokens, found.tokens.values, found.tokens.start)
