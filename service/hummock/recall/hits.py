"""From ranked rows and their memories to hits that say why they were chosen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hummock.core.candidates import Candidates, FoundBy
from hummock.core.memory import Memory
from hummock.core.recall import GroupCount, Hit
from hummock.recall.fuse import Fused

_SECONDS_A_DAY = 86_400.0


def make_hits(
    fused: Fused,
    places: NDArray[np.int64],
    is_twin: NDArray[np.uint8],
    memories: Sequence[Memory | None],
    terms: Sequence[str],
    as_of: float,
) -> tuple[Hit, ...]:
    """Hits in the order of `places`; those whose memory was removed meanwhile (None) are left out.

    Args:
        fused: The ranked group.
        places: Places in its order, best first.
        is_twin: Which of them are near-twins of one before.
        memories: One for each place.
        terms: The query's terms, in the order of the bits of `matched`.
        as_of: Unix seconds from which ages count.
    """
    found = fused.candidates
    rows = fused.row[places]
    columns = zip(
        memories,
        fused.score[places].tolist(),
        fused.similarity[places].tolist(),
        np.nan_to_num(found.cosine[rows]).tolist(),
        found.keyword[rows].tolist(),
        np.nan_to_num(fused.late[rows]).tolist(),
        found.found_by[rows].tolist(),
        found.matched[rows].tolist(),
        np.maximum(0.0, (as_of - found.create_time[rows]) / _SECONDS_A_DAY).tolist(),
        np.exp(fused.log_decay[places]).tolist(),
        is_twin.tolist(),
        strict=True,
    )
    return tuple(
        [
            Hit(
                memory=memory,
                score=score,
                similarity=similarity,
                cosine=cosine,
                keyword_score=keyword,
                late_interaction_score=late,
                found_by=_FOUND_BY[found_by],
                matched_terms=tuple([term for bit, term in enumerate(terms) if matched >> bit & 1]),
                age_days=age_days,
                decay=decay,
                near_twin=bool(twin),
            )
            for memory, score, similarity, cosine, keyword, late, found_by, matched, age_days, decay, twin in columns
            if memory is not None
        ]
    )


# A look-up is a tenth of a call of the enum.
_FOUND_BY = tuple(FoundBy(bits) for bits in range(16))


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
