"""From ranked rows and their memories to hits that say why they were chosen."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hummock.core.candidates import Candidates, FoundBy
from hummock.core.memory import Memory, Origin
from hummock.core.recall import GroupCount, Hit
from hummock.ports.store import Beside
from hummock.recall.fuse import ECHO_ORIGINS, Fused
from hummock.text.normalise import short_hash

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
    time_match = fused.time_match[rows] if len(fused.time_match) else np.zeros(len(rows), np.float32)
    columns = zip(
        memories,
        fused.score[places].tolist(),
        fused.similarity[places].tolist(),
        found.cosine[rows].tolist(),
        found.keyword[rows].tolist(),
        fused.late[rows].tolist(),
        found.found_by[rows].tolist(),
        found.matched[rows].tolist(),
        np.maximum(0.0, (as_of - found.create_time[rows]) / _SECONDS_A_DAY).tolist(),
        np.exp(fused.log_decay[places]).tolist(),
        is_twin.tolist(),
        time_match.tolist(),
        strict=True,
    )
    hits = tuple(
        [
            Hit(
                memory=memory,
                score=score,
                similarity=similarity,
                cosine=_or_zero(cosine),
                keyword_score=keyword,
                late_interaction_score=_or_zero(late),
                found_by=_FOUND_BY[found_by],
                matched_terms=_matched(matched, terms),
                age_days=age_days,
                decay=decay,
                near_twin=bool(twin),
                time_match=match,
            )
            for (
                memory,
                score,
                similarity,
                cosine,
                keyword,
                late,
                found_by,
                matched,
                age_days,
                decay,
                twin,
                match,
            ) in columns
            if memory is not None
        ]
    )
    return hits if fused.cross is None else _with_cross(hits, fused.cross[places].tolist(), memories)


def _with_cross(hits: tuple[Hit, ...], scores: Sequence[float], memories: Sequence[Memory | None]) -> tuple[Hit, ...]:
    kept = (score for score, memory in zip(scores, memories, strict=True) if memory is not None)
    return tuple(replace(hit, cross_encoder_score=_or_zero(score)) for hit, score in zip(hits, kept, strict=True))


def _or_zero(score: float) -> float:
    return 0.0 if math.isnan(score) else score


def _matched(bits: int, terms: Sequence[str]) -> tuple[str, ...]:
    return tuple([term for bit, term in enumerate(terms) if bits >> bit & 1]) if bits else ()


def with_neighbours(
    hits: Sequence[Hit], beside: Sequence[Beside], excluded_ids: Collection[str], text_hashes: Collection[int]
) -> tuple[Hit, ...]:
    """The hits with what stands beside each, but for what is excluded by name, and for echoes of the query.

    Args:
        hits: In any order.
        beside: One for each hit.
        excluded_ids: Of memories that are not to be shown.
        text_hashes: Of the query's own text, as `Probe` has them.
    """

    def is_shown(memory: Memory) -> bool:
        return memory.id not in excluded_ids and not is_echo(memory, text_hashes)

    def shown(memories: Sequence[Memory]) -> tuple[Memory, ...]:
        return tuple(filter(is_shown, memories))

    return tuple(
        replace(hit, before=shown(found.before), after=shown(found.after))
        for hit, found in zip(hits, beside, strict=True)
    )


def is_echo(memory: Memory, text_hashes: Collection[int]) -> bool:
    """Whether it was said and equals the query; the first 8 bytes of hashes are compared, as fusion does."""
    return memory.origin in ECHO_ORIGINS and short_hash(memory.content_hash) in text_hashes


# A look-up is a tenth of a call of the enum.
_FOUND_BY = tuple(FoundBy(bits) for bits in range(64))
_PATHS = (FoundBy.VECTOR, FoundBy.KEYWORD, FoundBy.DOMAIN | FoundBy.KEY_FILE)
_IN_PATH = np.array([[bits & path != 0 for bits in range(len(_FOUND_BY))] for path in _PATHS], np.int64)
"""Which marks count for the vector, the keyword and the domain path."""

_ORIGINS = {int(origin): origin for origin in Origin}


def count(found: Candidates, fused: Fused, returned: int) -> GroupCount:
    """What was found in a group and what was left out of it."""
    by_paths = np.bincount(found.found_by, minlength=len(_FOUND_BY))
    vector, keyword, domain = (_IN_PATH @ by_paths).tolist()
    least, mean, greatest = _cosines(found)
    return GroupCount(
        name=found.name,
        searched=found.searched,
        vector=vector,
        keyword=keyword,
        domain=domain,
        echo=fused.echo,
        duplicate=fused.duplicate,
        below_min_similarity=fused.below_min_similarity,
        returned=returned,
        in_window=found.in_window,
        least_cosine=least,
        mean_cosine=mean,
        greatest_cosine=greatest,
        origins=tuple((_ORIGINS[value], size) for value, size in enumerate(np.bincount(found.origin).tolist()) if size),
    )


def _cosines(found: Candidates) -> tuple[float, float, float] | tuple[None, None, None]:
    """The least, the mean and the greatest."""
    # What is not a number is not equal to itself: those without a vector.
    compared = found.cosine[found.cosine == found.cosine]
    if not len(compared):
        return None, None, None
    return float(compared.min()), float(compared.mean()), float(compared.max())
