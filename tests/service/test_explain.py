"""Why a memory was recalled or not, and what brings it back, through the socket."""

from __future__ import annotations

import struct
from typing import Any

import grpc
import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from hummock_client.v1 import explain_pb2 as pb
from hummock_client.v1 import memory_pb2
from hummock_client.v1 import recall_pb2 as recall
from tests.service.calls import explain, failure, learn, recall_request
from tests.service.inputs import domain, fragment, note, record
from tests.service.running import Stubs

pytestmark = pytest.mark.storeless

HARBOUR = "the harbour is deep"
LONG_AGO = Timestamp(seconds=1_000_000_000)


def recalled(service: Stubs, request: recall.RecallRequest) -> list[str]:
    answer = service.context.Recall(request)
    return [hit.memory.id for hit in (*answer.hits, *answer.code_fragments, *answer.domains)]


def changes(explained: pb.ExplainResponse) -> dict[str, str]:
    return {change.field: change.value for change in explained.changes}


def assert_brought_back(service: Stubs, explained: pb.ExplainResponse, memory_id: str, *fields: str) -> None:
    assert list(changes(explained)) == list(fields)
    assert explained.changed_rank > 0
    assert memory_id in recalled(service, explained.changed_recall)


def test_a_hit_is_explained_by_its_rank_and_its_numbers(service: Stubs, project: str) -> None:
    """S4-55: the counters of one memory, without text."""
    learn(service, project, note(HARBOUR, id="m"), note("bread is baked in the morning", id="other"))
    explained = explain(service, project, "how deep is the harbour", "m")
    (hit, *_) = service.context.Recall(project=project, query_text="how deep is the harbour").hits
    ranked = explained.outcome, explained.group, explained.rank
    assert ranked == (pb.EXPLAIN_OUTCOME_RECALLED, recall.HIT_GROUP_MAIN, 1)
    assert not explained.changes
    assert not explained.HasField("changed_recall")
    numbers = explained.numbers
    assert (numbers.vector_rank, numbers.keyword_rank, numbers.place, numbers.searched) == (1, 1, 1, 2)
    assert list(numbers.matched_terms) == list(hit.matched_terms)
    assert numbers.score == pytest.approx(hit.score)
    assert numbers.cosine == pytest.approx(hit.cosine)
    assert numbers.late_interaction_score == pytest.approx(hit.late_interaction_score)


def test_unknown_ids_those_of_others_and_those_of_no_project_are_told_alike(service: Stubs, project: str) -> None:
    learn(service, project, note(HARBOUR, id="mine"))
    learn(service, f"{project}-other", note(HARBOUR, id="theirs"))
    answers = [
        explain(service, project, HARBOUR, "theirs"),
        explain(service, project, HARBOUR, "nobody's"),
        explain(service, f"{project}-none", HARBOUR, "mine"),
    ]
    assert answers[0].outcome == pb.EXPLAIN_OUTCOME_NOT_FOUND
    assert answers[0] == answers[1] == answers[2]


@pytest.mark.parametrize(
    ("condition", "failed"),
    [
        ({"kinds": [memory_pb2.MEMORY_KIND_ENTRY]}, "kinds"),
        ({"origins": [memory_pb2.ORIGIN_SUMMARY]}, "origins"),
        ({"tags": ["sea", "sky"]}, "tags"),
        ({"session_ids": ["another"]}, "session_ids"),
        ({"paths": ["harbour.py"]}, "paths"),
        ({"speakers": ["Lin"]}, "speakers"),
        ({"created_after": Timestamp(seconds=1_100_000_000)}, "created_after"),
        ({"created_before": Timestamp(seconds=900_000_000)}, "created_before"),
        ({"excluded_ids": ["x", "m"]}, "excluded_ids"),
    ],
)
def test_a_condition_of_the_filter_is_named_and_loosened(
    service: Stubs, project: str, condition: dict[str, Any], failed: str
) -> None:
    learn(service, project, note(HARBOUR, id="m", tags=["sea"], session_id="s", speaker="Yu", create_time=LONG_AGO))
    explained = explain(service, project, HARBOUR, "m", filter=memory_pb2.MemoryFilter(**condition))
    assert (explained.stage, list(explained.failed_conditions)) == (pb.LOSS_STAGE_FILTER, [failed])
    assert failed in explained.sentence
    assert_brought_back(service, explained, "m", f"filter.{failed}")


