"""From ranked rows and their memories to hits that say why they were chosen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hummock.core.candidates import Candidates, FoundBy
from hummock.core.memory import Memory
from hummock.core.recall import GroupCount, Hit
from hummock.recall.diversify import near_twins
from hummock.recall.fuse import Fused


def make_hits(
    fused: Fused,
    rows: NDArray[np.int64],
    memories: Sequence[Memory | None],
    terms: Sequence[str],
    near_twin_bar: float,
) -> tuple[Hit, ...]:
    """Hits in the order of `rows`; rows whose memory was removed meanwhile (None) are left out.

    Args:
        fused: The ranked group.
        rows: Rows of `fused`, best first.
        memories: One for each row.
        terms: The query's terms, in the order of the bits of `matched`.
        near_twin_bar: Cosine from which two hits are near-twins.
    """
    twins = near_twins(fused.candidates.vector[rows], near_twin_bar)
    # Once for all of them: they are worked out anew at each reading.
    columns = zip(rows.tolist(), memories, fused.score[rows].tolist(), fused.decay[rows].tolist(), twins, strict=True)
    return tuple(
        _hit(fused, row, memory, terms, score=score, decay=decay, near_twin=bool(twin))
        for row, memory, score, decay, twin in columns
        if memory is not None
    )


def _hit(
    fused: Fused, row: int, memory: Memory, terms: Sequence[str], *, score: float, decay: float, near_twin: bool
) -> Hit:
    found = fused.candidates
    cosine = float(found.cosine[row])
    late = float(fused.late[row])
    matched = int(found.matched[row])
    return Hit(
        memory=memory,
        score=score,
        similarity=float(fused.similarity[row]),
        cosine=0.0 if np.isnan(cosine) else cosine,
        keyword_score=float(found.keyword[row]),
        late_interaction_score=0.0 if np.isnan(late) else late,
        found_by=FoundBy(int(found.found_by[row])),
        matched_terms=tuple(term for bit, term in enumerate(terms) if matched >> bit & 1),
        age_days=float(fused.age_days[row]),
        decay=decay,
        near_twin=near_twin,
    )


def count(found: Candidates, fused: Fused, returned: int) -> GroupCount:
    """What was found in a group and what was left out of it."""
    return GroupCount(
        name=found.name,
        searched=found.searched,
        vector=_found_by(found, FoundBy.VECTOR),
        keyword=_found_by(found, FoundBy.KEYWORD),
        domain=_found_by(found, FoundBy.DOMAIN | FoundBy.KEY_FILE),
        echo=fused.echo,
        duplicate=fused.duplicate,
        below_min_similarity=fused.below_min_similarity,
        returned=returned,
    )


def _found_by(found: Candidates, path: FoundBy) -> int:
    return int(np.count_nonzero(found.found_by & path))
