"""Effects of a recall's fields, and meaning of its answer's fields, through the socket."""

from __future__ import annotations

import struct
from typing import Any

import grpc
import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import memory_pb2 as pb
from hummock_client.v1 import recall_pb2 as recall
from tests.service.calls import ask, contents, failure, learn, render
from tests.service.inputs import domain, fragment, note, record
from tests.service.running import Stubs

pytestmark = pytest.mark.storeless

LAST_INSTANT = Timestamp(seconds=253_402_300_799, nanos=999_999_999)
VECTOR, KEYWORD, DOMAIN = recall.RECALL_PATH_VECTOR, recall.RECALL_PATH_KEYWORD, recall.RECALL_PATH_DOMAIN


def created(days_ago: float) -> Timestamp:
    time = Timestamp()
    time.GetCurrentTime()
    time.FromNanoseconds(time.ToNanoseconds() - int(days_ago * 86_400e9))
    return time


def repayment(service: Stubs, project: str) -> None:
    """A domain with a key file, that file, and a file that no domain names."""
    learn(
        service,
        project,
        domain("还款", "借款人归还本金和利息", key_files=("RepaymentService.java",)),
        fragment("src/RepaymentService.java", "RepaymentService", "class RepaymentService {}", language="java"),
        fragment("src/Weather.java", "Weather", "class Weather {}", language="java"),
    )


def names(hits: list[recall.Hit]) -> list[str]:
    return [hit.memory.domain_knowledge.domain for hit in hits]


def test_the_counters_say_how_near_the_candidates_are_and_whose_and_hold_no_text(service: Stubs, project: str) -> None:
    """S4-55."""
    bread = note("bread is baked at night", origin=pb.ORIGIN_AI_OUTPUT)
    learn(service, project, note("the harbour is deep"), note("港口很深"), bread)
    answer = ask(service, project, "how deep is the harbour", top_k=3)
    (group,) = answer.receipt.groups
    cosines = [hit.cosine for hit in answer.hits]
    assert len(cosines) == 3
    assert (group.least_cosine, group.greatest_cosine) == (min(cosines), max(cosines))
    assert group.mean_cosine == pytest.approx(sum(cosines) / 3)
    assert [(one.origin, one.count) for one in group.origins] == [(pb.ORIGIN_MANUAL, 2), (pb.ORIGIN_AI_OUTPUT, 1)]
    told = str(answer.receipt)
    assert not any(word in told for word in ("harbour", "deep", "港口", "bread"))


def test_counters_of_words_alone_and_of_nothing_say_what_was_compared(service: Stubs, project: str) -> None:
    """S4-55, S1-03. The scope and the filter have no kind in common."""
    learn(service, project, note("the harbour is deep"))
    (group,) = ask(service, project, "harbour", paths=[KEYWORD]).receipt.groups
    assert (group.keyword, group.HasField("least_cosine"), group.HasField("mean_cosine")) == (1, False, False)
    assert [(one.origin, one.count) for one in group.origins] == [(pb.ORIGIN_MANUAL, 1)]
    scope, where = context.SEARCH_SCOPE_CODE, pb.MemoryFilter(kinds=[pb.MEMORY_KIND_NOTE])
    request = context.SearchRequest(project=project, query_text="harbour", scope=scope, filter=where)
    found = service.context.Search(request)
    assert not found.results
    assert found.receipt.emb_space
    assert found.receipt.as_of.seconds > 0
    assert sum(group.searched for group in found.receipt.groups) == 0
    request.min_seq = 9
    assert failure(service.context.Search, request).reason == "SEQ_NOT_REACHED"


def test_the_last_instant_that_a_timestamp_holds_is_answered(service: Stubs, project: str) -> None:
    learn(service, project, note("the end of days", event_time=LAST_INSTANT))
    answer = ask(service, project, "the end of days", as_of=LAST_INSTANT)
    assert answer.receipt.as_of.seconds == LAST_INSTANT.seconds
    assert answer.hits[0].memory.event_time.seconds == LAST_INSTANT.seconds


