"""Verdicts of people move memories in recalls, through the socket."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest

from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import explain_pb2
from hummock_client.v1 import learning_service_pb2 as learning
from hummock_client.v1 import memory_service_pb2 as memories
from hummock_client.v1 import recall_pb2 as recall
from tests.service.calls import ask, learn, recall_request
from tests.service.inputs import note
from tests.service.running import Stubs, in_thread, settings

HELPFUL, NOT_HELPFUL, WRONG = context.JUDGEMENT_HELPFUL, context.JUDGEMENT_NOT_HELPFUL, context.JUDGEMENT_WRONG
QUERY = "when does the ferry to the island leave"
FERRY = {
    "early": "the ferry to the island does leave at six in the morning",
    "late": "the ferry to the island does leave at eight in the evening",
}


def say(service: Stubs, project: str, judgement: context.Judgement.ValueType, *ids: str, **fields: Any) -> None:
    verdicts = [context.FeedbackVerdict(memory_id=one, judgement=judgement) for one in ids]
    service.context.Feedback(context.FeedbackRequest(project=project, verdicts=verdicts, **fields))


def hits(service: Stubs, project: str, **fields: Any) -> dict[str, recall.Hit]:
    return {hit.memory.id: hit for hit in ask(service, project, QUERY, **fields).hits}


def explained(service: Stubs, project: str, memory_id: str, **fields: Any) -> explain_pb2.ExplainResponse:
    asked = recall_request(project, fields.pop("query_text", QUERY), **fields)
    return service.context.Explain(explain_pb2.ExplainRequest(recall=asked, memory_id=memory_id))


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
        say(service, island, WRONG, first, session_id=session)
    after = ask(service, island, QUERY)
    assert [hit.memory.id for hit in after.hits][:2] == [second, first]
    assert after.content_seq == before + 6
    assert ask(service, island, QUERY).content_seq == after.content_seq
    wrong = hits(service, island)[first]
    assert (wrong.helpful_count, wrong.wrong_count) == (0, 6)
    assert wrong.verdict == pytest.approx(1 - 0.4 * 6 / 10)
    assert (after.hits[0].verdict, after.hits[0].wrong_count) == (1, 0)


def test_one_verdict_moves_little_and_wrong_moves_more_than_helpful(service: Stubs, island: str) -> None:
    """S1-17."""
    before = hits(service, island)
    say(service, island, WRONG, "early", session_id="a")
    say(service, island, HELPFUL, "late", session_id="a")
    after = hits(service, island)
    assert after["early"].verdict == pytest.approx(0.92)
    assert after["late"].verdict == pytest.approx(1.02)
    assert after["early"].score == pytest.approx(0.92 * before["early"].score, abs=1e-5)


def test_a_voice_has_one_verdict_on_a_memory_its_last(service: Stubs, island: str) -> None:
    """S1-17: however often a session, or without one who asks the same, clicks."""
    for _ in range(5):
        say(service, island, WRONG, "early", session_id="a", query_text=str(uuid.uuid4()))
        say(service, island, WRONG, "early", query_text="When does it leave? ")
        say(service, island, WRONG, "early", query_text="when does it  LEAVE?")
    assert hits(service, island)["early"].wrong_count == 2
    say(service, island, HELPFUL, "early", session_id="a")
    hit = hits(service, island)["early"]
    assert (hit.helpful_count, hit.wrong_count) == (1, 1)
    seq = ask(service, island, QUERY).content_seq
    say(service, island, HELPFUL, "early", session_id="a")
    assert ask(service, island, QUERY).content_seq == seq


def test_what_has_nothing_to_do_with_the_query_is_not_wrong(service: Stubs, island: str) -> None:
    """S1-17: it takes back what the voice had said, and ranks nothing."""
    say(service, island, NOT_HELPFUL, "early", session_id="a")
    assert hits(service, island)["early"].verdict == 1
    say(service, island, WRONG, "early", session_id="a")
    say(service, island, NOT_HELPFUL, "early", session_id="a")
    assert hits(service, island)["early"].verdict == 1


def test_no_count_of_verdicts_removes_a_memory_or_brings_an_unrelated_one(service: Stubs, island: str) -> None:
    """S1-17."""
    before = set(hits(service, island, min_similarity=0.3))
    for voice in range(40):
        say(service, island, WRONG, "early", "late", session_id=f"w{voice}")
        say(service, island, HELPFUL, "bread", session_id=f"h{voice}")
    found = hits(service, island, min_similarity=0.3)
    assert set(found) == before
    assert "bread" not in found
    assert found["early"].wrong_count == 32
    assert found["early"].verdict == pytest.approx(1 - 0.4 * 32 / 36)
    bread = next(hit for hit in ask(service, island, "who bakes rye bread").hits if hit.memory.id == "bread")
    assert bread.helpful_count == 32
    assert bread.verdict <= 1.1
    assert bread.score <= 1


def test_a_corrected_text_begins_anew_and_other_edits_do_not(service: Stubs, island: str) -> None:
    """S1-17."""
    say(service, island, WRONG, "early", session_id="a")
    retitled = memories.UpdateMemoryRequest(project=island)
    retitled.memory.id, retitled.memory.title = "early", "the early ferry"
    retitled.update_mask.paths.append("title")
    service.memory.UpdateMemory(retitled)
    assert hits(service, island)["early"].wrong_count == 1
    corrected = memories.UpdateMemoryRequest(project=island)
    corrected.memory.id, corrected.memory.content = "early", "the ferry to the island does leave at seven"
    corrected.update_mask.paths.append("content")
    service.memory.UpdateMemory(corrected)
    assert hits(service, island)["early"].wrong_count == 0
    back = memories.UpdateMemoryRequest(project=island)
    back.memory.id, back.memory.content = "early", FERRY["early"]
    back.update_mask.paths.append("content")
    service.memory.UpdateMemory(back)
    assert hits(service, island)["early"].wrong_count == 1


def test_a_memory_that_comes_again_under_its_id_has_no_verdicts(service: Stubs, island: str) -> None:
    """S1-17."""
    say(service, island, WRONG, "early", session_id="a")
    service.memory.DeleteMemories(memories.DeleteMemoriesRequest(project=island, ids=["early"]))
    learn(service, island, note(FERRY["early"], id="early"))
    assert hits(service, island)["early"].wrong_count == 0


def test_explain_says_how_many_called_it_wrong_and_what_takes_it_back(service: Stubs, island: str) -> None:
    """S1-17."""
    for session in "abc":
        say(service, island, WRONG, "early", session_id=session)
    say(service, island, HELPFUL, "early", "late", session_id="d")
    said = explained(service, island, "early")
    assert (said.numbers.helpful_count, said.numbers.wrong_count) == (1, 3)
    assert said.numbers.verdict == pytest.approx(0.8625)
    assert "3 of 4 verdicts said that it is wrong: × .86." in said.sentence
    assert "once that is corrected" in said.sentence
    assert "1 of 1 verdicts said that it was helpful: × 1.02." in explained(service, island, "late").sentence
    assert "verdicts" not in explained(service, island, "bread", query_text="rye bread").sentence
    assert (
        "4 条评价中有 3 条认为它有误：× .86" in explained(service, island, "early", query_text="island 渡轮").sentence
    )
    lost = explained(service, island, "early", top_k=1)
    assert lost.outcome == explain_pb2.EXPLAIN_OUTCOME_LOST
    assert "3 of 4 verdicts" in lost.sentence
    assert [change.field for change in lost.changes] == ["tuning.top_k"]


def test_replaying_the_log_finds_the_same_verdicts(service: Stubs, island: str) -> None:
    """S3-28."""
    say(service, island, WRONG, "early", session_id="a")
    say(service, island, HELPFUL, "early", session_id="b")
    replayed = service.learning.ReplayLearning(learning.ReplayLearningRequest(project=island))
    assert replayed.digest == replayed.replayed_digest


def test_scores_are_the_same_after_a_restart(tmp_path: Path, models_dir: Path, model: str) -> None:
    """S4-02, S1-17."""
    chosen = settings(tmp_path, models_dir, model)
    with in_thread(chosen) as stubs:
        learn(stubs, "p", *(note(text, id=name) for name, text in FERRY.items()))
        ask(stubs, "p", QUERY)
        for session in "ab":
            say(stubs, "p", WRONG, "early", session_id=session)
        say(stubs, "p", HELPFUL, "late", session_id="a")
        before = {name: (hit.score, hit.verdict) for name, hit in hits(stubs, "p").items()}
    with in_thread(chosen) as stubs:
        assert {name: (hit.score, hit.verdict) for name, hit in hits(stubs, "p").items()} == before
    assert before["early"][1] < 1 < before["late"][1]