def test_each_cause_of_a_loss_is_undone_and_told_in_the_querys_language(service: Stubs, project: str) -> None:
    learn(service, project, note(HARBOUR, id="m"))
    where = memory_pb2.MemoryFilter(tags=["sea"], speakers=["Lin"])
    explained = explain(service, project, HARBOUR, "m", filter=where)
    assert_brought_back(service, explained, "m", "filter.tags", "filter.speakers")
    explained = explain(service, project, "bread", "m", paths=[recall.RECALL_PATH_KEYWORD])
    assert explained.stage == pb.LOSS_STAGE_CANDIDATES
    assert changes(explained) == {"paths": ""}
    assert_brought_back(service, explained, "m", "paths")
    assert "已召回" in explain(service, project, "港口有多深", "m").sentence
    assert "recalled" in explain(service, project, "harbour", "m").sentence


def test_an_origin_that_the_preset_leaves_out_is_added_to_its_own(service: Stubs, project: str) -> None:
    learn(service, project, note(HARBOUR, id="m", origin=memory_pb2.ORIGIN_INDEXER))
    explained = explain(service, project, "harbour", "m", preset=recall.PRESET_CHAT)
    assert explained.stage == pb.LOSS_STAGE_FILTER
    assert changes(explained) == {"filter.origins": "MANUAL, SUMMARY, USER_INPUT, INDEXER"}
    assert_brought_back(service, explained, "m", "filter.origins")


def test_a_query_of_two_letters_under_code_is_told_to_say_more(service: Stubs, project: str) -> None:
    """S0-36."""
    learn(service, project, note("is is a word", id="m"))
    explained = explain(service, project, "is", "m", preset=recall.PRESET_CODE)
    assert explained.stage == pb.LOSS_STAGE_QUERY
    assert_brought_back(service, explained, "m", "intent.keywords")


@pytest.mark.parametrize(("closed", "memory_id"), [("code_top_k", "code"), ("domain_top_k", "domain")])
def test_a_kind_that_no_group_takes_gets_its_group(service: Stubs, project: str, closed: str, memory_id: str) -> None:
    code, loan = fragment("src/harbour.py", "depth", "def depth(): ...", id="code"), domain("harbour", HARBOUR)
    loan.id = "domain"
    learn(service, project, code, loan)
    explained = explain(service, project, "harbour depth", memory_id, preset=recall.PRESET_CODE, **{closed: 0})
    assert (explained.stage, explained.group) == (pb.LOSS_STAGE_GROUP, recall.HIT_GROUP_UNSPECIFIED)
    assert_brought_back(service, explained, memory_id, f"tuning.{closed}")


@pytest.mark.long
def test_a_memory_outside_the_pool_is_told_its_ranks(service: Stubs, project: str) -> None:
    learn(service, project, *(note(f"the harbour number {number} is deep", id=f"n{number}") for number in range(30)))
    learn(service, project, note("bread is baked in the morning", id="m"))
    explained = explain(service, project, "the harbour is deep", "m", candidates=5, top_k=3)
    assert (explained.stage, explained.threshold, explained.numbers.pool) == (pb.LOSS_STAGE_CANDIDATES, 5, 5)
    assert explained.value == min(explained.numbers.vector_rank, explained.numbers.keyword_rank or 99) > 5
    assert "tuning.top_k" in changes(explained)
    assert_brought_back(service, explained, "m", *changes(explained))


def test_an_echo_is_found_by_other_words(service: Stubs, project: str) -> None:
    """1.1-2."""
    learn(service, project, note(HARBOUR, id="m", origin=memory_pb2.ORIGIN_USER_INPUT))
    explained = explain(service, project, f" {HARBOUR.upper()}", "m")
    assert explained.stage == pb.LOSS_STAGE_ECHO
    assert explained.numbers.relevance > 0
    assert_brought_back(service, explained, "m", "query_text")


def test_a_minimum_is_lowered_below_the_similarity(service: Stubs, project: str) -> None:
    """S4-24."""
    learn(service, project, note("bread is baked in the morning", id="m"), note(HARBOUR))
    explained = explain(service, project, "港口", "m", min_similarity=0.9)
    assert explained.stage == pb.LOSS_STAGE_MIN_SIMILARITY
    assert explained.value == pytest.approx(explained.numbers.similarity)
    assert explained.threshold == pytest.approx(0.9)
    assert explained.value - 0.02 < float(changes(explained)["tuning.min_similarity"]) <= explained.value
    assert_brought_back(service, explained, "m", "tuning.min_similarity")


