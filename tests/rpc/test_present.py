"""Values become replies: nothing is lost, and what is sent back in arrives as it was."""

from __future__ import annotations

import json
from dataclasses import replace as replace_field

import pytest
from msgspec.structs import replace

from hummock.core.candidates import FoundBy
from hummock.core.learning import MAX_TURN, LearningSettings, TurnDecision, Usage
from hummock.core.memory import Detail, DomainKnowledge, LearningRecord, MemoryKind, Payload
from hummock.core.recall import RecallQuery
from hummock.core.render import RenderQuery, SearchQuery
from hummock.learning.inject import ScopeUsage, decide
from hummock.rpc import (
    admin_service,
    learning_messages,
    memory_messages,
    project_service,
    recall_messages,
    render_messages,
    values,
)
from hummock.rpc.admission import Load
from hummock.rpc.status import to_bytes
from hummock_client.v1 import context_service_pb2, memory_pb2, recall_pb2
from tests.rpc import samples
from tests.rpc.plain_replies import sent

RECALLED = samples.recalled(RecallQuery(project="p", text="q"))


def returned(memory: memory_pb2.Memory) -> memory_pb2.Memory:
    """The memory as a caller sends it back."""
    sent = memory_pb2.Memory(
        id=memory.id,
        kind=memory.kind,
        origin=memory.origin,
        title=memory.title,
        summary=memory.summary,
        tags=memory.tags,
        content=memory.content,
        raw=memory.raw,
        session_id=memory.session_id,
        speaker=memory.speaker,
        emotion_label=memory.emotion_label,
        trust=memory.trust,
        supersedes=memory.supersedes,
        create_time=memory.create_time,
        source_hash=memory.source_hash,
    )
    detail = memory.WhichOneof("detail")
    if detail:
        getattr(sent, detail).CopyFrom(getattr(memory, detail))
    if memory.HasField("event_time"):
        sent.event_time.CopyFrom(memory.event_time)
    return sent


@pytest.mark.parametrize(
    ("kind", "detail"),
    [
        (MemoryKind.CODE_FRAGMENT, samples.MEMORY.payload.detail if samples.MEMORY.payload else None),
        (MemoryKind.LEARNING_RECORD, LearningRecord(question="q?", answer="答", source_files=("a.kt",))),
        (
            MemoryKind.DOMAIN_KNOWLEDGE,
            DomainKnowledge(domain="还款", aliases=("repay",), summary="s", key_files=("b",)),
        ),
        (MemoryKind.NOTE, None),
    ],
)
@pytest.mark.parametrize("event_time", [None, samples.MEMORY.event_time])
def test_a_memory_that_is_sent_back_is_the_same(kind: MemoryKind, detail: Detail, event_time: float | None) -> None:
    stored = replace(
        samples.MEMORY,
        kind=kind,
        event_time=event_time,
        payload=Payload(content="正文", raw="[joy] 正文", detail=detail),
    )
    sent = returned(memory_messages.memory(stored, with_raw=True))
    request = context_service_pb2.LearnRequest(project="p", memories=[sent])
    draft = memory_messages.learn_command(request).lessons[0].draft
    for name in ("id", "kind", "origin", "index", "payload", "session_id", "speaker", "event_time", "emotion_label"):
        assert getattr(draft, name) == getattr(stored, name), name
    for name in ("trust", "supersedes", "create_time", "source_hash"):
        assert getattr(draft, name) == getattr(stored, name), name


def test_the_index_view_has_no_text() -> None:
    memory = memory_messages.memory(replace(samples.MEMORY, payload=None))
    assert not memory.content
    assert not memory.text
    assert (memory.title, memory.content_hash) == ("还款 repay()", "000102030405060708090a0b0c0d0e0f")


@pytest.mark.parametrize(
    ("found_by", "paths"),
    [
        (FoundBy.VECTOR, [1]),
        (FoundBy.KEYWORD | FoundBy.VECTOR, [1, 2]),
        (FoundBy.KEY_FILE, [3]),
        (FoundBy.DOMAIN | FoundBy.KEY_FILE | FoundBy.KEYWORD, [2, 3]),
    ],
)
def test_paths_are_named_once_in_the_order_of_the_enum(found_by: FoundBy, paths: list[int]) -> None:
    recalled = replace(RECALLED, hits=(replace(samples.HIT, found_by=found_by),))
    assert list(sent(recalled).hits[0].paths) == paths


