"""Builds hits from ranked rows and their memories: why they were chosen, their neighbours, and counts."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from itertools import islice

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from hummock.core.candidates import Candidates, FoundBy
from hummock.core.memory import Memory, Origin
from hummock.core.recall import Degradation, GroupCount, Hit, RecallQuery, ages_days
from hummock.ports.store import Snapshot
from hummock.recall.fuse import ECHO_ORIGINS, Fused
from hummock.recall.query_features import QueryFeatures
from hummock.recall.spelling import corrections, own_words
from hummock_kernels.mmr import OVER, TWIN

MOST_BYTES = 3 * 1024 * 1024
"""Most bytes of hits and their neighbours, as stored. A reply may have 4 MiB, with names, scores and terms in addition;
a neighbour of several hits is sent with each."""

# A look-up is a tenth of a call of the enum.
_FOUND_BY = tuple(FoundBy(bits) for bits in range(128))
_ORIGINS = {int(origin): origin for origin in Origin}


def make_hits(
    fused: Fused,
    places: NDArray[np.int64],
    marks: NDArray[np.uint8],
    memories: Sequence[Memory | None],
    features: QueryFeatures,
    as_of: float,
) -> tuple[Hit, ...]:
    """Build hits in the order of `places`; memories removed meanwhile (None) are left out.

    Args:
        fused: The ranked group.
        places: Places in its order, best first.
        marks: The marks of each place, as `pick` returns them.
        memories: The memory of each place.
        features: The features of the query.
        as_of: Unix seconds from which ages count.
    """
    found = fused.candidates
    rows = fused.row[places]
    own, spelt = own_words(features), found.spelt
    time_match = fused.time_match[rows] if len(fused.time_match) else np.zeros(len(rows), np.float32)
    matched = found.matched[rows].tolist()
    words = {bits: matched_terms(bits & own, features.words) for bits in set(matched)}
    columns = zip(
        memories,
        fused.score[places].tolist(),
        fused.similarity[places].tolist(),
        found.cosine[rows].tolist(),
        found.keyword[rows].tolist(),
        fused.late[rows].tolist(),
        [0.0] * len(rows) if fused.cross is None else fused.cross[places].tolist(),
        found.found_by[rows].tolist(),
        matched,
        [0] * len(rows) if spelt is None else spelt.held[rows].tolist(),
        ages_days(found.rows["create_time"][rows].tolist(), as_of),
        np.exp(fused.log_decay[places]).tolist(),
        marks.tolist(),
        time_match.tolist(),
        strict=True,
    )
    hits = tuple(
        [
            Hit(
                memory=memory,
                score=score,
                similarity=similarity,
                # What was not compared has NaN, which does not equal itself.
                cosine=cosine if cosine == cosine else 0.0,
                keyword_score=keyword,
                late_interaction_score=late if late == late else 0.0,
                cross_encoder_score=cross if cross == cross else 0.0,
                found_by=_FOUND_BY[paths],
                matched_terms=words[bits],
                corrections=corrections(held, features, memory) if held else (),
                age_days=age,
                decay=decay,
                near_twin=marked & TWIN != 0,
                over_writer_cap=marked & OVER != 0,
                time_match=match,
            )
            for (
                memory,
                score,
                similarity,
                cosine,
                keyword,
                late,
                cross,
                paths,
                bits,
                held,
                age,
                decay,
                marked,
                match,
            ) in columns
            if memory is not None
        ]
    )
    if not len(fused.verdict) and not fused.replaced_by:
        return hits
    present = rows[np.array([memory is not None for memory in memories], np.bool_)]
    if fused.replaced_by:
        hits = _with_likely_replacements(hits, fused, present)
    return _with_verdicts(hits, fused, present) if len(fused.verdict) else hits


def _with_likely_replacements(hits: Sequence[Hit], fused: Fused, rows: NDArray[np.int64]) -> tuple[Hit, ...]:
    """The hits with what most likely replaces each; `rows` are theirs."""
    ids, by = fused.candidates.memory_id, fused.replaced_by
    return tuple(
        replace(hit, likely_replaced_by=ids[by[row]]) if row in by else hit
        for hit, row in zip(hits, rows.tolist(), strict=True)
    )


def _with_verdicts(hits: Sequence[Hit], fused: Fused, rows: NDArray[np.int64]) -> tuple[Hit, ...]:
    """The hits with the verdicts on each; `rows` are theirs."""
    found = fused.candidates
    said = zip(fused.verdict[rows].tolist(), found.helpful[rows].tolist(), found.wrong[rows].tolist(), strict=True)
    return tuple(
        replace(hit, verdict=factor, helpful_count=helpful, wrong_count=wrong)
        for hit, (factor, helpful, wrong) in zip(hits, said, strict=True)
    )


def with_replacements(project: Snapshot, hits: Mapping[str, tuple[Hit, ...]]) -> dict[str, tuple[Hit, ...]]:
    """Add to each hit the ids of the memories that replace it."""
    by = project.superseded_by([hit.memory.id for group in hits.values() for hit in group])
    return {
        name: tuple(replace(hit, superseded_by=by.get(hit.memory.id, ())) for hit in group)
        for name, group in hits.items()
    }


def matched_terms(bits: int, words: Sequence[str]) -> tuple[str, ...]:
    """Return the words of the query whose bits are set."""
    return tuple([word for bit, word in enumerate(words) if bits >> bit & 1]) if bits else ()


def with_neighbours(
    project: Snapshot,
    query: RecallQuery,
    hits: Mapping[str, Sequence[Hit]],
    docs: Sequence[int],
    text_hashes: Collection[int],
) -> tuple[dict[str, tuple[Hit, ...]], tuple[Degradation, ...]]:
    """Add the neighbours that the query asks for, except those that it excludes by id and its echoes.

    Groups share the byte limit, the first group first; neighbours left out are reported.

    Args:
        project: Holds the memories.
        query: The query.
        hits: By group.
        docs: The store's numbers of all hits, group by group.
        text_hashes: Hashes of the query's own text, as `QueryFeatures.echoes` gives them.
    """

    def shown(memories: Sequence[Memory], hashes: Mapping[str, int]) -> tuple[Memory, ...]:
        excluded = query.filter.excluded_ids
        echoes = {each.id for each in memories if each.origin in ECHO_ORIGINS and hashes.get(each.id) in text_hashes}
        return tuple([each for each in memories if each.id not in excluded and each.id not in echoes])

    neighbours = project.neighbours(docs, query.context_window, full=query.full, most_bytes=MOST_BYTES)
    of_each = iter(neighbours)
    accompanied: dict[str, tuple[Hit, ...]] = {}
    for name, group in hits.items():
        found = islice(of_each, len(group))
        accompanied[name] = tuple(
            replace(hit, before=shown(its.before, its.text_hashes), after=shown(its.after, its.text_hashes))
            for hit, its in zip(group, found, strict=True)
        )
    return accompanied, _neighbours_cut(sum(its.is_cut for its in neighbours), len(docs))


def _neighbours_cut(cut: int, count: int) -> tuple[Degradation, ...]:
    if not cut:
        return ()
    message = (
        f"neighbours of {cut} of {count} hits were left out, for the reply would be too large; ask for fewer hits, "
        "fewer neighbours or the INDEX view"
    )
    return (Degradation(path="context_window", reason="REPLY_LIMIT", message=message),)


def count(found: Candidates, fused: Fused, hits: Sequence[Hit]) -> GroupCount:
    """Counts of a group: memories found, candidates left out by reason, and hits moved down."""
    tally, (least, mean, greatest) = fused.tally, fused.cosines
    has_cosines = not math.isnan(mean)
    return GroupCount(
        name=found.name,
        searched=found.searched,
        vector=tally.by_vector,
        keyword=tally.by_keyword,
        domain=tally.by_domain,
        echo=tally.echoes,
        duplicate=tally.older_copies,
        below_min_similarity=fused.below_min_similarity,
        returned=len(hits),
        over_writer_cap=sum([hit.over_writer_cap for hit in hits]),
        in_window=found.in_window,
        pending=found.pending,
        graph_recall=found.graph_recall,
        least_cosine=least if has_cosines else None,
        mean_cosine=mean if has_cosines else None,
        greatest_cosine=greatest if has_cosines else None,
        origins=tuple([(_ORIGINS[value], size) for value, size in enumerate(fused.by_origin) if size]),
    )
