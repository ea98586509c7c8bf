"""Messages of recall and search, parsed and presented."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final

from msgspec import structs

from hummock.core.errors import InvalidRequest
from hummock.core.memory import Filter, MemoryKind, Origin
from hummock.core.recall import (
    CrossEncoding,
    DecayMode,
    Degradation,
    Intent,
    IntentMode,
    KeywordMode,
    MmrRelevance,
    Preset,
    RecallPath,
    RecallQuery,
    Receipt,
    TimeInterval,
)
from hummock.core.render import Searched, SearchQuery, SearchResult, SearchScope
from hummock.rpc import values
from hummock.rpc.conversion import message_of, value_of
from hummock.rpc.message_tables import encode, table_of
from hummock.rpc.validation import LARGEST_KEPT_BYTES, SHAPES_KEPT, placed, shape_of
from hummock_client.v1 import context_service_pb2, recall_pb2
from hummock_kernels.messages import written

_NO_TUNING = recall_pb2.RecallTuning()
_NO_FILTER = Filter()


def _by_name(numbers: Iterable[tuple[str, int]], prefix: str) -> dict[str, int]:
    """The values of an enum by their names in small letters, without the prefix."""
    return {name.removeprefix(prefix).lower(): number for name, number in numbers}


_PARTS: Final = _by_name(recall_pb2.DegradedPart.items(), "DEGRADED_PART_")
_REASONS: Final = {
    name.removeprefix("DEGRADATION_REASON_"): reason for name, reason in recall_pb2.DegradationReason.items()
}
_STAGES: Final = _by_name(recall_pb2.RecallStage.items(), "RECALL_STAGE_")
GROUPS: Final[Mapping[str, recall_pb2.HitGroup.ValueType]] = {
    "": recall_pb2.HIT_GROUP_UNSPECIFIED,
    "main": recall_pb2.HIT_GROUP_MAIN,
    "code": recall_pb2.HIT_GROUP_CODE,
    "domains": recall_pb2.HIT_GROUP_DOMAINS,
}
"""Groups by their names in a recall."""

_RESULT_SCOPES: Final[Mapping[str, context_service_pb2.SearchScope.ValueType]] = {
    "code": context_service_pb2.SEARCH_SCOPE_CODE,
    "knowledge": context_service_pb2.SEARCH_SCOPE_KNOWLEDGE,
}
_COUNTS: Final = attrgetter(*(field.name for field in recall_pb2.GroupCount.DESCRIPTOR.fields if field.name != "group"))
_FILES: Final = ("key_files", "source_files")
_EVERY_PATH = frozenset(RecallPath)
# A look-up takes a fifth of the time of an enum's call.
_PRESETS = {int(preset): preset for preset in Preset}


def recall_query(request: recall_pb2.RecallRequest, until_s: float | None = None, prefix: str = "") -> RecallQuery:
    """The query of a recall.

    Args:
        request: Checked against the rules.
        until_s: The caller's deadline, on the monotonic clock; None means never.
        prefix: Path of the recall within the request that was sent, ending in a dot.

    Raises: InvalidRequest.
    """
    if not request.query_text.strip():
        raise InvalidRequest(f"{prefix}query_text", "is blank; say what to recall for")
    project = values.project_name(f"{prefix}project", request.project)
    vector = values.vector(f"{prefix}query_vector", request.query_vector) if request.HasField("query_vector") else None
    shape = shape_of(request)
    try:
        usual = _query_of_shape(shape) if len(shape) <= LARGEST_KEPT_BYTES else _query_of_any(request)
    except InvalidRequest as error:
        raise placed(error, prefix) from None
    if usual.window_turns is not None and not request.session_id:
        raise InvalidRequest(f"{prefix}tuning.window_turns", "is of a session; say which by session_id")
    return structs.replace(
        usual,
        project=project,
        text=request.query_text,
        vector=vector,
        session_id=request.session_id and values.identifier(f"{prefix}session_id", request.session_id),
        as_of=values.time(f"{prefix}as_of", request, "as_of") if request.HasField("as_of") else None,
        min_seq=request.min_seq,
        until_s=until_s,
    )


@lru_cache(SHAPES_KEPT)
def _query_of_shape(shape: bytes) -> RecallQuery:
    return _query_of_any(recall_pb2.RecallRequest.FromString(shape))


def _query_of_any(request: recall_pb2.RecallRequest) -> RecallQuery:
    """The query of a request of this shape, with another text and no project. Raises: InvalidRequest."""
    # One list of the set fields: reading each field by name takes as long as all the rest.
    given = {field.name: value for field, value in request.ListFields()}
    tuning: dict[str, Any] = {field.name: value for field, value in given.get("tuning", _NO_TUNING).ListFields()}
    origins = tuning.pop("origins", ())
    if "decay_mode" in tuning:
        tuning["decay_mode"] = DecayMode(tuning["decay_mode"])
    return RecallQuery(
        project="",
        text="-",
        preset=_PRESETS[request.preset or Preset.AGENT],
        filter=_parse_filter("filter", request) if "filter" in given or origins else _NO_FILTER,
        paths=frozenset(map(RecallPath, request.paths)) if "paths" in given else _EVERY_PATH,
        decay_exempt_origins=frozenset(map(Origin, given.get("decay_exempt_origins", ()))),
        mmr_relevance=MmrRelevance(request.mmr_relevance) if request.mmr_relevance else None,
        cross_encoding=CrossEncoding(request.cross_encoder) if request.cross_encoder else None,
        late_interaction=given.get("late_interaction"),
        time_words=given.get("time_words"),
        context_window=request.context_window,
        keyword_mode=KeywordMode(given.get("keyword_mode", KeywordMode.TERMS)),
        intent=_parse_intent("intent", request.intent) if "intent" in given else None,
        intent_mode=IntentMode(request.intent_mode) if request.intent_mode else None,
        allow_stale=request.allow_stale,
        include_superseded=request.include_superseded,
        full=values.wants_full(request.view, unset_means_full=True),
        echo_window_s=values.seconds(given["echo_window"]) if "echo_window" in given else None,
        time_zone=values.time_zone("time_zone", request.time_zone),
        **tuning,
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
        allow_stale=request.allow_stale,
        until_s=until_s,
        as_of=values.time("as_of", request, "as_of"),
        session_id=values.identifier("session_id", request.session_id),
        unseen_first=request.unseen_first,
        time_zone=values.time_zone("time_zone", request.time_zone),
    )


def search_response(searched: Searched) -> context_service_pb2.SearchResponse:
    """The results of a search."""
    return message_of(
        context_service_pb2.SearchResponse,
        searched,
        results=map(_search_result, searched.results),
        receipt=receipt(searched.receipt),
        degraded=degradations(searched.degraded),
    )


def intent(known: Intent) -> recall_pb2.Intent:
    """The user's intent, as a message."""
    return recall_pb2.Intent.FromString(written(encode(intent_values(known)), _INTENT)[0])


