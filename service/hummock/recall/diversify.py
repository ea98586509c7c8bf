"""Picks the hits from ranked candidates: diverse ones first, other versions of a hit last.

An unverified writer cannot fill the first hits if others have something to say.
"""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from hummock.core.candidates import FoundBy
from hummock.core.recall import CAPPED, GroupPlan, MmrRelevance, Plan
from hummock.recall.fuse import Fused
from hummock.recall.plan import DOMAINS
from hummock.recall.query_features import QueryFeatures
from hummock_kernels.mmr import Cap, mmr

Picked = tuple[NDArray[np.int64], NDArray[np.uint8]]
"""Places in the order of a `Fused`, best first, and the marks of each: TWIN and OVER of `hummock_kernels.mmr`."""

ONLY_RELEVANCE = 1.0
"""The weight that ignores difference."""

IN_FULL = 1.0
"""A bound that no cosine passes."""

NEAR = 0.5
"""Share of the best relevance above which candidates of others come before the rest of a writer that has enough hits.
Below it they would displace answers."""


def pick(plan: Plan, group: GroupPlan, ranked: Fused, features: QueryFeatures, alike: float) -> Picked:
    """Places of a group's hits; of a query that is a name, the newest version that holds it first, the others last.

    Where few hold it, they come first, and nothing is made different but for their versions. `alike` is that of
    `Calibration`.
    """
    if group.name == DOMAINS:
        places = np.arange(min(group.top_k, len(ranked)))
        return places, np.zeros(len(places), np.uint8)
    if not features.exact_name:
        return diversify(ranked, plan, alike, group.top_k)
    order = _newest_versions_first(ranked, len(features.terms))
    # A place keeps the relevance that it had.
    by_age = ranked.take(order, relevance=ranked.relevance)
    chosen, marks = diversify(by_age, _by_name(plan, ranked), alike, group.top_k)
    return order[chosen], marks


def diversify(ranked: Fused, plan: Plan, alike: float, keep: int) -> Picked:
    """Pick hits that differ from each other: their places in `ranked`, in the order picked, at most `keep`, with marks.

    Hits are picked by maximal marginal relevance; near-twins (versions) of a picked one come last (S2-05, 1.1-7). Hits
    of one writer beyond the cap come after near hits of other writers.

    Args:
        ranked: Best first.
        plan: Weight and kind of relevance; the cosine from which two hits of one name are versions; the cap.
        alike: Upper bound on cosines, unless relevance is the similarity.
        keep: Upper bound on the result.
    """
    relevance = ranked.relevance
    if plan.mmr_relevance is MmrRelevance.SIMILARITY:
        relevance, alike = np.nan_to_num(ranked.candidates.cosine[ranked.row]), IN_FULL
    found = ranked.candidates
    return mmr(
        found.vectors,
        found.vector_row,
        found.rows,
        ranked.row,
        relevance,
        plan.relevance_weight,
        alike,
        plan.near_twin_bar,
        keep,
        Cap(writers=found.writer, most=plan.writer_cap, first=CAPPED, near=NEAR),
    )


def _by_name(plan: Plan, ranked: Fused) -> Plan:
    """The plan, without difference where few hold the name that the query is."""
    is_held = bool((ranked.candidates.found_by[ranked.row] & FoundBy.HOLDER).any())
    return replace(plan, relevance_weight=ONLY_RELEVANCE) if is_held else plan


def _newest_versions_first(ranked: Fused, term_count: int) -> NDArray[np.int64]:
    """Return places, best first; versions of one name that hold the whole query share their places newest first."""
    found, order = ranked.candidates, np.arange(len(ranked))
    names, created = found.rows["name_hash"][ranked.row], found.rows["create_time"][ranked.row]
    holds_all = found.matched[ranked.row] == np.uint32((1 << term_count) - 1)
    for name in np.unique(names[holds_all & (names != 0)]):
        versions = np.flatnonzero(holds_all & (names == name))
        order[versions] = versions[np.argsort(-created[versions], kind="stable")]
    return order
