"""Requests that read: recall and search."""

from __future__ import annotations

import math

from hummock.core.errors import InvalidRequest
from hummock.core.memory import Filter, Origin
from hummock.core.recall import (
    CrossEncoding,
    DecayMode,
    Intent,
    IntentMode,
    KeywordMode,
    Preset,
    RecallPath,
    RecallQuery,
    TimeInterval,
)
from hummock.core.search import SearchQuery, SearchScope
from hummock.rpc import deadline
from hummock.rpc.parse import values
from hummock.v1 import context_service_pb2, recall_pb2


def recall_query(request: recall_pb2.RecallRequest, prefix: str = "") -> RecallQuery:
    """A recall; `prefix` is where it stands in the request, with a dot at its end."""
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
        decay_exempt_origins=frozenset(map(Origin, decay.exempt_origins)) if "decay" in given else frozenset(),
        relevance_weight=given.get("relevance_weight"),
        near_twin_bar=given.get("near_twin_bar"),
        cross_encoding=CrossEncoding(request.cross_encoder) if request.cross_encoder else None,
        late_interaction=given.get("late_interaction"),
        time_words=given.get("time_words"),
        context_window=request.context_window,
        keyword_mode=KeywordMode(given.get("keyword_mode", KeywordMode.TERMS)),
        code_top_k=given.get("code_top_k"),
        domain_top_k=given.get("domain_top_k"),
        intent=_intent(f"{prefix}intent", request.intent) if "intent" in given else None,
        intent_mode=IntentMode(request.intent_mode) if request.intent_mode else None,
        as_of=values.time(f"{prefix}as_of", request, "as_of"),
        min_seq=request.min_seq,
        until_s=deadline.until_s(),
        full=values.wants_full(request.view, unset_means_full=True),
        session_id=values.identifier(f"{prefix}session_id", request.session_id),
        window_turns=given.get("window_turns"),
        echo_window_s=values.seconds(given["echo_window"]) if "echo_window" in given else None,
    )


_NO_DECAY = recall_pb2.Decay()
_NO_FILTER = Filter()
_EVERY_PATH = frozenset(RecallPath)
# A look-up takes a fifth of the time of an enum's call.
_PRESETS = {int(preset): preset for preset in Preset}


def search_query(request: context_service_pb2.SearchRequest) -> SearchQuery:
    """A search."""
    if not request.query_text.strip():
        raise InvalidRequest("query_text", "is blank; say what to search for")
    return SearchQuery(
        project=values.project_name("project", request.project),
        text=request.query_text,
        top_k=request.top_k if request.HasField("top_k") else None,
        scope=SearchScope(request.scope or SearchScope.BOTH),
        filter=values.memory_filter("filter", request.filter),
        min_seq=request.min_seq,
        until_s=deadline.until_s(),
        as_of=values.time("as_of", request, "as_of"),
        session_id=values.identifier("session_id", request.session_id),
        unseen_first=request.unseen_first,
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
