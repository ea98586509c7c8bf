"""Learn, change and remove, through the socket."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest
from google.protobuf import field_mask_pb2

from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import memory_pb2 as pb
from hummock_client.v1 import memory_service_pb2 as memory
from tests.service.calls import ask, contents, learn
from tests.service.inputs import domain, fragment, note, record
from tests.service.running import Stubs

CREATED, UPDATED = context.LEARN_STATUS_CREATED, context.LEARN_STATUS_UPDATED
UNCHANGED, DUPLICATE = context.LEARN_STATUS_UNCHANGED, context.LEARN_STATUS_DUPLICATE


def get(service: Stubs, project: str, memory_id: str) -> pb.Memory:
    return service.memory.GetMemory(memory.GetMemoryRequest(project=project, id=memory_id)).memory


def test_all_five_kinds_are_learnt_and_read_back_whole(service: Stubs, project: str) -> None:
    """S0-16, S0-17, S0-18, S1-06, S4-09."""
    entry = pb.Memory(
        id="世界.图鉴.物品.潮汐木芯",
        kind=pb.MEMORY_KIND_ENTRY,
        title="潮汐木芯",
        tags=["#item"],
        content="潮汐木的心材，退潮时发光。",
    )
    given = [
        record("还款方式有哪些？", "等额本息、等额本金、先息后本。", "RepaymentType.java"),
        domain("还款", "还款模块处理所有还款相关业务。", aliases=("repayment",), key_files=("RepaymentService.java",)),
        fragment("src/dates.py", "parse_date", "def parse_date(text):\n    return text"),
        note("remember the milk"),
        entry,
    ]
    results = learn(service, project, *given).results
    assert [result.status for result in results] == [CREATED] * 5
    for sent, result in zip(given, results, strict=True):
        kept = get(service, project, result.id)
        assert (kept.kind, kept.content, kept.WhichOneof("detail")) == (
            sent.kind,
            sent.content,
            sent.WhichOneof("detail"),
        )
        assert kept.title
    assert results[4].id == "世界.图鉴.物品.潮汐木芯"
    assert list(get(service, project, results[4].id).tags) == ["item"]


def test_equal_text_of_one_kind_and_origin_is_one_memory(service: Stubs, project: str) -> None:
    """S4-28."""
    first = learn(service, project, note("deploy on Friday")).results[0]
    again = learn(service, project, note(" deploy on Friday\r\n")).results[0]
    assert (again.status, again.duplicate_of) == (DUPLICATE, first.id)
    folded = learn(service, project, note("deploy  on friday")).results[0]
    assert folded.status == CREATED
    other_origin = learn(service, project, note("deploy on friday", origin=pb.ORIGIN_SUMMARY)).results[0]
    assert other_origin.status == CREATED


def test_a_known_id_is_overwritten_and_an_equal_draft_changes_nothing(service: Stubs, project: str) -> None:
    assert learn(service, project, note("one", id="a")).results[0].status == CREATED
    unchanged = learn(service, project, note("one", id="a"))
    assert unchanged.results[0].status == UNCHANGED
    before = ask(service, project, "one").content_seq
    assert learn(service, project, note("two", id="a")).results[0].status == UPDATED
    after = ask(service, project, "two")
    assert contents(after) == ["two"]
    assert after.content_seq > before


def test_content_seq_stays_while_nothing_changes(service: Stubs, project: str) -> None:
    learn(service, project, note("one", id="a"))
    before = ask(service, project, "one")
    learn(service, project, note("one", id="a"))
    after = ask(service, project, "one")
    assert after.content_seq == before.content_seq
    assert after.seq == before.seq + 1


def test_one_request_id_has_one_effect_however_often_it_comes(service: Stubs, project: str) -> None:
    request_id = str(uuid.UUID(int=7))
    with ThreadPoolExecutor(16) as pool:
        replies = list(
            pool.map(lambda _: learn(service, project, note("once", session_id="s"), request_id=request_id), range(50))
        )
    assert len({reply.SerializeToString() for reply in replies}) == 1
    assert ask(service, project, "once").seq == 1


def test_a_request_id_with_another_request_is_an_error(service: Stubs, project: str) -> None:
    request_id = str(uuid.UUID(int=8))
    learn(service, project, note("one"), request_id=request_id)
    with pytest.raises(grpc.RpcError) as error:
        learn(service, project, note("two"), request_id=request_id)
    assert error.value.code() is grpc.StatusCode.ALREADY_EXISTS


def test_many_writers_of_one_text_make_one_memory(service: Stubs, project: str) -> None:
    with ThreadPoolExecutor(16) as pool:
        results = list(pool.map(lambda _: learn(service, project, note("the same")).results[0], range(64)))
    assert len({result.id for result in results}) == 1
    assert [result.status for result in results].count(CREATED) == 1


def test_a_batch_with_one_bad_memory_stores_nothing_and_names_it(service: Stubs, project: str) -> None:
    bad = pb.Memory(kind=pb.MEMORY_KIND_NOTE, content=" ")
    with pytest.raises(grpc.RpcError, match=r"memories\[1\]"):
        learn(service, project, note("good"), bad)
    assert contents(ask(service, project, "good")) == []


def test_an_edit_is_embedded_again_and_keeps_its_age(service: Stubs, project: str) -> None:
    """S4-42."""
    learnt = learn(service, project, note("the meeting is on monday", id="m"))
    before = get(service, project, "m")
    updated = service.memory.UpdateMemory(
        memory.UpdateMemoryRequest(
            project=project,
            memory=pb.Memory(id="m", content="the lighthouse needs paint"),
            update_mask=field_mask_pb2.FieldMask(paths=["content"]),
        )
    )
    assert updated.seq == learnt.seq + 1
    assert updated.memory.create_time == before.create_time
    assert updated.memory.title == "the lighthouse needs paint"
    hits = ask(service, project, "paint for the lighthouse").hits
    assert [hit.memory.id for hit in hits] == ["m"]
    assert "lighthouse" in hits[0].matched_terms


def test_a_removed_memory_is_not_recalled_by_the_next_call(service: Stubs, project: str) -> None:
    """S4-42."""
    learn(service, project, note("secret plan", id="a"), note("public plan", id="b"))
    reply = service.memory.DeleteMemories(memory.DeleteMemoriesRequest(project=project, ids=["a", "nowhere"]))
    assert (reply.deleted_count, list(reply.missing_ids)) == (1, ["nowhere"])
    assert contents(ask(service, project, "plan")) == ["public plan"]
    with pytest.raises(grpc.RpcError) as error:
        get(service, project, "a")
    assert error.value.code() is grpc.StatusCode.NOT_FOUND


def test_the_same_text_can_be_learnt_again_after_it_was_removed(service: Stubs, project: str) -> None:
    learn(service, project, note("again", id="a"))
    service.memory.DeleteMemories(memory.DeleteMemoriesRequest(project=project, ids=["a"]))
    assert learn(service, project, note("again")).results[0].status == CREATED
    assert contents(ask(service, project, "again")) == ["again"]


def test_a_list_pages_through_everything_once_in_order(service: Stubs, project: str) -> None:
    """S1-07."""
    learn(service, project, *(note(f"note number {number}", id=f"n{number:03}") for number in range(25)))
    seen: list[str] = []
    token = ""
    while True:
        page = service.memory.ListMemories(memory.ListMemoriesRequest(project=project, page_size=10, page_token=token))
        seen += [each.id for each in page.memories]
        token = page.next_page_token
        if not token:
            break
    assert seen == [f"n{number:03}" for number in range(25)]


def test_a_read_of_a_write_that_has_not_happened_is_refused(service: Stubs, project: str) -> None:
    seq = learn(service, project, note("one")).seq
    assert contents(ask(service, project, "one", min_seq=seq)) == ["one"]
    with pytest.raises(grpc.RpcError) as error:
        ask(service, project, "one", min_seq=seq + 1)
    assert error.value.code() is grpc.StatusCode.FAILED_PRECONDITION


def test_a_text_shared_by_two_memories_is_known_while_one_of_them_lives(service: Stubs, project: str) -> None:
    learn(service, project, note("shared words", id="a"), note("other words", id="b"))
    assert learn(service, project, note("shared words", id="b")).results[0].status == UPDATED
    service.memory.DeleteMemories(memory.DeleteMemoriesRequest(project=project, ids=["a"]))
    assert learn(service, project, note("shared words")).results[0].duplicate_of == "b"


def test_an_update_that_does_not_fit_the_kind_names_the_field_where_it_stands(service: Stubs, project: str) -> None:
    learn(service, project, note("the harbour is deep", id="n"))
    wrong = pb.Memory(id="n", content="x", learning_record=pb.LearningRecord(question="q", answer="a"))
    request = memory.UpdateMemoryRequest(
        project=project,
        memory=wrong,
        update_mask=field_mask_pb2.FieldMask(paths=["detail"]),
    )
    with pytest.raises(grpc.RpcError, match=r"memory\.detail: a NOTE has content only"):
        service.memory.UpdateMemory(request)


def test_a_page_of_large_memories_is_shorter_than_asked_for(service: Stubs, project: str) -> None:
    """S1-07: whatever they weigh, all of them can be listed."""
    heavy = "x" * 262_144
    for batch in range(5):
        notes = [note(f"heavy {batch} {place}", id=f"{batch}-{place}") for place in range(15)]
        for one in notes:
            one.raw = heavy
        learn(service, project, *notes)
    request = memory.ListMemoriesRequest(project=project, page_size=1000, view=pb.MEMORY_VIEW_RAW)
    listed: list[str] = []
    while True:
        page = service.memory.ListMemories(request)
        assert 0 < len(page.memories) < 16
        assert page.ByteSize() <= 4 << 20
        listed += [one.id for one in page.memories]
        if not page.next_page_token:
            break
        request.page_token = page.next_page_token
    assert listed == [f"{batch}-{place}" for batch in range(5) for place in range(15)]
