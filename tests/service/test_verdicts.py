"""Verdicts of people on memories, from outside (S1-17): they are logged, and move memories in recalls."""

from __future__ import annotations

import uuid
from typing import Any

import grpc
import pytest

from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import explain_pb2
from hummock_client.v1 import learning_service_pb2 as learning
from hummock_client.v1 import memory_pb2 as pb
from hummock_client.v1 import recall_pb2 as recall
from tests.rpc.edge import Refusal
from tests.service.calls import ask, edit, explain, failure, learn
from tests.service.inputs import note
from tests.service.running import Stubs

HELPFUL, NOT_HELPFUL, WRONG = context.JUDGEMENT_HELPFUL, context.JUDGEMENT_NOT_HELPFUL, context.JUDGEMENT_WRONG
QUERY = "when does the ferry to the island leave"
FERRY = {
    "early": "the ferry to the island does leave at six in the morning",
    "late": "the ferry to the island does leave at eight in the evening",
}


def judge(service: Stubs, project: str, judgement: context.Judgement.ValueType, *ids: str, **fields: Any) -> None:
    give(service, project, dict.fromkeys(ids, judgement), **fields)


def hits(service: Stubs, project: str, **fields: Any) -> dict[str, recall.Hit]:
    return {hit.memory.id: hit for hit in ask(service, project, QUERY, **fields).hits}


@pytest.fixture
def island(service: Stubs, project: str) -> str:
    learn(service, project, *(note(text, id=name) for name, text in FERRY.items()))
    learn(service, project, note("the bakery bakes rye bread", id="bread"))
    return project


def test_voices_that_call_the_first_wrong_put_it_behind_the_second(service: Stubs, island: str) -> None:
    """S1-17, 1.1-1: no answer of before comes from the cache, and the recall itself writes nothing."""
    first, second = list(hits(service, island))[:2]
    before = ask(service, island, QUERY).content_seq
    for session in "abcdef":
        judge(service, island, WRONG, first, session_id=session)
    after = ask(service, island, QUERY)
    assert [hit.memory.id for hit in after.hits][:2] == [second, first]
    assert after.content_seq == before + 6
    assert ask(service, island, QUERY).content_seq == after.content_seq
    wrong = hits(service, island)[first]
    assert (wrong.helpful_count, wrong.wrong_count) == (0, 6)
    assert wrong.verdict == pytest.approx(1 - 0.4 * 6 / 8)
    assert (after.hits[0].verdict, after.hits[0].wrong_count) == (1, 0)


def test_one_verdict_moves_little_and_wrong_moves_more_also_when_replayed(service: Stubs, island: str) -> None:
    """S3-28."""
    before = hits(service, island)
    judge(service, island, WRONG, "early", session_id="a")
    judge(service, island, HELPFUL, "late", session_id="a")
    after = hits(service, island)
    assert after["early"].verdict == pytest.approx(1 - 0.4 / 3)
    assert after["late"].verdict == pytest.approx(1.02)
    assert after["early"].score == pytest.approx((1 - 0.4 / 3) * before["early"].score, abs=1e-5)
    judge(service, island, HELPFUL, "early", session_id="b")
    replayed = service.learning.ReplayLearning(project=island)
    assert replayed.digest == replayed.replayed_digest


def test_a_voice_has_one_verdict_on_a_memory_its_last(service: Stubs, island: str) -> None:
    """However often a session, or without one who asks the same, clicks."""
    for _ in range(5):
        judge(service, island, WRONG, "early", session_id="a", query_text=str(uuid.uuid4()))
        judge(service, island, WRONG, "early", query_text="When does it leave? ")
        judge(service, island, WRONG, "early", query_text="when does it  LEAVE?")
    assert hits(service, island)["early"].wrong_count == 2
    judge(service, island, HELPFUL, "early", session_id="a")
    hit = hits(service, island)["early"]
    assert (hit.helpful_count, hit.wrong_count) == (1, 1)
    seq = ask(service, island, QUERY).content_seq
    judge(service, island, HELPFUL, "early", session_id="a")
    assert ask(service, island, QUERY).content_seq == seq