def test_keywords_of_the_caller_are_looked_for_however_long_the_query_is(service: Stubs, project: str) -> None:
    """S0-04, 1.1-15."""
    learn(service, project, note("计算逻辑在利息模块里"))
    text = " ".join(f"word{number}" for number in range(60))
    intent = recall.Intent(domains=["还款"], action="ADD_FEATURE", keywords=["计算逻辑"])
    answer = ask(service, project, text, intent=intent, paths=[KEYWORD])
    assert contents(answer) == ["计算逻辑在利息模块里"]
    assert answer.intent == intent


def test_the_callers_intent_is_completed_and_domains_bring_their_key_files(service: Stubs, project: str) -> None:
    """S0-03, 1.1-15, S0-04, S0-10. Whichever group holds the domain."""
    repayment(service, project)
    answer = ask(service, project, "增加先本后息的还款方式", intent=recall.Intent(action="ADD_FEATURE"))
    assert answer.intent.action == "ADD_FEATURE"
    assert answer.intent.domains == ["还款"]
    assert answer.intent.keywords == ask(service, project, "增加先本后息的还款方式").intent.keywords != []
    intent = recall.Intent(domains=["还款"], action="ADD_FEATURE")
    answer = ask(service, project, "what shall I wear", preset=recall.PRESET_CODE, intent=intent)
    assert names(list(answer.domains)) == ["还款"]
    pulled = {hit.memory.code_fragment.path for hit in answer.code_fragments if DOMAIN in hit.paths}
    assert pulled == {"src/RepaymentService.java"}
    answer = ask(service, project, "增加还款方式", code_top_k=5)
    pulled = {hit.memory.code_fragment.path for hit in answer.code_fragments if DOMAIN in hit.paths}
    assert pulled == {"src/RepaymentService.java"}


def test_domains_that_the_query_names_come_first_however_old(service: Stubs, project: str) -> None:
    """S0-10."""
    old = domain("还款", "归还本金和利息")
    old.create_time.CopyFrom(created(days_ago=400))
    learn(service, project, old, domain("运费", "还款与运费都在账单里"))
    answer = ask(service, project, "还款", preset=recall.PRESET_CODE, decay_mode=recall.DECAY_MODE_EXPONENTIAL)
    assert names(list(answer.domains)) == ["还款", "运费"]
    assert answer.domains[0].score < answer.domains[1].score


def test_a_vector_has_the_weight_that_it_has_in_the_main_group(service: Stubs, project: str) -> None:
    repayment(service, project)
    code_only = pb.MemoryFilter(kinds=[pb.MEMORY_KIND_CODE_FRAGMENT])
    answer = ask(service, project, "Weather", preset=recall.PRESET_CODE, filter=code_only)
    assert [group.group for group in answer.receipt.groups] == [recall.HIT_GROUP_CODE]
    assert answer.code_fragments
    assert answer.receipt.vector_weight == 0
    model = service.admin.GetStatus().model
    given = pb.Embedding(values=struct.pack(f"<{model.dim}f", *[1.0] * model.dim), emb_space=model.emb_space)
    answer = ask(service, project, "还款", query_vector=given, paths=[DOMAIN])
    assert names(list(answer.hits)) == ["还款"]
    assert (answer.receipt.vector_weight, answer.hits[0].cosine) == (0, 0)


@pytest.mark.parametrize("path", [VECTOR, KEYWORD, DOMAIN])
def test_only_the_paths_asked_for_find_anything(service: Stubs, project: str, path: Any) -> None:
    """1.1-10."""
    repayment(service, project)
    learn(service, project, record("还款方式有哪些类型？", "先本后息"))
    answer = ask(service, project, "还款", paths=[path])
    assert answer.hits
    assert {found for hit in answer.hits for found in hit.paths} == {path}


