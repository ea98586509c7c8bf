"""Values become replies: nothing is lost, and what is sent back in arrives as it was."""

from __future__ import annotations

import pytest
from google.protobuf.json_format import MessageToDict
from msgspec.structs import replace

from hummock.core.candidates import FoundBy
from hummock.core.memory import Detail, DomainKnowledge, LearningRecord, MemoryKind, Payload
from hummock.core.recall import RecallQuery, SearchQuery
from hummock.core.render import RenderQuery
from hummock.rpc import admin_service, memory_messages, project_service, recall_messages, render_messages, values
from hummock.rpc.admission import Load
from hummock.v1 import context_service_pb2, memory_pb2, recall_pb2
from tests.rpc import samples

RECALLED = samples.recalled(RecallQuery(project="p", text="q"))


def returned(memory: memory_pb2.Memory) -> memory_pb2.MemoryInput:
    """The memory as a caller sends it back."""
    sent = memory_pb2.MemoryInput(
        id=memory.id,
        kind=memory.kind,
        origin=memory.origin,
        index=memory.index,
        payload=memory.payload,
        session_id=memory.session_id,
        speaker=memory.speaker,
        emotion_label=memory.emotion_label,
        trust=memory.trust,
        supersedes=memory.supersedes,
        create_time=memory.create_time,
        source_hash=memory.source_hash,
    )
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
    sent = returned(memory_messages.memory(stored))
    request = context_service_pb2.LearnRequest(project="p", memories=[sent])
    draft = memory_messages.learn_command(request).lessons[0].draft
    for name in ("id", "kind", "origin", "index", "payload", "session_id", "speaker", "event_time", "emotion_label"):
        assert getattr(draft, name) == getattr(stored, name), name
    for name in ("trust", "supersedes", "create_time", "source_hash"):
        assert getattr(draft, name) == getattr(stored, name), name


def test_the_index_view_has_no_payload() -> None:
    memory = memory_messages.memory(replace(samples.MEMORY, payload=None))
    assert not memory.HasField("payload")
    assert memory.index.title == "还款 repay()"
    assert memory.content_hash == "000102030405060708090a0b0c0d0e0f"


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
    assert list(recall_messages.recall_response(recalled).hits[0].paths) == paths


def test_a_recall_keeps_its_receipt() -> None:
    reply = recall_messages.recall_response(RECALLED)
    assert reply.receipt.preset == recall_pb2.PRESET_CODE
    assert reply.receipt.stages[0].elapsed.ToNanoseconds() == 2_500_000
    assert (reply.receipt.groups[0].searched, reply.receipt.groups[0].returned) == (9, 1)
    assert reply.receipt.as_of.ToSeconds() == 1_700_000_003
    assert (reply.degraded[0].path, reply.degraded[0].reason) == ("vector", "EMBEDDER_FAILED")
    assert list(reply.intent.keywords) == ["先本后息"]
    assert (reply.seq, reply.content_seq) == (7, 5)
    hit = reply.hits[0]
    assert (hit.late_interaction_score, hit.cross_encoder_score) == (0.375, 0.875)
    assert reply.receipt.cross_encoded == 4
    assert (hit.score, hit.cosine, hit.near_twin, list(hit.matched_terms)) == (0.75, 0.625, True, ["还款", "repay"])


def test_a_rendering_without_a_recall_has_no_intent_and_no_receipt() -> None:
    reply = render_messages.render_response("p", samples.rendered(RenderQuery(project="p", memory_ids=("a",))))
    assert not reply.HasField("intent")
    assert not reply.HasField("receipt")
    assert MessageToDict(reply.tools[0].input_schema) == {
        "type": "object",
        "required": ["id"],
        "properties": {"id": {"type": "string"}},
    }


def test_a_search_result_keeps_its_metadata() -> None:
    reply = recall_messages.search_response(samples.searched(SearchQuery(project="p", text="q")))
    assert MessageToDict(reply.results[0].metadata) == {
        "path": "src/Repay.kt",
        "start_line": 3.0,
        "tags": ["code"],
        "domain": None,
    }


def test_what_is_no_json_is_a_bug() -> None:
    with pytest.raises(TypeError, match="object is no JSON value"):
        values.struct({"a": object()})


def test_only_a_single_project_lists_its_kinds() -> None:
    full, short = (project_service.project_message(samples.PROJECT, whole=whole) for whole in (True, False))
    assert [(kind.kind, kind.count) for kind in full.kinds] == [("LEARNING_RECORD", 1), ("NOTE", 2)]
    assert not short.kinds
    assert full.memory_count == short.memory_count == 3


def test_the_status_tells_the_load() -> None:
    reply = admin_service.status_response(samples.status(), Load(running=2, waiting=5))
    assert (reply.running_calls, reply.waiting_calls) == (2, 5)
    assert (reply.model.name, reply.model.dim, reply.storage.quota_bytes) == ("bge-small-zh-v1.5", 4, 2)


@pytest.mark.parametrize("seconds", [-62_135_596_800.0, -0.5, 0.0, 1_700_000_000.25, 253_402_300_799.0])
def test_times_keep_their_microseconds(seconds: float) -> None:
    assert values.timestamp(seconds).ToMicroseconds() == round(seconds * 1e6)
