"""Replies to reads: recall and search."""

from __future__ import annotations

import math
from collections.abc import Iterable

from hummock.core.candidates import FoundBy
from hummock.core.recall import Degradation, Hit, Intent, Recalled, Receipt, TimeInterval
from hummock.core.search import Searched, SearchResult
from hummock.rpc.present import values
from hummock.rpc.present.memory import fill_memory
from hummock.v1 import context_service_pb2, memory_pb2, recall_pb2

# A key file's fragment is there because its domain was found.
_WIRE = (
    (FoundBy.VECTOR, recall_pb2.RECALL_PATH_VECTOR),
    (FoundBy.KEYWORD, recall_pb2.RECALL_PATH_KEYWORD),
    (FoundBy.DOMAIN | FoundBy.KEY_FILE, recall_pb2.RECALL_PATH_DOMAIN),
)
_PATHS = {FoundBy(bits): [path for flag, path in _WIRE if bits & flag] for bits in range(64)}


def recall_response(recalled: Recalled) -> recall_pb2.RecallResponse:
    """The answer to a recall."""
    reply = recall_pb2.RecallResponse(
        intent=intent(recalled.intent),
        receipt=receipt(recalled.receipt),
        degraded=degradations(recalled.degraded),
        seq=recalled.seq,
        content_seq=recalled.content_seq,
    )
    for messages, hits in (
        (reply.hits, recalled.hits),
        (reply.code_fragments, recalled.code_fragments),
        (reply.domains, recalled.domains),
    ):
        for hit in hits:
            _fill_hit(messages.add(), hit)
    return reply


def search_response(searched: Searched) -> context_service_pb2.SearchResponse:
    """The results of a search."""
    return context_service_pb2.SearchResponse(
        results=map(_search_result, searched.results),
        text=searched.text,
        together_with=searched.together_with,
        receipt=receipt(searched.receipt),
        degraded=degradations(searched.degraded),
    )


def _fill_hit(message: recall_pb2.Hit, hit: Hit) -> None:
    fill_memory(message.memory, hit.memory)
    message.score = hit.score
    message.similarity = hit.similarity
    message.cosine = hit.cosine
    message.keyword_score = hit.keyword_score
    message.late_interaction_score = hit.late_interaction_score
    message.cross_encoder_score = hit.cross_encoder_score
    message.age_days = hit.age_days
    message.decay = hit.decay
    message.near_twin = hit.near_twin
    message.time_match = hit.time_match
    if hit.matched_terms:
        message.matched_terms.extend(hit.matched_terms)
    message.paths.extend(_PATHS[hit.found_by])
    for beside in hit.before:
        fill_memory(message.before.add(), beside)
    for beside in hit.after:
        fill_memory(message.after.add(), beside)


def intent(known: Intent) -> recall_pb2.Intent:
    """What the user wants."""
    return recall_pb2.Intent(
        domains=known.domains,
        action=known.action,
        keywords=known.keywords,
        times=map(_time_interval, known.times),
    )


def _time_interval(interval: TimeInterval) -> recall_pb2.TimeInterval:
    return recall_pb2.TimeInterval(
        start_time=values.timestamp(interval.start) if math.isfinite(interval.start) else None,
        end_time=values.timestamp(interval.end) if math.isfinite(interval.end) else None,
        phrase=interval.phrase,
        vague=interval.is_vague,
    )


def receipt(kept: Receipt) -> recall_pb2.Receipt:
    """What ran and how long it took."""
    message = recall_pb2.Receipt(
        preset=recall_pb2.Preset.ValueType(kept.preset),
        groups=[
            recall_pb2.GroupCount(
                group=group.name,
                searched=group.searched,
                vector=group.vector,
                keyword=group.keyword,
                domain=group.domain,
                echo=group.echo,
                duplicate=group.duplicate,
                below_min_similarity=group.below_min_similarity,
                returned=group.returned,
                in_window=group.in_window,
                least_cosine=group.least_cosine,
                mean_cosine=group.mean_cosine,
                greatest_cosine=group.greatest_cosine,
                origins=[
                    recall_pb2.OriginCount(origin=memory_pb2.Origin.ValueType(origin), count=size)
                    for origin, size in group.origins
                ],
            )
            for group in kept.groups
        ],
        emb_space=kept.emb_space,
        vector_weight=kept.vector_weight,
        cached=kept.cached,
        late_interaction_weight=kept.late_interaction_weight,
        times=map(_time_interval, kept.times),
        cross_encoded=kept.cross_encoded,
        project_settings=kept.project_settings,
    )
    values.set_timestamp(message.as_of, kept.as_of)
    values.set_duration(message.elapsed, kept.elapsed_s)
    for stage in kept.stages:
        time = message.stages.add(stage=stage.stage)
        values.set_duration(time.elapsed, stage.elapsed_s)
    return message


def degradations(degraded: Iterable[Degradation]) -> list[recall_pb2.Degradation]:
    """What could not be done."""
    return [recall_pb2.Degradation(path=one.path, reason=one.reason, message=one.message) for one in degraded]


def _search_result(result: SearchResult) -> context_service_pb2.SearchResult:
    return context_service_pb2.SearchResult(
        type=result.type,
        memory_id=result.memory_id,
        title=result.title,
        content=result.content,
        score=result.score,
        metadata=values.struct(result.metadata),
        seen_before=result.seen_before,
    )