def test_what_has_nothing_to_do_with_the_query_is_not_wrong(service: Stubs, island: str) -> None:
    """It takes back what the voice had said, and ranks nothing."""
    judge(service, island, NOT_HELPFUL, "early", session_id="a")
    assert hits(service, island)["early"].verdict == 1
    judge(service, island, WRONG, "early", session_id="a")
    judge(service, island, NOT_HELPFUL, "early", session_id="a")
    assert hits(service, island)["early"].verdict == 1


@pytest.mark.long
def test_no_count_of_verdicts_removes_a_memory_or_brings_an_unrelated_one(service: Stubs, island: str) -> None:
    before = set(hits(service, island, min_similarity=0.3))
    for voice in range(40):
        judge(service, island, WRONG, "early", "late", session_id=f"w{voice}")
        judge(service, island, HELPFUL, "bread", session_id=f"h{voice}")
    found = hits(service, island, min_similarity=0.3)
    assert set(found) == before
    assert "bread" not in found
    assert found["early"].wrong_count == 32
    assert found["early"].verdict == pytest.approx(1 - 0.4 * 32 / 34)
    bread = next(hit for hit in ask(service, island, "who bakes rye bread").hits if hit.memory.id == "bread")
    assert bread.helpful_count == 32
    assert bread.verdict <= 1.1
    assert bread.score <= 1


def test_a_corrected_text_and_a_memory_that_comes_again_begin_anew(service: Stubs, island: str) -> None:
    judge(service, island, WRONG, "early", session_id="a")
    edit(service, island, pb.Memory(id="early", title="the early ferry"), "title")
    assert hits(service, island)["early"].wrong_count == 1
    edit(service, island, pb.Memory(id="early", content="the ferry to the island does leave at seven"), "content")
    assert hits(service, island)["early"].wrong_count == 0
    edit(service, island, pb.Memory(id="early", content=FERRY["early"]), "content")
    assert hits(service, island)["early"].wrong_count == 1
    judge(service, island, WRONG, "early", session_id="a")
    service.memory.DeleteMemories(project=island, ids=["early"])
    learn(service, island, note(FERRY["early"], id="early"))
    assert hits(service, island)["early"].wrong_count == 0


def test_explain_says_how_many_called_it_wrong_and_what_takes_it_back(service: Stubs, island: str) -> None:
    for session in "abc":
        judge(service, island, WRONG, "early", session_id=session)
    judge(service, island, HELPFUL, "early", "late", session_id="d")
    said = explain(service, island, QUERY, "early")
    assert (said.numbers.helpful_count, said.numbers.wrong_count) == (1, 3)
    assert said.numbers.verdict == pytest.approx(1 + 0.1 / 8 - 0.4 * 3 / 6)
    assert "3 of 4 verdicts said that it is wrong: × .81." in said.sentence
    assert "once that is corrected" in said.sentence
    assert "1 of 1 verdicts said that it was helpful: × 1.02." in explain(service, island, QUERY, "late").sentence
    assert "verdicts" not in explain(service, island, "rye bread", "bread").sentence
    assert "4 条评价中有 3 条认为它有误：× .81" in explain(service, island, "island 渡轮", "early").sentence
    lost = explain(service, island, QUERY, "early", top_k=1)
    assert lost.outcome == explain_pb2.EXPLAIN_OUTCOME_LOST
    assert "3 of 4 verdicts" in lost.sentence
    assert [change.field for change in lost.changes] == ["tuning.top_k"]


Verdicts = dict[str, context.Judgement.ValueType]


def give(service: Stubs, project: str, verdicts: Verdicts, **fields: Any) -> context.FeedbackResponse:
    said = [context.FeedbackVerdict(memory_id=name, judgement=judgement) for name, judgement in verdicts.items()]
    return service.context.Feedback(project=project, verdicts=said, **fields)


def refused(service: Stubs, project: str, verdicts: Verdicts, **fields: Any) -> Refusal:
    return failure(give, service, project, verdicts, **fields)


def counts(service: Stubs, project: str) -> tuple[int, int, int]:
    said = service.project.GetProject(project=project).project.feedback
    return said.helpful, said.not_helpful, said.wrong


def given(service: Stubs, project: str) -> list[learning.FeedbackGiven]:
    events = service.learning.ListLearningEvents(project=project).events
    return [event.feedback_given for event in events if event.HasField("feedback_given")]


