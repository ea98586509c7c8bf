"""Requests become values: what is unset, what is normalised, what is refused."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given
from hypothesis import strategies as st

from hummock.core.errors import InvalidRequest
from hummock.core.memory import Changes, DomainKnowledge, Draft, Filter, LearningRecord, MemoryIndex, MemoryKind, Origin
from hummock.core.project import MAX_PROJECT_BYTES
from hummock.core.recall import CrossEncoding, DecayMode, Preset, RecallPath, RecallQuery
from hummock.core.render import Locale, RenderForm, RenderQuery, SearchScope
from hummock.rpc import memory_messages, recall_messages, render_messages
from hummock.rpc import values as parse_values
from hummock.rpc.validation import parse
from hummock_client.v1 import context_service_pb2 as context_pb
from hummock_client.v1 import memory_pb2, recall_pb2
from hummock_client.v1 import memory_service_pb2 as memories_pb
from tests.sure import sure

_SOURCELESS = context_pb.RenderRequest(project="p")


def broken(call: Any, *args: Any) -> InvalidRequest:
    """The error with which the call refuses."""
    with pytest.raises(InvalidRequest) as caught:
        call(*args)
    return caught.value


def note(content: str = "记住", **more: Any) -> memory_pb2.Memory:
    return memory_pb2.Memory(kind=memory_pb2.MEMORY_KIND_NOTE, content=content, **more)


def draft(sent: memory_pb2.Memory) -> Draft:
    return memory_messages.learn_command(context_pb.LearnRequest(project="p", memories=[sent])).lessons[0].draft


@pytest.mark.parametrize(
    ("request_type", "sent", "field"),
    [
        (context_pb.RenderRequest, _SOURCELESS, "source"),
        (context_pb.RenderTurnRequest, context_pb.RenderTurnRequest(render=_SOURCELESS, turn=1), "render.source"),
    ],
)
def test_a_choice_that_is_not_made_is_refused_with_what_may_be_chosen(
    request_type: type[Message], sent: Message, field: str
) -> None:
    error = broken(parse, request_type, sent.SerializeToString())
    assert (error.field, error.rule) == (field, "is not said; set recall or memories")


def test_what_is_unset_is_left_to_the_preset_and_the_project_and_a_note_is_manual_and_fully_believed() -> None:
    query = recall_messages.recall_query(recall_pb2.RecallRequest(project="p", query_text=" 还款 "))
    assert query == RecallQuery(project="p", text=" 还款 ", preset=Preset.AGENT)
    search = recall_messages.search_query(context_pb.SearchRequest(project="p", query_text="q"))
    assert (search.top_k, search.scope) == (None, SearchScope.BOTH)
    sent = draft(note())
    assert (sent.origin, sent.trust, sent.event_time, sent.create_time) == (Origin.MANUAL, 1.0, None, None)
    assert draft(note(trust=0.0)).trust == 0.0


def test_every_field_of_a_recall_arrives() -> None:
    request = recall_pb2.RecallRequest(project="p", query_text="q", preset=recall_pb2.PRESET_CODE, min_seq=4)
    request.tuning.top_k, request.tuning.candidates, request.tuning.min_similarity = 7, 9, 0.0
    request.tuning.decay_mode, request.tuning.half_life_days = recall_pb2.DECAY_MODE_EXPONENTIAL, 3
    request.tuning.relevance_weight, request.tuning.near_twin_bar = 0.0, 0.5
    request.tuning.code_top_k, request.tuning.domain_top_k = 0, 2
    request.filter.kinds.append(memory_pb2.MEMORY_KIND_NOTE)
    request.filter.tags.extend(["#还款", " 还款"])
    request.filter.speakers.append("林")
    request.paths.append(recall_pb2.RECALL_PATH_KEYWORD)
    request.decay_exempt_origins.append(memory_pb2.ORIGIN_MANUAL)
    request.late_interaction, request.cross_encoder = False, recall_pb2.CROSS_ENCODER_ON
    request.as_of.FromMilliseconds(100_500)
    request.view = memory_pb2.MEMORY_VIEW_INDEX
    request.intent.MergeFrom(recall_pb2.Intent(domains=["还款"], action="ADD_FEATURE", keywords=["先本后息"]))
    query = recall_messages.recall_query(request)
    assert (query.preset, query.top_k, query.candidates, query.min_similarity) == (Preset.CODE, 7, 9, 0.0)
    assert query.filter == Filter(kinds=frozenset({MemoryKind.NOTE}), tags=("还款",), speakers=("林",))
    assert query.paths == {RecallPath.KEYWORD}
    assert query.decay_exempt_origins == {Origin.MANUAL}
    assert (query.decay_mode, query.half_life_days) == (DecayMode.EXPONENTIAL, 3.0)
    assert (query.relevance_weight, query.near_twin_bar, query.late_interaction) == (0.0, 0.5, False)
    assert query.cross_encoding is CrossEncoding.ON
    assert (query.as_of, query.min_seq, query.full) == (100.5, 4, False)
    assert query.intent is not None
    assert (query.intent.domains, query.intent.action) == (("还款",), "ADD_FEATURE")
    assert (query.code_top_k, query.domain_top_k) == (0, 2)


@given(st.lists(st.floats(-(2.0**100), 2.0**100, width=32), min_size=1, max_size=64).filter(any))
def test_a_vector_arrives_at_length_one(values: list[float]) -> None:
    sent = memory_pb2.Embedding(values=np.array(values, "<f4").tobytes(), emb_space="e")
    vector = parse_values.vector("v", sent)
    assert vector.values.dtype == np.float32
    assert np.linalg.norm(vector.values.astype(np.float64)) == pytest.approx(1, abs=1e-5)
    assert vector.emb_space == "e"


@pytest.mark.long
@given(st.binary(max_size=64))
def test_any_bytes_are_a_unit_vector_or_a_named_error(data: bytes) -> None:
    sent, values = memory_pb2.Embedding(values=data, emb_space="e"), np.frombuffer(data[: len(data) // 4 * 4], "<f4")
    if len(data) % 4 == 0 and np.isfinite(values).all() and values.any():
        assert np.isfinite(parse_values.vector("v", sent).values).all()
    else:
        assert broken(parse_values.vector, "v", sent).field == "v.values"


def rendered(**fields: Any) -> RenderQuery:
    return render_messages.render_query(context_pb.RenderRequest(project="p", **fields))


def test_a_render_gives_its_recall_its_project_and_one_by_ids_has_none() -> None:
    query = rendered(recall=recall_pb2.RecallRequest(query_text="q", view=memory_pb2.MEMORY_VIEW_INDEX))
    recall = sure(query.recall)
    assert (recall.project, recall.full) == ("p", True)
    assert (query.form, query.budget_tokens, query.locale) == (RenderForm.CONTEXT, None, None)
    query = rendered(memories=context_pb.MemorySelection(ids=["b", "a"]), locale="en")
    assert (query.recall, query.memory_ids, query.locale) == (None, ("b", "a"), Locale.EN)


@pytest.mark.parametrize(
    ("recall", "field"),
    [
        (recall_pb2.RecallRequest(project="other", query_text="q"), "recall.project"),
        (recall_pb2.RecallRequest(), "recall.query_text"),
        (recall_pb2.RecallRequest(query_text=" "), "recall.query_text"),
        (recall_pb2.RecallRequest(query_text="q", tuning=recall_pb2.RecallTuning(top_k=5000)), "recall.tuning.top_k"),
        (recall_pb2.RecallRequest(query_text="q", filter=memory_pb2.MemoryFilter(tags=["#"])), "recall.filter.tags[0]"),
        (recall_pb2.RecallRequest(query_text="q", as_of=Timestamp(seconds=10**15)), "recall.as_of"),
    ],
)
def test_the_recall_of_a_render_is_of_its_project_and_keeps_every_rule(
    recall: recall_pb2.RecallRequest, field: str
) -> None:
    data = context_pb.RenderRequest(project="p", recall=recall).SerializeToString()
    request = parse(context_pb.RenderRequest, data)
    assert broken(render_messages.render_query, request).field == field


def test_tags_lose_their_mark_and_their_repeats_and_keep_their_order_and_one_of_nothing_is_named() -> None:
    sent = note(tags=["#code", " 还款 ", "code", "##c#", "# 还款"])
    assert draft(sent).index == MemoryIndex(tags=("code", "还款", "c#"))
    for tag in ("#", " ", "# #"):
        assert broken(draft, note(tags=["a", tag])).field == "memories[0].tags[1]"


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cf"]), min_size=1))
def test_a_tag_that_was_cleaned_once_is_clean(tag: str) -> None:
    try:
        (clean,) = parse_values.tags("tags", [tag])
    except InvalidRequest:
        assert not tag.strip("# \t\n").strip()
    else:
        assert parse_values.tags("tags", [clean]) == (clean,)


@pytest.mark.parametrize("name", ["id", "session_id", "speaker"])
def test_control_characters_are_refused_in_names_and_kept_in_content(name: str) -> None:
    assert broken(draft, note(**{name: "a\0b\u202ec"})).field == f"memories[0].{name}"
    for text in ("a\0b\u202ec", "e\u0301 ｆｕｌｌ　width\r\n"):
        assert draft(note(content=text)).payload.content == text


@pytest.mark.parametrize(
    ("time", "valid"),
    [
        (Timestamp(seconds=-62_135_596_800), True),
        (Timestamp(seconds=253_402_300_799, nanos=999_999_999), True),
        (Timestamp(seconds=-62_135_596_801), False),
        (Timestamp(seconds=253_402_300_800), False),
        (Timestamp(seconds=0, nanos=1_000_000_000), False),
        (Timestamp(seconds=0, nanos=-1), False),
    ],
)
def test_times_lie_between_the_years_1_and_9999(time: Timestamp, valid: bool) -> None:
    sent = note(event_time=time)
    if valid:
        assert draft(sent).event_time == pytest.approx(time.seconds + time.nanos / 1e9)
    else:
        assert broken(draft, sent).field == "memories[0].event_time"


def test_each_kind_brings_its_own_fields_and_anothers_are_named_by_their_place() -> None:
    said = memory_pb2.LearningRecord(question="先息后本的实现方式？", answer="…")
    record = memory_pb2.Memory(kind=memory_pb2.MEMORY_KIND_LEARNING_RECORD, learning_record=said)
    known = memory_pb2.DomainKnowledge(domain="还款", summary="…", key_files=["Repay.java"])
    domain = memory_pb2.Memory(kind=memory_pb2.MEMORY_KIND_DOMAIN_KNOWLEDGE, domain_knowledge=known)
    assert draft(record).payload.detail == LearningRecord(question="先息后本的实现方式？", answer="…")
    assert draft(domain).payload.detail == DomainKnowledge(domain="还款", summary="…", key_files=("Repay.java",))
    assert broken(draft, note(code_fragment=memory_pb2.CodeFragment(path="a.py"))).field == "memories[0].detail"


def test_a_fingerprint_is_of_the_request_without_its_request_id() -> None:
    first, second = (
        context_pb.LearnRequest(project="p", memories=[note()], request_id=request_id) for request_id in ("a", "b")
    )
    assert (parse_values.fingerprint(first), first.request_id) == (parse_values.fingerprint(second), "a")
    second.memories[0].content = "别的"
    assert parse_values.fingerprint(first) != parse_values.fingerprint(second)
    assert parse_values.fingerprint(context_pb.LearnRequest()) != parse_values.fingerprint(
        memories_pb.DeleteMemoriesRequest()
    )


def changes(sent: memory_pb2.Memory, *paths: str) -> Changes:
    request = memories_pb.UpdateMemoryRequest(project="p", memory=sent, update_mask=FieldMask(paths=paths))
    memory_id, found = memory_messages.memory_changes(request)
    assert memory_id == sent.id
    return found


def named(found: Changes) -> set[str]:
    return {field.name for field in fields(found) if getattr(found, field.name) not in (None, False, "")}


def test_an_update_changes_or_clears_or_checks_the_named_fields_alone() -> None:
    sent = note(id="m", title="t", summary="s", tags=["#a"], speaker="林", trust=0.5)
    assert changes(sent, "title") == Changes(title="t")
    assert changes(sent, "title", "summary", "tags") == Changes(title="t", summary="s", tags=("a",))
    assert changes(sent, "content") == Changes(content="记住")
    sent.code_fragment.path = "a.py"
    assert named(changes(sent, "detail", "speaker")) == {"detail", "detail_set", "speaker"}
    assert changes(sent, "trust", "origin") == Changes(trust=0.5, origin=Origin.MANUAL)
    sent = memory_pb2.Memory(id="m")
    assert changes(sent, "event_time") == Changes(event_time_set=True)
    assert changes(sent, "session_id", "tags", "trust") == Changes(session_id="", tags=(), trust=1.0)
    sent = memory_pb2.Memory(id="m", trust=9, speaker="林", tags=[""])
    assert changes(sent, "speaker") == Changes(speaker="林")


@pytest.mark.parametrize(
    ("sent", "paths", "field"),
    [
        (memory_pb2.Memory(), ["speaker"], "memory.id"),
        (memory_pb2.Memory(id="m"), [], "update_mask"),
        (memory_pb2.Memory(id="m"), ["kind"], "update_mask"),
        (memory_pb2.Memory(id="m"), ["index.title"], "update_mask"),
        (
            memory_pb2.Memory(id="m", learning_record=memory_pb2.LearningRecord()),
            ["detail"],
            "memory.learning_record.question",
        ),
        (memory_pb2.Memory(id="m", trust=2), ["trust"], "memory.trust"),
        (memory_pb2.Memory(id="m" * 257), ["speaker"], "memory.id"),
        (memory_pb2.Memory(id="m", tags=["a", ""]), ["tags"], "memory.tags[1]"),
        (memory_pb2.Memory(id="m", tags=["#"]), ["tags"], "memory.tags[0]"),
    ],
)
def test_an_update_is_checked_in_the_fields_that_it_names(
    sent: memory_pb2.Memory, paths: list[str], field: str
) -> None:
    assert broken(changes, sent, *paths).field == field


def test_an_unknown_path_is_answered_with_those_that_are_known() -> None:
    error = broken(changes, memory_pb2.Memory(id="m"), "kind")
    assert "'kind'" in error.rule
    assert "content, raw, detail" in error.rule


def test_a_name_of_more_bytes_than_a_write_takes_is_refused_wherever_it_is_read() -> None:
    """V4: 200 Chinese characters are within the contract's 256, and 600 bytes."""
    with pytest.raises(InvalidRequest, match="has 600 bytes; it must be 1 to 400") as raised:
        parse_values.project_name("project", "项" * 200)
    assert raised.value.field == "project"
    name = "a" + "项" * ((MAX_PROJECT_BYTES - 1) // 3)
    assert (len(name.encode()), parse_values.project_name("project", name)) == (MAX_PROJECT_BYTES, name)
