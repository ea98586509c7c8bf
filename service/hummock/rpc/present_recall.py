"""Replies to reads: recall, render and search."""

from __future__ import annotations

from collections.abc import Iterable

from hummock.core.candidates import FoundBy
from hummock.core.recall import Degradation, Hit, Intent, Recalled, Receipt
from hummock.core.render import Rendered, RenderedMemory, ToolDefinition
from hummock.core.search import Searched, SearchResult
from hummock.rpc import present_values as values
from hummock.rpc.present_memory import memory
from hummock.v1 import context_service_pb2, memory_pb2, recall_pb2

_PATHS = (
    (FoundBy.VECTOR, recall_pb2.RECALL_PATH_VECTOR),
    (FoundBy.KEYWORD, recall_pb2.RECALL_PATH_KEYWORD),
    # A key file's fragment is there because its domain was found.
    (FoundBy.DOMAIN | FoundBy.KEY_FILE, recall_pb2.RECALL_PATH_DOMAIN),
)


def recall_response(recalled: Recalled) -> recall_pb2.RecallResponse:
    """The answer to a recall."""
    return recall_pb2.RecallResponse(
        hits=map(_hit, recalled.hits),
        code_fragments=map(_hit, recalled.code_fragments),
        domains=map(_hit, recalled.domains),
        intent=_intent(recalled.intent),
        receipt=_receipt(recalled.receipt),
        degraded=_degraded(recalled.degraded),
        seq=recalled.seq,
        content_seq=recalled.content_seq,
    )


def render_response(rendered: Rendered) -> context_service_pb2.RenderResponse:
    """A prompt section."""
    return context_service_pb2.RenderResponse(
        text=rendered.text,
        token_count=rendered.token_count,
        budget_tokens=rendered.budget_tokens,
        over_budget=rendered.over_budget,
        memories=map(_rendered_memory, rendered.memories),
        tools=map(_tool, rendered.tools),
        missing_ids=rendered.missing_ids,
        intent=None if rendered.intent is None else _intent(rendered.intent),
        receipt=None if rendered.receipt is None else _receipt(rendered.receipt),
        degraded=_degraded(rendered.degraded),
        render_elapsed=values.duration(rendered.render_elapsed_s),
        seq=rendered.seq,
    )


def search_response(searched: Searched) -> context_service_pb2.SearchResponse:
    """The results of a search."""
    return context_service_pb2.SearchResponse(
        results=map(_search_result, searched.results),
        text=searched.text,
        receipt=_receipt(searched.receipt),
        degraded=_degraded(searched.degraded),
    )


def _hit(hit: Hit) -> recall_pb2.Hit:
    return recall_pb2.Hit(
        memory=memory(hit.memory),
        score=hit.score,
        similarity=hit.similarity,
        cosine=hit.cosine,
        keyword_score=hit.keyword_score,
        paths=[path for flag, path in _PATHS if hit.found_by & flag],
        matched_terms=hit.matched_terms,
        age_days=hit.age_days,
        decay=hit.decay,
        near_twin=hit.near_twin,
        late_interaction_score=hit.late_interaction_score,
    )


def _intent(intent: Intent) -> recall_pb2.Intent:
    return recall_pb2.Intent(domains=intent.domains, action=intent.action, keywords=intent.keywords)


def _receipt(receipt: Receipt) -> recall_pb2.Receipt:
    return recall_pb2.Receipt(
        preset=recall_pb2.Preset.ValueType(receipt.preset),
        stages=[
            recall_pb2.StageTime(stage=stage.stage, elapsed=values.duration(stage.elapsed_s))
            for stage in receipt.stages
        ],
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
            )
            for group in receipt.groups
        ],
        emb_space=receipt.emb_space,
        as_of=values.timestamp(receipt.as_of),
        vector_weight=receipt.vector_weight,
        elapsed=values.duration(receipt.elapsed_s),
        cached=receipt.cached,
        late_interaction_weight=receipt.late_interaction_weight,
    )


def _degraded(degraded: Iterable[Degradation]) -> list[recall_pb2.Degradation]:
    return [recall_pb2.Degradation(path=one.path, reason=one.reason, message=one.message) for one in degraded]


def _rendered_memory(rendered: RenderedMemory) -> context_service_pb2.RenderedMemory:
    return context_service_pb2.RenderedMemory(
        memory_id=rendered.memory_id,
        kind=memory_pb2.MemoryKind.ValueType(rendered.kind),
        tier=context_service_pb2.Tier.ValueType(rendered.tier),
        token_count=rendered.token_count,
        reason=rendered.reason,
        score=rendered.score,
    )


def _tool(tool: ToolDefinition) -> context_service_pb2.ToolDefinition:
    return context_service_pb2.ToolDefinition(
        name=tool.name, description=tool.description, input_schema=values.struct(tool.input_schema)
    )


def _search_result(result: SearchResult) -> context_service_pb2.SearchResult:
    return context_service_pb2.SearchResult(
        type=result.type,
        memory_id=result.memory_id,
        title=result.title,
        content=result.content,
        score=result.score,
        metadata=values.struct(result.metadata),
    )
