"""Late interaction: candidates ranked again by how well their words, in context, answer each word of the query."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hummock.recall.fuse import Fused, in_order, name_odds, of_best
from hummock.recall.gather import Probe
from hummock_kernels.maxsim import max_sims

LARGEST_SHARE = 0.5

UNTRUSTED_SIMILARITY = 0.2
TRUSTED_SIMILARITY = 0.7
"""The pool's best similarity up to which token vectors have no say, and from which on they have all of theirs. They are
the embedder's own, and a model that sees nothing alike in two texts sees nothing alike in their words either."""


def rerank(fused: Fused, probe: Probe) -> Fused:
    """The same candidates, in the order of a relevance that late interaction has its share in.

    Age and the domains that the query names weigh as before. Candidates without token vectors keep their relevance.
    Without the query's or any candidate's token vectors, the order stays.
    """
    found = fused.candidates
    if found.tokens is None or not len(found) or not len(probe.tokens):
        return fused
    late = max_sims(probe.tokens, found.tokens.values, found.tokens.start)[found.tokens.block]
    share = np.where(np.isnan(late), np.float32(0), _share(fused, probe))
    by_late = of_best(np.nan_to_num(late, nan=0.0).clip(min=0))
    joined = (np.float32(1) - share) * fused.joined + share * by_late
    return in_order(replace(fused, joined=joined.astype(np.float32), late=late, late_share=float(share.mean())))


def _share(fused: Fused, probe: Probe) -> NDArray[np.float32]:
    """Share of late interaction for each candidate: it grows with how well the model understands query and pool."""
    understood = (float(fused.similarity.max()) - UNTRUSTED_SIMILARITY) / (TRUSTED_SIMILARITY - UNTRUSTED_SIMILARITY)
    share = LARGEST_SHARE * probe.known_share * min(1.0, max(0.0, understood)) * name_odds(fused.candidates, probe)
    return np.full(len(fused.candidates), share, np.float32)