@pytest.fixture
def harbour(service: Stubs, project: str) -> str:
    learn(service, project, *(note(f"the tide at harbour {name} turns", id=name) for name in "abc"))
    return project


def test_feedback_is_logged_as_it_was_said_and_counted(service: Stubs, harbour: str) -> None:
    verdicts = {"a": HELPFUL, "b": NOT_HELPFUL, "c": WRONG}
    kept = give(service, harbour, verdicts, query_text="潮汐", note="b 说的是别的港口", session_id="s")
    assert (kept.recorded_count, list(kept.unknown_ids)) == (3, [])
    give(service, harbour, {"a": HELPFUL})
    assert counts(service, harbour) == (2, 1, 1)
    first, second = given(service, harbour)
    assert (first.query_text, first.note, first.session_id) == ("潮汐", "b 说的是别的港口", "s")
    assert (list(first.useful_ids), list(first.useless_ids), list(first.wrong_ids)) == (["a"], ["b"], ["c"])
    assert list(second.useful_ids) == ["a"]


def test_ids_that_the_project_does_not_have_are_listed_and_not_kept(service: Stubs, harbour: str) -> None:
    """S1-17, S0-06: another project's memory is as unknown as one that never was."""
    learn(service, f"{harbour}-other", note("elsewhere", id="foreign"))
    kept = give(service, harbour, {"a": HELPFUL, "foreign": WRONG, "never": WRONG})
    assert (kept.recorded_count, list(kept.unknown_ids)) == (1, ["foreign", "never"])
    assert counts(service, harbour) == (1, 0, 0)
    assert give(service, harbour, {"never": WRONG}).recorded_count == 0
    assert len(given(service, harbour)) == 1


def test_a_repeated_request_counts_once_and_a_memory_has_one_verdict(service: Stubs, harbour: str) -> None:
    request_id = str(uuid.uuid4())
    first = give(service, harbour, {"a": HELPFUL, "never": WRONG}, request_id=request_id)
    assert give(service, harbour, {"a": HELPFUL, "never": WRONG}, request_id=request_id) == first
    assert counts(service, harbour) == (1, 0, 0)
    assert refused(service, harbour, {"a": WRONG}, request_id=request_id).reason == "REQUEST_ID_REUSED"
    twice = [context.FeedbackVerdict(memory_id="a", judgement=judgement) for judgement in (HELPFUL, WRONG)]
    refusal = failure(service.context.Feedback, project=harbour, verdicts=twice)
    assert set(refusal.violations) == {"verdicts[1].memory_id"}


def test_a_note_alone_is_kept(service: Stubs, harbour: str) -> None:
    give(service, harbour, {}, note="nothing was found")
    assert [one.note for one in given(service, harbour)] == ["nothing was found"]


@pytest.mark.parametrize(
    ("verdicts", "fields", "named"),
    [
        ({}, {}, "verdicts"),
        ({}, {"note": " \n"}, "verdicts"),
        ({"": HELPFUL}, {}, "verdicts[0].memory_id"),
        ({"a": context.JUDGEMENT_UNSPECIFIED}, {}, "verdicts[0].judgement"),
        ({"a": 77}, {}, "verdicts[0].judgement"),
        ({"a\x00b": HELPFUL}, {}, "verdicts[0].memory_id"),
        ({"a": HELPFUL}, {"request_id": "no uuid"}, "request_id"),
        ({"a": HELPFUL}, {"note": "n" * 4097}, "note"),
    ],
)
def test_bad_feedback_is_refused_by_the_fields_name(
    service: Stubs, harbour: str, verdicts: dict[str, Any], fields: dict[str, Any], named: str
) -> None:
    refusal = refused(service, harbour, verdicts, **fields)
    assert (refusal.code, set(refusal.violations)) == (grpc.StatusCode.INVALID_ARGUMENT, {named})


def test_feedback_on_an_unknown_project_is_not_found_and_makes_none(service: Stubs) -> None:
    assert refused(service, "nobody's", {"a": HELPFUL}).code is grpc.StatusCode.NOT_FOUND
    with pytest.raises(grpc.RpcError):
        counts(service, "nobody's")