def test_a_query_vector_takes_the_place_of_the_text_and_needs_not_name_its_space(service: Stubs, project: str) -> None:
    model = service.admin.GetStatus().model
    values = [struct.pack(f"<{model.dim}f", *(float(at == place) for at in range(model.dim))) for place in (0, 1)]
    named, unnamed = (
        [pb.Embedding(values=each, emb_space=emb_space) for each in values] for emb_space in (model.emb_space, "")
    )
    learn(service, project, note("one", vector=unnamed[0]), note("two", vector=named[1]))
    for asked in (named, unnamed):
        hits = [ask(service, project, "zzz", query_vector=each, paths=[VECTOR]).hits[0] for each in asked]
        assert [hit.memory.content for hit in hits] == ["one", "two"]
        assert [hit.cosine for hit in hits] == pytest.approx([1, 1], abs=1e-3)


@pytest.mark.parametrize(
    ("vector", "field", "reason"),
    [
        (pb.Embedding(values=b"\0\0\x80?", emb_space="another"), "query_vector.emb_space", "EMB_SPACE_MISMATCH"),
        (pb.Embedding(values=b"\0\0\x80?"), "query_vector.values", "INVALID_REQUEST"),
    ],
)
def test_a_wrong_vector_is_named_where_it_stands(
    service: Stubs, project: str, vector: pb.Embedding, field: str, reason: str
) -> None:
    vector.emb_space = vector.emb_space or service.admin.GetStatus().model.emb_space
    request = recall.RecallRequest(project=project, query_text="x", query_vector=vector)
    render = context.RenderRequest(project=project, recall=request, allow_missing=True)
    asked = failure(service.context.Recall, request)
    rendered = failure(service.context.Render, render)
    is_wrong = reason == "INVALID_REQUEST"
    code = grpc.StatusCode.INVALID_ARGUMENT if is_wrong else grpc.StatusCode.FAILED_PRECONDITION
    for error, place in ((asked, field), (rendered, f"recall.{field}")):
        assert error.code is code
        assert (error.reason, list(error.violations), error.metadata["field"]) == (reason, [place], place)
        assert error.message.startswith(f"{place}: ")


@pytest.mark.parametrize("text", ["a", "is", " I "])
def test_under_code_a_short_word_of_any_sentence_recalls_nothing(service: Stubs, project: str, text: str) -> None:
    """S0-36, 1.1-2."""
    learn(service, project, note(f"{text} is a word"))
    answer = ask(service, project, text, preset=recall.PRESET_CODE)
    assert [*answer.hits, *answer.code_fragments, *answer.domains, *answer.receipt.groups] == []
    assert answer.seq == 1
    intent = recall.Intent(keywords=[text])
    assert ask(service, project, text, preset=recall.PRESET_CODE, intent=intent).hits
    assert ask(service, project, text).hits


@pytest.mark.parametrize("text", ["?!…", "🙂🎉", "。，！", "x" * 8192, "还" * 8192, "a\x00b", "\u200b"])
def test_an_odd_query_is_answered(service: Stubs, project: str, text: str) -> None:
    learn(service, project, note("the harbour is deep"))
    answer = ask(service, project, text)
    assert not answer.degraded
    assert all(0 <= hit.score <= 1 for hit in answer.hits)


def test_candidates_bound_each_path_and_top_k_the_answer(service: Stubs, project: str) -> None:
    """S0-05, 1.1-4."""
    learn(service, project, *(note(f"harbour number {number}") for number in range(30)))
    few = ask(service, project, "harbour", candidates=4, top_k=2)
    (main,) = few.receipt.groups
    assert (main.searched, main.vector, main.keyword, main.returned, len(few.hits)) == (30, 4, 4, 2, 2)
    raised = ask(service, project, "harbour", candidates=1, top_k=200)
    assert (raised.receipt.groups[0].searched, len(raised.hits)) == (30, 30)


def test_the_index_view_leaves_out_the_body(service: Stubs, project: str) -> None:
    learn(service, project, note("the harbour is deep"))
    (hit,) = ask(service, project, "harbour", view=pb.MEMORY_VIEW_INDEX).hits
    assert hit.memory.summary == "the harbour is deep"
    assert not hit.memory.text


def test_a_fragment_whose_last_line_is_not_known_is_stored_and_rendered(service: Stubs, project: str) -> None:
    learn(service, project, fragment("a.py", "f", "def f(): ...", line=5))
    assert "a.py:5\n" in render(service, project, "def f", form=context.RENDER_FORM_WATERFALL).text
