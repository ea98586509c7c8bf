"""Learn, change, replace and remove, through the socket."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest

from hummock_client.streaming import import_messages
from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import explain_pb2
from hummock_client.v1 import memory_pb2 as pb
from hummock_client.v1 import recall_pb2 as recall
from tests.memories.test_identity import APART
from tests.service.calls import ask, await_vectors, chat, contents, edit, failure, learn, pages
from tests.service.inputs import domain, fragment, note, record
from tests.service.running import Stubs

CREATED, UPDATED = context.LEARN_STATUS_CREATED, context.LEARN_STATUS_UPDATED
UNCHANGED, DUPLICATE = context.LEARN_STATUS_UNCHANGED, context.LEARN_STATUS_DUPLICATE


def get(service: Stubs, project: str, memory_id: str) -> pb.Memory:
    return service.memory.GetMemory(project=project, id=memory_id).memory


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
    before = ask(service, project, "one")
    assert learn(service, project, note("one", id="a")).results[0].status == UNCHANGED
    same = ask(service, project, "one")
    assert (same.content_seq, same.seq) == (before.content_seq, before.seq + 1)
    assert learn(service, project, note("two", id="a")).results[0].status == UPDATED
    after = ask(service, project, "two")
    assert contents(after) == ["two"]
    assert after.content_seq > before.content_seq


@pytest.mark.long
@pytest.mark.timed
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
    assert failure(learn, service, project, note("two"), request_id=request_id).code is grpc.StatusCode.ALREADY_EXISTS


@pytest.mark.long
@pytest.mark.timed
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
    updated = edit(service, project, pb.Memory(id="m", content="the lighthouse needs paint"), "content")
    assert (updated.seq, updated.memory.create_time) == (learnt.seq + 1, before.create_time)
    assert updated.memory.title == "the lighthouse needs paint"
    hits = ask(service, project, "paint for the lighthouse").hits
    assert [hit.memory.id for hit in hits] == ["m"]
    assert "lighthouse" in hits[0].matched_terms


def test_a_removed_memory_is_recalled_no_more_and_can_be_learnt_again(service: Stubs, project: str) -> None:
    """S4-42."""
    learn(service, project, note("secret plan", id="a"), note("public plan", id="b"))
    reply = service.memory.DeleteMemories(project=project, ids=["a", "nowhere"])
    assert (reply.deleted_count, list(reply.missing_ids)) == (1, ["nowhere"])
    assert contents(ask(service, project, "plan")) == ["public plan"]
    assert failure(get, service, project, "a").code is grpc.StatusCode.NOT_FOUND
    assert learn(service, project, note("secret plan")).results[0].status == CREATED
    assert contents(ask(service, project, "secret"))[0] == "secret plan"


def test_a_list_pages_through_everything_once_in_order(service: Stubs, project: str) -> None:
    """S1-07."""
    learn(service, project, *(note(f"note number {number}", id=f"n{number:03}") for number in range(25)))
    found = pages(service.memory.ListMemories, project=project, page_size=10)
    assert [each.id for page in found for each in page.memories] == [f"n{number:03}" for number in range(25)]


def test_a_text_shared_by_two_memories_is_known_while_one_of_them_lives(service: Stubs, project: str) -> None:
    learn(service, project, note("shared words", id="a"), note("other words", id="b"))
    assert learn(service, project, note("shared words", id="b")).results[0].status == UPDATED
    service.memory.DeleteMemories(project=project, ids=["a"])
    assert learn(service, project, note("shared words")).results[0].duplicate_of == "b"


def test_an_update_that_does_not_fit_the_kind_names_the_field_where_it_stands(service: Stubs, project: str) -> None:
    learn(service, project, note("the harbour is deep", id="n"))
    wrong = pb.Memory(id="n", content="x", learning_record=pb.LearningRecord(question="q", answer="a"))
    with pytest.raises(grpc.RpcError, match=r"memory\.detail: a NOTE has content only"):
        edit(service, project, wrong, "detail")


@pytest.mark.long
def test_a_page_of_large_memories_is_shorter_than_asked_for(service: Stubs, project: str) -> None:
    """S1-07: whatever they weigh, all of them can be listed."""
    heavy = "x" * 262_144
    for batch in range(5):
        notes = [note(f"heavy {batch} {place}", id=f"{batch}-{place}") for place in range(15)]
        for one in notes:
            one.raw = heavy
        learn(service, project, *notes)
    found = pages(service.memory.ListMemories, project=project, page_size=1000, view=pb.MEMORY_VIEW_RAW)
    for page in found:
        assert 0 < len(page.memories) < 16
        assert page.ByteSize() <= 4 << 20
    listed = [one.id for page in found for one in page.memories]
    assert listed == [f"{batch}-{place}" for batch in range(5) for place in range(15)]


@pytest.mark.long
def test_a_memory_is_recalled_by_the_very_next_call(service: Stubs, project: str) -> None:
    """S4-50 (T4), 1.1-1."""
    assert chat(service, project, "book the train") == []
    for turn in range(20):
        text = f"note {turn}: the train to platform {turn} leaves at {turn} o'clock"
        learn(service, project, note(text))
        assert text in contents(ask(service, project, text, top_k=50))


def test_texts_that_are_written_otherwise_are_all_stored_and_read_by_their_ids(service: Stubs, project: str) -> None:
    texts = list(dict.fromkeys(text for pair in APART for text in pair))
    results = learn(service, project, *map(note, texts)).results
    assert {result.status for result in results} == {CREATED}
    listed = service.memory.ListMemories(project=project, page_size=100, view=pb.MEMORY_VIEW_FULL)
    assert [each.content for each in listed.memories] == texts


QUERY = "how deep is the harbour"
OLD = "the harbour is five metres deep"
NEW = "the harbour is nine metres deep since it was dredged"


def recalled(service: Stubs, project: str) -> list[str]:
    return [hit.memory.id for hit in ask(service, project, QUERY).hits]


def test_a_replaced_memory_is_not_recalled_and_can_be_read(service: Stubs, project: str) -> None:
    """1.1-17, 1.1-1: a recall of before is not answered from the cache."""
    learn(service, project, note(OLD, id="old"))
    assert recalled(service, project) == ["old"]
    learn(service, project, note(NEW, id="new", supersedes=["old"]))
    assert recalled(service, project) == ["new"]
    got = service.memory.GetMemory(project=project, id="old").memory
    assert (got.content, list(got.superseded_by)) == (OLD, ["new"])
    listed = service.memory.ListMemories(project=project).memories
    assert {one.id: list(one.superseded_by) for one in listed} == {"old": ["new"], "new": []}
    batch = service.memory.BatchGetMemories(project=project, ids=["new", "old"]).memories
    assert [list(one.superseded_by) for one in batch] == [[], ["new"]]


def test_removing_what_replaced_it_brings_it_back(service: Stubs, project: str) -> None:
    """1.1-17."""
    learn(service, project, note(NEW, id="new", supersedes=["old"]), note(OLD, id="old"))
    assert recalled(service, project) == ["new"]
    service.memory.DeleteMemories(project=project, ids=["new"])
    assert recalled(service, project) == ["old"]


def test_an_update_that_names_it_replaces_it(service: Stubs, project: str) -> None:
    """1.1-17."""
    learn(service, project, note(NEW, id="new"), note(OLD, id="old"))
    assert set(recalled(service, project)) == {"new", "old"}
    edit(service, project, pb.Memory(id="new", supersedes=["old"]), "supersedes")
    assert recalled(service, project) == ["new"]


def test_who_asks_is_told_by_what_a_memory_is_replaced_and_no_prompt_holds_it(service: Stubs, project: str) -> None:
    """1.1-17, 1.1-1. An answer without them is none to who asks for them."""
    learn(service, project, note(OLD, id="old"), note(NEW, id="new", supersedes=["old"]))
    asked = recall.RecallRequest(project=project, query_text=QUERY)
    told = service.context.Explain(recall=asked, memory_id="old")
    assert (told.outcome, told.stage) == (explain_pb2.EXPLAIN_OUTCOME_LOST, explain_pb2.LOSS_STAGE_SUPERSEDED)
    assert told.other_id == "new"
    assert told.sentence.startswith("It is superseded by new.")
    assert [(change.field, change.value) for change in told.changes] == [("include_superseded", "true")]
    asked.include_superseded = True
    told = service.context.Explain(recall=asked, memory_id="old")
    assert told.outcome == explain_pb2.EXPLAIN_OUTCOME_RECALLED
    assert recalled(service, project) == ["new"]
    hits = service.context.Recall(project=project, query_text=QUERY, include_superseded=True).hits
    assert {hit.memory.id: list(hit.memory.superseded_by) for hit in hits} == {"old": ["new"], "new": []}
    assert recalled(service, project) == ["new"]
    asked = recall.RecallRequest(query_text=QUERY)
    rendered = service.context.Render(project=project, recall=asked)
    assert (NEW in rendered.text, OLD in rendered.text) == (True, False)
    asked.include_superseded = True
    error = failure(service.context.Render, project=project, recall=asked)
    assert (error.reason, error.metadata["field"]) == ("INVALID_REQUEST", "recall.include_superseded")


@pytest.mark.timed
def test_what_moved_to_another_project_replaces_there(service: Stubs, project: str) -> None:
    """S1-06, S1-07."""
    learn(service, project, note(OLD, id="old"), note(NEW, id="new", supersedes=["old"]))
    records = [
        record for message in service.project.ExportProject(project=project, timeout=60) for record in message.records
    ]
    moved = f"{project}-moved"
    list(service.project.ImportProject(import_messages(moved, enumerate(records, start=1)), timeout=60))
    await_vectors(service, moved)
    assert recalled(service, moved) == ["new"]
