"""Requests that read: recall and search."""

from __future__ import annotations

import math

from hummock.core.errors import InvalidRequest
from hummock.core.memory import Origin
from hummock.core.recall import (
    CrossEncoding,
    DecayMode,
    Intent,
    KeywordMode,
    Preset,
    RecallPath,
    RecallQuery,
    TimeInterval,
)
from hummock.core.search import SearchQuery, SearchScope
from hummock.rpc import deadline
from hummock.rpc import parse_values as values
from hummock.v1 import context_service_pb2, recall_pb2

_DEFAULT_SEARCH_TOP_K = 10


def recall_query(request: recall_pb2.RecallRequest, prefix: str = "") -> RecallQuery:
    """A recall; `prefix` is where it stands in the request, with a dot at its end."""
    if not request.query_text.strip():
        raise InvalidRequest(f"{prefix}query_text", "is blank; say what to recall for")
    return RecallQuery(
        project=values.project_name(f"{prefix}project", request.project),
        text=request.query_text,
        vector=(
            values.vector(f"{prefix}query_vector", request.query_vector) if request.HasField("query_vector") else None
        ),
        preset=Preset(request.preset or Preset.AGENT),
        top_k=request.top_k if request.HasField("top_k") else None,
        candidates=request.candidates if request.HasField("candidates") else None,
        min_similarity=request.min_similarity if request.HasField("min_similarity") else None,
        filter=values.memory_filter(f"{prefix}filter", request.filter),
        paths=frozenset(RecallPath(path) for path in request.paths) or frozenset(RecallPath),
        decay_mode=DecayMode(request.decay.mode) if request.decay.mode else None,
        half_life_days=request.decay.half_life_days if request.decay.HasField("half_life_days") else None,
        decay_exempt_origins=frozenset(Origin(origin) for origin in request.decay.exempt_origins),
        relevance_weight=request.relevance_weight if request.HasField("relevance_weight") else None,
        near_twin_bar=request.near_twin_bar if request.HasField("near_twin_bar") else None,
        cross_encoding=CrossEncoding(request.cross_encoder) if request.cross_encoder else None,
        late_interaction=request.late_interaction if request.HasField("late_interaction") else None,
        time_words=request.time_words if request.HasField("time_words") else None,
        context_window=request.context_window,
        keyword_mode=KeywordMode(request.keyword_mode or KeywordMode.TERMS),
        code_top_k=request.code_top_k if request.HasField("code_top_k") else None,
        domain_top_k=request.domain_top_k if request.HasField("domain_top_k") else None,
        intent=_intent(f"{prefix}intent", request.intent) if request.HasField("intent") else None,
        as_of=values.time(f"{prefix}as_of", request, "as_of"),
        min_seq=request.min_seq,
        until_s=deadline.until_s(),
        full=values.wants_full(request.view, unset_means_full=True),
    )


def search_query(request: context_service_pb2.SearchRequest) -> SearchQuery:
    """A search."""
    if not request.query_text.strip():
        raise InvalidRequest("query_text", "is blank; say what to search for")
    return SearchQuery(
        project=values.project_name("project", request.project),
        text=request.query_text,
        top_k=request.top_k if request.HasField("top_k") else _DEFAULT_SEARCH_TOP_K,
        scope=SearchScope(request.scope or SearchScope.BOTH),
        filter=values.memory_filter("filter", request.filter),
        min_seq=request.min_seq,
        until_s=deadline.until_s(),
        as_of=values.time("as_of", request, "as_of"),
    )


def _intent(field: str, sent: recall_pb2.Intent) -> Intent:
    return Intent(
        domains=tuple(sent.domains),
        action=sent.action,
        keywords=tuple(sent.keywords),
        times=tuple(_time_interval(f"{field}.times[{place}]", interval) for place, interval in enumerate(sent.times)),
    )


def _time_interval(field: str, sent: recall_pb2.TimeInterval) -> TimeInterval:
    start = values.time(f"{field}.start_time", sent, "start_time")
    end = values.time(f"{field}.end_time", sent, "end_time")
    if start is not None and end is not None and end <= start:
        raise InvalidRequest(f"{field}.end_time", "is not later than start_time")
    return TimeInterval(
        start=-math.inf if start is None else start, end=math.inf if end is None else end, is_vague=sent.vague
    )