def test_newer_copies_are_named_and_excluded(service: Stubs, project: str) -> None:
    """S4-27."""
    for number, origin in enumerate((memory_pb2.ORIGIN_MANUAL, memory_pb2.ORIGIN_SUMMARY, memory_pb2.ORIGIN_INDEXER)):
        made = Timestamp(seconds=1_000_000_000 + number)
        learn(service, project, note(HARBOUR, id=f"m{number}", origin=origin, create_time=made))
    explained = explain(service, project, "harbour", "m0")
    assert (explained.stage, explained.other_id) == (pb.LOSS_STAGE_DUPLICATE, "m2")
    assert changes(explained) == {"filter.excluded_ids": "m2, m1"}
    assert_brought_back(service, explained, "m0", "filter.excluded_ids")


def test_a_place_behind_the_last_hit_asks_for_more_hits(service: Stubs, project: str) -> None:
    learn(service, project, *(note(f"the harbour number {number} is deep", id=f"n{number}") for number in range(9)))
    last = recalled(service, recall_request(project, "harbour", relevance_weight=1.0, top_k=9))[-1]
    explained = explain(service, project, "harbour", last, relevance_weight=1.0, top_k=3)
    assert (explained.stage, explained.value, explained.threshold) == (pb.LOSS_STAGE_RANK, 9, 3)
    assert changes(explained) == {"tuning.top_k": "9"}
    assert explained.changed_rank == 9
    assert_brought_back(service, explained, last, "tuning.top_k")


@pytest.mark.usefixtures("real_models")
def test_each_group_has_its_own_room(service: Stubs, project: str) -> None:
    code = {f"depth_{n}": f"def depth_{n}(): return {n}" for n in range(4)}
    learn(service, project, *(fragment(f"src/{one}.py", one, text, id=one) for one, text in code.items()))
    asked: dict[str, Any] = {"preset": recall.PRESET_CODE, "relevance_weight": 1.0, "near_twin_bar": 2.0}
    last = recalled(service, recall_request(project, "how deep is it", **asked))[-1]
    explained = explain(service, project, "how deep is it", last, code_top_k=1, **asked)
    assert (explained.stage, explained.group) == (pb.LOSS_STAGE_RANK, recall.HIT_GROUP_CODE)
    assert_brought_back(service, explained, last, "tuning.code_top_k")


def test_a_near_twin_names_the_hit_that_says_the_same(service: Stubs, project: str) -> None:
    """S2-07, 1.1-7."""
    learn(service, project, note("the harbour is deep", id="deep_v1"), note("the harbour, is deep", id="deep_v2"))
    learn(service, project, note("bread is baked in the morning", id="c"))
    asked = {"near_twin_bar": 0.8, "top_k": 2}
    first, *_ = recalled(service, recall_request(project, "how deep is the harbour", **asked))
    twin = {"deep_v1": "deep_v2", "deep_v2": "deep_v1"}[first]
    explained = explain(service, project, "how deep is the harbour", twin, **asked)
    assert (explained.stage, explained.other_id) == (pb.LOSS_STAGE_NEAR_TWIN, first)
    assert explained.value >= explained.threshold
    assert "tuning.near_twin_bar" in changes(explained)
    assert_brought_back(service, explained, twin, *changes(explained))


def test_what_resembles_a_better_hit_is_told_so(service: Stubs, project: str) -> None:
    """S2-05."""
    learn(service, project, note("the harbour is deep", id="a"), note("the harbour, is deep", id="b"))
    learn(service, project, note("bread is baked in the morning", id="c"))
    asked: dict[str, Any] = {"near_twin_bar": 2.0, "relevance_weight": 0.1, "top_k": 2}
    first, *_ = recalled(service, recall_request(project, "how deep is the harbour", **asked))
    similar = {"a": "b", "b": "a"}[first]
    explained = explain(service, project, "how deep is the harbour", similar, **asked)
    assert (explained.stage, explained.other_id) == (pb.LOSS_STAGE_DIVERSITY, first)
    assert_brought_back(service, explained, similar, "tuning.relevance_weight")


def test_age_that_costs_a_place_is_told(service: Stubs, project: str) -> None:
    """S4-26."""
    learn(service, project, note(HARBOUR, id="m", create_time=LONG_AGO), note("the harbour is shallow"))
    asked: dict[str, Any] = {"preset": recall.PRESET_CHAT, "top_k": 1, "decay_floor": 0.0}
    explained = explain(service, project, HARBOUR, "m", **asked)
    assert explained.stage == pb.LOSS_STAGE_RANK
    assert explained.numbers.age_days > 1000
    assert explained.numbers.decay < 1e-6
    assert_brought_back(service, explained, "m", "tuning.top_k")


