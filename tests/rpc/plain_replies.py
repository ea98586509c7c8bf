"""Replies to recalls built as messages, field by field: the readable twin of the bytes that are sent."""

from __future__ import annotations

from collections.abc import Sequence

from hummock.core.candidates import FoundBy
from hummock.core.recall import Hit, Recalled
from hummock.rpc import recall_messages
from hummock.rpc.memory_messages import fill_memory
from hummock.rpc.recall_reply import recall_reply
from hummock.rpc.status import to_bytes
from hummock_client.v1 import memory_pb2, recall_pb2
from tests.rpc import samples

PATHS = {
    FoundBy.VECTOR: recall_pb2.RECALL_PATH_VECTOR,
    FoundBy.KEYWORD: recall_pb2.RECALL_PATH_KEYWORD,
    FoundBy.DOMAIN: recall_pb2.RECALL_PATH_DOMAIN,
    FoundBy.KEY_FILE: recall_pb2.RECALL_PATH_DOMAIN,
}
"""The contract's paths; other ways of being found are not told."""


def recall_response(recalled: Recalled, *, with_raw: bool = False) -> recall_pb2.RecallResponse:
    """The answer as a message, of any size."""
    return recall_pb2.RecallResponse(
        hits=_hits(recalled.hits, with_raw=with_raw),
        code_fragments=_hits(recalled.code_fragments, with_raw=with_raw),
        domains=_hits(recalled.domains, with_raw=with_raw),
        intent=recall_messages.intent(recalled.intent),
        receipt=recall_messages.receipt(recalled.receipt),
        degraded=recall_messages.degradations(recalled.degraded),
        seq=recalled.seq,
        content_seq=recalled.content_seq,
    )


def sent(recalled: Recalled, *, with_raw: bool = False) -> recall_pb2.RecallResponse:
    """What a client gets of a fresh answer."""
    reply = to_bytes(recall_reply(samples.fresh(recalled), with_raw=with_raw))
    return recall_pb2.RecallResponse.FromString(reply)


def _hits(hits: Sequence[Hit], *, with_raw: bool) -> list[recall_pb2.Hit]:
    return [_hit(hit, with_raw=with_raw) for hit in hits]


def _hit(hit: Hit, *, with_raw: bool) -> recall_pb2.Hit:
    message = recall_pb2.Hit(
        score=hit.score,
        similarity=hit.similarity,
        cosine=hit.cosine,
        keyword_score=hit.keyword_score,
        late_interaction_score=hit.late_interaction_score,
        cross_encoder_score=hit.cross_encoder_score,
        age_days=hit.age_days,
        decay=hit.decay,
        near_twin=hit.near_twin,
        over_writer_cap=hit.over_writer_cap,
        time_match=hit.time_match,
        verdict=hit.verdict,
        helpful_count=hit.helpful_count,
        wrong_count=hit.wrong_count,
        matched_terms=hit.matched_terms,
        corrections=[recall_pb2.Correction(asked=one.asked, meant=one.meant) for one in hit.corrections],
        paths=sorted({path for bit, path in PATHS.items() if hit.found_by & bit}),
        memory=memory_pb2.Memory(superseded_by=hit.superseded_by),
    )
    fill_memory(message.memory, hit.memory, with_raw=with_raw)
    for beside, messages in ((hit.before, message.before), (hit.after, message.after)):
        for memory in beside:
            fill_memory(messages.add(), memory, with_raw=with_raw)
    return message
