"""Messages of recall and search, parsed and presented."""

from __future__ import annotations

import math
from collections.abc import Iterable

from hummock.core.candidates import FoundBy
from hummock.core.errors import InvalidRequest
from hummock.core.memory import Filter, Origin
from hummock.core.recall import (
    CrossEncoding,
    DecayMode,
    Degradation,
    Hit,
    Intent,
    IntentMode,
    KeywordMode,
    MmrRelevance,
    Preset,
    Recalled,
    RecallPath,
    RecallQuery,
    Receipt,
    Searched,
    SearchQuery,
    SearchResult,
    SearchScope,
    TimeInterval,
)
from hummock.rpc import values
from hummock.rpc.memory_messages import fill_memory
from hummock.v1 import context_service_pb2, memory_pb2, recall_pb2

_NO_DECAY = recall_pb2.Decay()
_NO_FILTER = Filter()
_EVERY_PATH = frozenset(RecallPath)
# A look-up takes a fifth of the time of an enum's call.
_PRESETS = {int(preset): preset for preset in Preset}
# A key file's fragment is there because its domain was found.
_PATH_OF = (
    (FoundBy.VECTOR, recall_pb2.RECALL_PATH_VECTOR),
    (FoundBy.KEYWORD, recall_pb2.RECALL_PATH_KEYWORD),
    (FoundBy.DOMAIN | FoundBy.KEY_FILE, recall_pb2.RECALL_PATH_DOMAIN),
)
_PATHS_OF = {FoundBy(bits): [path for flag, path in _PATH_OF if bits & flag] for bits in range(128)}


def recall_query(request: recall_pb2.RecallRequest, until_s: float | None = None, prefix: str = "") -> RecallQuery:
    """A recall.

    Args:
        request: Checked against the rules.
        until_s: When the caller stops waiting, on the monotonic clock; None means never.
        prefix: Where it stands in the request that was sent, with a dot at its end.

    Raises: InvalidRequest.
    """
    if not request.query_text.strip():
        raise InvalidRequest(f"{prefix}query_text", "is blank; say what to recall for")
    if request.HasField("window_turns") and not request.session_id:
        raise InvalidRequest(f"{prefix}window_turns", "is of a session; say which by session_id")
    # One list of what is set: to ask for each field by its name takes as long as the rest.
    given = {field.name: value for field, value in request.ListFields()}
    decay = given.get("decay", _NO_DECAY)
    return RecallQuery(
        project=values.project_name(f"{prefix}project", request.project),
        text=request.query_text,
        vector=values.vector(f"{prefix}query_vector", request.query_vector) if "query_vector" in given else None,
        preset=_PRESETS[request.preset or Preset.AGENT],
        top_k=given.get("top_k"),
        candidates=given.get("candidates"),
        min_similarity=given.get("min_similarity"),
        filter=values.memory_filter(f"{prefix}filter", request.filter) if "filter" in given else _NO_FILTER,
        paths=frozenset(map(RecallPath, request.paths)) if "paths" in given else _EVERY_PATH,
        decay_mode=DecayMode(decay.mode) if decay.mode else None,
        half_life_days=decay.half_life_days if decay.HasField("half_life_days") else None,
        decay_floor=decay.floor if decay.HasField("floor") else None,
        decay_exempt_origins=frozenset(map(Origin, decay.exempt_origins)) if "decay" in given else frozenset(),
        relevance_weight=given.get("relevance_weight"),
        near_twin_bar=given.get("near_twin_bar"),
        mmr_relevance=MmrRelevance(request.mmr_relevance) if request.mmr_relevance else None,
        cross_encoding=CrossEncoding(request.cross_encoder) if request.cross_encoder else None,
        late_interaction=given.get("late_interaction"),
        time_words=given.get("time_words"),
        context_window=request.context_window,
        keyword_mode=KeywordMode(given.get("keyword_mode", KeywordMode.TERMS)),
        code_top_k=given.get("code_top_k"),
        domain_top_k=given.get("domain_top_k"),
        intent=_parse_intent(f"{prefix}intent", request.intent) if "intent" in given else None,
        intent_mode=IntentMode(request.intent_mode) if request.intent_mode else None,
        as_of=values.time(f"{prefix}as_of", request, "as_of"),
        min_seq=request.min_seq,
        until_s=until_s,
        full=values.wants_full(request.view, unset_means_full=True),
        session_id=values.identifier(f"{prefix}session_id", request.session_id),
        window_turns=given.get("window_turns"),
        echo_window_s=values.seconds(given["echo_window"]) if "echo_window" in given else None,
    )


def search_query(request: context_service_pb2.SearchRequest, until_s: float | None = None) -> SearchQuery:
    """A search.

    Args:
        request: Checked against the rules.
        until_s: As in `recall_query`.

    Raises: InvalidRequest.
    """
    if not request.query_text.strip():
        raise InvalidRequest("query_text", "is blank; say what to search for")
    return SearchQuery(
        project=values.project_name("project", request.project),
        text=request.query_text,
        top_k=request.top_k if request.HasField("top_k") else None,
        scope=SearchScope(request.scope or SearchScope.BOTH),
        filter=values.memory_filter("filter", request.filter),
        min_seq=request.min_seq,
        until_s=until_s,
        as_of=values.time("as_of", request, "as_of"),
        session_id=values.identifier("session_id", request.session_id),
        unseen_first=request.unseen_first,
    )


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


def intent(known: Intent) -> recall_pb2.Intent:
    """What the user wants."""
    return recall_pb2.Intent(
        domains=known.domains,
        action=known.action,
        keywords=known.keywords,
        times=map(_interval_message, known.times),
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
                pending=group.pending,
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
        times=map(_interval_message, kept.times),
        cross_encoded=kept.cross_encoded,
        project_settings=kept.project_settings,
        gloss=[recall_pb2.GlossedTerm(term=each.term, words=each.words) for each in kept.gloss],
        gloss_version=kept.gloss_version,
        min_similarity=kept.min_similarity,
        min_cosine=kept.min_cosine,
        min_similarity_of_best=kept.min_of_best,
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


def _parse_intent(field: str, sent: recall_pb2.Intent) -> Intent:
    return Intent(
        domains=tuple(sent.domains),
        action=sent.action,
        keywords=tuple(sent.keywords),
        times=tuple(_parse_interval(f"{field}.times[{place}]", interval) for place, interval in enumerate(sent.times)),
    )


def _parse_interval(field: str, sent: recall_pb2.TimeInterval) -> TimeInterval:
    start = values.time(f"{field}.start_time", sent, "start_time")
    end = values.time(f"{field}.end_time", sent, "end_time")
    if start is not None and end is not None and end <= start:
        raise InvalidRequest(f"{field}.end_time", "is not later than start_time")
    return TimeInterval(
        start=-math.inf if start is None else start, end=math.inf if end is None else end, is_vague=sent.vague
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
    message.paths.extend(_PATHS_OF[hit.found_by])
    for beside in hit.before:
        fill_memory(message.before.add(), beside)
    for beside in hit.after:
        fill_memory(message.after.add(), beside)


def _interval_message(interval: TimeInterval) -> recall_pb2.TimeInterval:
    return recall_pb2.TimeInterval(
        start_time=values.timestamp(interval.start) if math.isfinite(interval.start) else None,
        end_time=values.timestamp(interval.end) if math.isfinite(interval.end) else None,
        phrase=interval.phrase,
        vague=interval.is_vague,
    )


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