def receipt(kept: Receipt) -> recall_pb2.Receipt:
    """The receipt of a recall: the stages that ran, and their times."""
    return recall_pb2.Receipt.FromString(written(encode(receipt_values(kept)), _RECEIPT)[0])


def degradations(degraded: Iterable[Degradation]) -> list[recall_pb2.Degradation]:
    """The degradations, as messages."""
    sent = [written(encode(one), _DEGRADATION)[0] for one in degradation_values(degraded)]
    return [recall_pb2.Degradation.FromString(one) for one in sent]


_INTENT, _RECEIPT, _DEGRADATION = (
    table_of(kind.DESCRIPTOR) for kind in (recall_pb2.Intent, recall_pb2.Receipt, recall_pb2.Degradation)
)


def intent_values(known: Intent) -> tuple[object, ...]:
    """The values of an intent's message, in the contract's order."""
    return known.domains, known.action, known.keywords, known.times and _interval_values(known.times)


def receipt_values(kept: Receipt) -> tuple[object, ...]:
    """The values of a receipt's message, in the contract's order."""
    return (
        kept.preset,
        [(_STAGES.get(each.stage, 0), each.elapsed_s) for each in kept.stages],
        [(GROUPS[group.name], *_COUNTS(group)) for group in kept.groups],
        kept.emb_space,
        kept.as_of,
        kept.vector_weight,
        kept.elapsed_s,
        kept.cached,
        kept.late_interaction_weight,
        kept.times and _interval_values(kept.times),
        kept.cross_encoded,
        kept.project_settings,
        [(each.term, each.words) for each in kept.gloss],
        kept.gloss_version,
        kept.min_similarity,
        kept.min_cosine,
        kept.min_of_best,
    )


def degradation_values(degraded: Iterable[Degradation]) -> list[tuple[object, ...]]:
    """The values of each degradation's message, in the contract's order."""
    return [(_PARTS.get(one.path, 0), _REASONS.get(one.reason, 0), one.message) for one in degraded]


def _parse_intent(field: str, sent: recall_pb2.Intent) -> Intent:
    times = tuple(_parse_interval(f"{field}.times[{place}]", interval) for place, interval in enumerate(sent.times))
    return value_of(Intent, sent, times=times)


def _parse_interval(field: str, sent: recall_pb2.TimeInterval) -> TimeInterval:
    start = values.time(f"{field}.start_time", sent, "start_time")
    end = values.time(f"{field}.end_time", sent, "end_time")
    if start is not None and end is not None and end <= start:
        raise InvalidRequest(f"{field}.end_time", "is not later than start_time")
    return TimeInterval(
        start=-math.inf if start is None else start, end=math.inf if end is None else end, is_vague=sent.vague
    )


def _parse_filter(field: str, request: recall_pb2.RecallRequest) -> Filter:
    where = values.memory_filter(field, request.filter)
    origins = frozenset(map(Origin, request.tuning.origins))
    return structs.replace(where, origins=origins) if origins and not where.origins else where


def _interval_values(times: Iterable[TimeInterval]) -> list[tuple[object, ...]]:
    return [
        (
            each.start if math.isfinite(each.start) else None,
            each.end if math.isfinite(each.end) else None,
            each.phrase,
            each.is_vague,
        )
        for each in times
    ]


def _search_result(result: SearchResult) -> context_service_pb2.SearchResult:
    return context_service_pb2.SearchResult(
        scope=_RESULT_SCOPES[result.type],
        memory_id=result.memory_id,
        title=result.title,
        content=result.content,
        score=result.score,
        seen_before=result.seen_before,
        likely_replaced_by=result.likely_replaced_by,
        **_facts(result.metadata),
    )


def _facts(facts: Mapping[str, object]) -> dict[str, Any]:
    """Return the facts that a search reports besides the text, by field name of a result."""
    told: dict[str, Any] = {"files" if name in _FILES else name: value for name, value in facts.items()}
    told["kind"], told["origin"] = MemoryKind[told["kind"]], Origin[told["origin"]]
    return told
