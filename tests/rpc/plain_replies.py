"""Replies to recalls built as messages, field by field: the readable twin of the bytes that are sent."""

from __future__ import annotations

import math
from collections.abc import Sequence

from google.protobuf.duration_pb2 import Duration

from hummock.core.candidates import FoundBy
from hummock.core.memory import CodeFragment, DomainKnowledge, LearningRecord, Memory, Payload
from hummock.core.recall import Hit, Intent, NothingKnown, Recalled, Receipt, TimeInterval
from hummock.rpc import recall_messages, values
from hummock.rpc.recall_reply import recall_reply
from hummock.rpc.status import to_bytes
from hummock.text.template import told
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
        intent=intent(recalled.intent),
        receipt=receipt(recalled.receipt),
        degraded=recall_messages.degradations(recalled.degraded),
        seq=recalled.seq,
        content_seq=recalled.content_seq,
        nothing_known=_nothing_known(recalled.nothing_known),
    )


def sent(recalled: Recalled, *, with_raw: bool = False) -> recall_pb2.RecallResponse:
    """What a client gets of a fresh answer."""
    reply = to_bytes(recall_reply(samples.fresh(recalled), with_raw=with_raw))
    return recall_pb2.RecallResponse.FromString(reply)


def _nothing_known(known: NothingKnown | None) -> recall_pb2.NothingKnown | None:
    if known is None:
        return None
    return recall_pb2.NothingKnown(
        confidence=known.confidence, nearest_id=known.nearest_id, nearest_title=known.nearest_title, reason=known.reason
    )


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
        likely_replaced_by=hit.likely_replaced_by,
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


def fill_memory(message: memory_pb2.Memory, stored: Memory, *, with_raw: bool = False) -> None:
    """Writes a memory into an empty message."""
    message.id = stored.id
    message.kind = memory_pb2.MemoryKind.ValueType(stored.kind)
    message.origin = memory_pb2.Origin.ValueType(stored.origin)
    if stored.session_id:
        message.session_id = stored.session_id
    if stored.speaker:
        message.speaker = stored.speaker
    if stored.emotion_label:
        message.emotion_label = stored.emotion_label
    if stored.writer:
        message.writer = stored.writer
    message.trust = stored.trust
    message.content_hash = stored.content_hash.hex()
    message.token_count = stored.token_count
    if stored.source_hash:
        message.source_hash = stored.source_hash
    for name, value in stored.metadata:
        message.metadata[name] = value
    if stored.expire_time is not None:
        message.expire_time.CopyFrom(values.timestamp(stored.expire_time))
    message.chunk_count = stored.chunk_count
    if stored.supersedes:
        message.supersedes.extend(stored.supersedes)
    if stored.files:
        message.files.extend(stored.files)
    if stored.time_zone:
        message.time_zone = stored.time_zone
    message.title = stored.index.title
    message.summary = stored.index.summary
    if stored.index.tags:
        message.tags.extend(stored.index.tags)
    message.create_time.CopyFrom(values.timestamp(stored.create_time))
    message.update_time.CopyFrom(values.timestamp(stored.update_time))
    if stored.event_time is not None:
        message.event_time.CopyFrom(values.timestamp(stored.event_time))
    if stored.payload is not None:
        fill_payload(message, stored.payload, with_raw=with_raw)
        message.text = told(stored.payload)


def fill_payload(message: memory_pb2.Memory, payload: Payload, *, with_raw: bool) -> None:
    """Write a payload into a message that has none."""
    message.content = payload.content
    if with_raw and payload.raw:
        message.raw = payload.raw
    match payload.detail:
        case LearningRecord() as stored:
            record = message.learning_record
            record.question = stored.question
            record.answer = stored.answer
            record.source_files.extend(stored.source_files)
        case DomainKnowledge() as stored:
            known = message.domain_knowledge
            known.domain = stored.domain
            known.aliases.extend(stored.aliases)
            known.summary = stored.summary
            known.key_files.extend(stored.key_files)
        case CodeFragment() as stored:
            code = message.code_fragment
            code.path = stored.path
            code.start_line = stored.start_line
            code.end_line = stored.end_line
            code.language = stored.language
            code.symbol = stored.symbol


def intent(known: Intent) -> recall_pb2.Intent:
    """The user's intent, as a message."""
    return recall_pb2.Intent(
        domains=known.domains, action=known.action, keywords=known.keywords, times=map(_interval_message, known.times)
    )


def receipt(kept: Receipt) -> recall_pb2.Receipt:
    """The receipt of a recall: the stages that ran, and their times."""
    message = recall_pb2.Receipt()
    message.preset = recall_pb2.Preset.ValueType(kept.preset)
    for group in kept.groups:
        count = message.groups.add(
            group=recall_messages.GROUPS[group.name],
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
            over_writer_cap=group.over_writer_cap,
            graph_recall=group.graph_recall,
        )
        for origin, size in group.origins:
            count.origins.add(origin=memory_pb2.Origin.ValueType(origin), count=size)
    message.emb_space = kept.emb_space
    message.vector_weight = kept.vector_weight
    message.cached = kept.cached
    message.late_interaction_weight = kept.late_interaction_weight
    message.times.extend(map(_interval_message, kept.times))
    message.cross_encoded = kept.cross_encoded
    message.project_settings.extend(kept.project_settings)
    for each in kept.gloss:
        message.gloss.add(term=each.term, words=each.words)
    message.gloss_version = kept.gloss_version
    if kept.min_similarity is not None:
        message.min_similarity = kept.min_similarity
    if kept.min_cosine is not None:
        message.min_cosine = kept.min_cosine
    if kept.min_of_best is not None:
        message.min_similarity_of_best = kept.min_of_best
    message.as_of.CopyFrom(values.timestamp(kept.as_of))
    message.elapsed.CopyFrom(values.duration(kept.elapsed_s))
    for stage in kept.stages:
        seconds, nanoseconds = divmod(round(stage.elapsed_s * 1e9), 1_000_000_000)
        message.stages.add(
            stage=recall_pb2.RecallStage.Value(f"RECALL_STAGE_{stage.stage.upper()}"),
            elapsed=Duration(seconds=seconds, nanos=nanoseconds),
        )
    return message


def _interval_message(interval: TimeInterval) -> recall_pb2.TimeInterval:
    return recall_pb2.TimeInterval(
        start_time=values.timestamp(interval.start) if math.isfinite(interval.start) else None,
        end_time=values.timestamp(interval.end) if math.isfinite(interval.end) else None,
        phrase=interval.phrase,
        vague=interval.is_vague,
    )