def test_a_recall_keeps_its_receipt() -> None:
    reply = sent(RECALLED)
    assert reply.receipt.preset == recall_pb2.PRESET_CODE
    assert reply.receipt.stages[0].elapsed.ToNanoseconds() == 2_500_000
    assert (reply.receipt.groups[0].searched, reply.receipt.groups[0].returned) == (9, 1)
    assert reply.receipt.as_of.ToSeconds() == 1_700_000_003
    assert (reply.degraded[0].part, reply.degraded[0].reason) == (
        recall_pb2.DEGRADED_PART_VECTOR,
        recall_pb2.DEGRADATION_REASON_EMBEDDER_FAILED,
    )
    assert (list(reply.intent.keywords), reply.seq, reply.content_seq) == (["先本后息"], 7, 5)
    hit = reply.hits[0]
    assert (hit.late_interaction_score, hit.cross_encoder_score, reply.receipt.cross_encoded) == (0.375, 0.875, 4)
    assert (hit.score, hit.cosine, hit.near_twin, list(hit.matched_terms)) == (0.75, 0.625, True, ["还款", "repay"])


def test_a_rendering_without_a_recall_has_no_intent_and_no_receipt() -> None:
    reply = render_messages.render_response("p", samples.rendered(RenderQuery(project="p", memory_ids=("a",))))
    assert not reply.HasField("intent")
    assert not reply.HasField("receipt")
    assert json.loads(reply.tools[0].input_schema_json) == {
        "type": "object",
        "required": ["id"],
        "properties": {"id": {"type": "string"}},
    }


def test_a_turns_rows_are_those_of_its_decision() -> None:
    rows = [
        decided
        for usage in (Usage(), Usage(frequency=3, last_sent_turn=0), Usage(frequency=300, last_sent_turn=MAX_TURN))
        for decided in decide(ScopeUsage.of({"图鉴": usage, "b": usage}), ("图鉴",), 5, LearningSettings())
    ]
    query = RenderQuery(project="p", memory_ids=("a",))
    decision = TurnDecision(enabled=True, injections=tuple(rows), dropped_count=2)
    rendered = replace_field(samples.rendered(query), decision=decision)
    sent = to_bytes(render_messages.turn_response("p", rendered))
    reply = context_service_pb2.RenderTurnResponse.FromString(sent)
    assert list(reply.decision.injections) == [learning_messages.injection(row) for row in rows]
    assert (reply.decision.enabled, reply.decision.dropped_count) == (True, 2)
    assert reply.rendering == render_messages.render_response("p", rendered)
    without = to_bytes(render_messages.turn_response("p", samples.rendered(query)))
    assert not context_service_pb2.RenderTurnResponse.FromString(without).HasField("decision")


def test_a_search_result_keeps_its_facts() -> None:
    (result,) = recall_messages.search_response(samples.searched(SearchQuery(project="p", text="q"))).results
    assert (result.scope, result.kind, result.origin) == (
        context_service_pb2.SEARCH_SCOPE_CODE,
        memory_pb2.MEMORY_KIND_CODE_FRAGMENT,
        memory_pb2.ORIGIN_INDEXER,
    )
    assert (result.path, result.start_line, list(result.tags), list(result.files)) == ("src/Repay.kt", 3, ["code"], [])


@pytest.mark.parametrize(
    ("detail", "text"),
    [
        (LearningRecord(question="q?", answer="答"), "q?\n答\n正文"),
        (DomainKnowledge(domain="还款", summary="s"), "还款\ns\n正文"),
        (None, "正文"),
    ],
)
def test_the_text_is_all_that_a_memory_says(detail: Detail, text: str) -> None:
    kind = {LearningRecord: MemoryKind.LEARNING_RECORD, DomainKnowledge: MemoryKind.DOMAIN_KNOWLEDGE}
    stored = replace(
        samples.MEMORY,
        kind=kind.get(type(detail), MemoryKind.NOTE),  # type: ignore[arg-type] # None has no kind of its own
        payload=Payload(content="正文", raw="[joy] 正文", detail=detail),
    )
    message = memory_messages.memory(stored)
    assert (message.text, message.raw, memory_messages.memory(stored, with_raw=True).raw) == (text, "", "[joy] 正文")


def test_only_a_single_project_lists_its_kinds() -> None:
    full, short = (project_service.project_message(samples.PROJECT, whole=whole) for whole in (True, False))
    assert [(kind.kind, kind.count) for kind in full.kinds] == [
        (memory_pb2.MEMORY_KIND_LEARNING_RECORD, 1),
        (memory_pb2.MEMORY_KIND_NOTE, 2),
    ]
    assert not short.kinds
    assert full.memory_count == short.memory_count == 3


def test_the_status_tells_the_load() -> None:
    reply = admin_service.status_response(samples.status(), Load(running=2, waiting=5))
    assert (reply.running_calls, reply.waiting_calls) == (2, 5)
    assert (reply.model.name, reply.model.dim, reply.storage.quota_bytes) == ("bge-small-zh-v1.5", 4, 2)


@pytest.mark.parametrize("seconds", [-62_135_596_800.0, -0.5, 0.0, 1_700_000_000.25, 253_402_300_799.0])
def test_times_keep_their_microseconds(seconds: float) -> None:
    assert values.timestamp(seconds).ToMicroseconds() == round(seconds * 1e6)