def test_what_the_vector_path_cannot_rank_is_explained_too(service: Stubs, project: str) -> None:
    """1.1-13."""
    learn(service, project, *(note(f"潮汐第{number}号", id=f"n{number}") for number in range(5)))
    by_words = {"paths": [recall.RECALL_PATH_KEYWORD], "keyword_mode": recall.KEYWORD_MODE_SUBSTRING}
    explained = explain(service, project, "潮", "n0", candidates=2, top_k=2, **by_words)
    assert explained.stage == pb.LOSS_STAGE_CANDIDATES
    assert (explained.numbers.keyword_rank, explained.numbers.vector_rank) == (5, 0)
    assert_brought_back(service, explained, "n0", *changes(explained))


def test_it_changes_nothing(service: Stubs, project: str) -> None:
    learn(service, project, note(HARBOUR, id="m"), record("还款方式有哪些类型？", "先本后息"))
    before = service.context.Recall(project=project, query_text=HARBOUR)
    explain(service, project, HARBOUR, "m", min_similarity=1.0)
    after = service.context.Recall(project=project, query_text=HARBOUR)
    assert (after.seq, after.content_seq) == (before.seq, before.content_seq) == (1, 1)


def test_what_is_wrong_with_the_recall_is_named_where_it_stands(service: Stubs, project: str) -> None:
    def broken_fields(request: pb.ExplainRequest) -> list[str]:
        error = failure(service.context.Explain, request)
        assert error.code is grpc.StatusCode.INVALID_ARGUMENT
        return list(error.violations)

    blank, too_many = recall_request(project, " "), recall_request(project, "x", top_k=201)
    assert broken_fields(pb.ExplainRequest(recall=blank, memory_id="m")) == ["recall.query_text"]
    assert broken_fields(pb.ExplainRequest(recall=too_many, memory_id="m")) == ["recall.tuning.top_k"]
    assert broken_fields(pb.ExplainRequest(memory_id="m")) == ["recall"]
    assert broken_fields(pb.ExplainRequest(recall=recall_request(project, "x"))) == ["memory_id"]


@pytest.mark.long
def test_behind_a_thousand_others_a_narrower_filter_reaches_it(service: Stubs, project: str) -> None:
    model = service.admin.GetStatus().model
    values = (struct.pack(f"<{model.dim}f", sign, *[0.1] * (model.dim - 1)) for sign in (1.0, -1.0))
    towards, away = (memory_pb2.Embedding(values=each, emb_space=model.emb_space) for each in values)
    crowd = [note(f"number {number}", vector=towards, create_time=LONG_AGO) for number in range(1010)]
    learn(service, project, *crowd[:505])
    learn(service, project, *crowd[505:])
    learn(service, project, note("bread", id="m", vector=away, session_id="s"))
    explained = explain(service, project, "zzz", "m", query_vector=towards, paths=[recall.RECALL_PATH_VECTOR])
    assert (explained.stage, explained.numbers.vector_rank) == (pb.LOSS_STAGE_CANDIDATES, 1011)
    assert_brought_back(service, explained, "m", "filter.session_ids")


@pytest.mark.long
def test_room_for_more_hits_than_candidates_is_no_larger_than_it_must_be(service: Stubs, project: str) -> None:
    learn(service, project, *(note(f"the harbour number {number} is deep", id=f"n{number}") for number in range(40)))
    asked: dict[str, Any] = {"relevance_weight": 1.0, "near_twin_bar": 2.0, "candidates": 3, "top_k": 2}
    lost = 0
    for memory_id in (f"n{number}" for number in range(40)):
        explained = explain(service, project, "how deep is the harbour", memory_id, **asked)
        if explained.changes:
            lost += 1
            named, shortest = explained.changed_recall, recall.RecallRequest()
            shortest.CopyFrom(named)
            # As many as were asked for are none too many.
            shortest.tuning.top_k = max(explained.changed_rank, asked["top_k"])
            assert recalled(service, named)[explained.changed_rank - 1] == memory_id
            assert named.tuning.top_k == shortest.tuning.top_k or memory_id not in recalled(service, shortest)
    assert lost == 38
