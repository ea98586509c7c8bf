"""Parts of texts: the keyword path by substrings, and memories far longer than the window of the model."""

from __future__ import annotations

import random

import pytest

from hummock_client.v1 import memory_pb2 as pb
from hummock_client.v1 import recall_pb2 as recall
from tests.service.calls import ask, contents, learn
from tests.service.inputs import note, record
from tests.service.running import Stubs

BY_SUBSTRING = {"keyword_mode": recall.KEYWORD_MODE_SUBSTRING, "paths": [recall.RECALL_PATH_KEYWORD]}


def questions(response: recall.RecallResponse) -> list[str]:
    return [hit.memory.learning_record.question for hit in response.hits]


def test_any_keyword_inside_question_or_answer_finds_newest_first_up_to_top_k(service: Stubs, project: str) -> None:
    """S0-11, 1.1-13: ANY keyword, question OR answer, newest first, LIMIT topK."""
    for number in range(14):
        learn(service, project, record(f"问题{number}", f"RepaymentCalculator 第{number}版"))
    learn(service, project, record("利息怎么算", "看合同"), record("别的", "没有关系"))
    intent = recall.Intent(keywords=["paymentCalc", "息怎"])
    answer = ask(service, project, "随便", intent=intent, top_k=10, **BY_SUBSTRING)
    assert questions(answer) == ["利息怎么算", *(f"问题{number}" for number in range(13, 4, -1))]
    assert not answer.degraded


def test_terms_are_the_default_and_do_not_see_inside_a_word(service: Stubs, project: str) -> None:
    """1.1-13: terms by default."""
    learn(service, project, note("RepaymentCalculator rounds half up"))
    keyword = {"paths": [recall.RECALL_PATH_KEYWORD]}
    assert contents(ask(service, project, "paymentcalc", **keyword)) == []
    assert contents(ask(service, project, "paymentcalc", **BY_SUBSTRING)) != []


@pytest.mark.parametrize("query", ["款", "lato", "R"])
def test_a_query_too_short_for_a_term_is_looked_for_as_it_is(service: Stubs, project: str, query: str) -> None:
    """1.1-13: short keywords that no term matches."""
    learn(service, project, note("每月十五号还款 RepaymentCalculator"), note("天气很好"))
    answer = ask(service, project, query, **BY_SUBSTRING)
    assert contents(answer) == ["每月十五号还款 RepaymentCalculator"]
    assert (list(answer.hits[0].matched_terms), list(answer.hits[0].paths)) == ([query], [recall.RECALL_PATH_KEYWORD])


def test_the_filter_holds_and_projects_stay_apart(service: Stubs, project: str) -> None:
    """S0-11: project-scoped; S0-06."""
    learn(service, project, note("paymentCalc here", session_id="a"), note("paymentCalc there", session_id="b"))
    learn(service, f"{project}-other", note("paymentCalc elsewhere"))
    where = pb.MemoryFilter(session_ids=["a"])
    assert contents(ask(service, project, "ymentCal", filter=where, **BY_SUBSTRING)) == ["paymentCalc here"]


def test_beside_the_vector_path_what_holds_the_string_is_a_keyword_hit(service: Stubs, project: str) -> None:
    """1.1-13: substring match as a mode of the keyword path."""
    learn(service, project, note("the calculator of repayments"), note("see RepaymentCalculator"))
    answer = ask(service, project, "mentcalc", keyword_mode=recall.KEYWORD_MODE_SUBSTRING)
    scores = {hit.memory.content: hit.keyword_score for hit in answer.hits}
    assert scores["see RepaymentCalculator"] > 0
    assert scores["the calculator of repayments"] == 0
    assert contents(answer)[0] == "see RepaymentCalculator"


PROJECT = "long-memories"
LONG_BYTES = 200_000
NEEDLES = {
    "first": "The lighthouse keeper wrote that the northern lamp burns whale oil.",
    "middle": "潮汐木芯只在满月的夜里从退潮的礁石上采下来。",
    "last": "The cathedral's bell was cast by a goldsmith from Antwerp.",
}
WORDS = "ledger column invoice amount monthly balance entry total account period sum transfer batch".split()  # noqa: SIM905 - reads as words


def long_text() -> str:
    """Sentences about book-keeping, with one about something else at the beginning, in the middle and at the end."""
    rng = random.Random(7)  # noqa: S311 - a seed, not a secret
    sentences = []
    size = 0
    while size < LONG_BYTES:
        sentences.append(" ".join(rng.choices(WORDS, k=14)) + ".")
        size += len(sentences[-1]) + 1
    sentences[0] = NEEDLES["first"]
    sentences[len(sentences) // 2] = NEEDLES["middle"]
    sentences[-1] = NEEDLES["last"]
    return "\n".join(sentences)


@pytest.fixture(scope="module")
def filled(service: Stubs) -> pb.Memory:
    """A project with one long memory between short ones; gives the long one."""
    learn(service, PROJECT, note(long_text(), id="long"))
    learn(service, PROJECT, *(note(f"short note {number} about gardening and tomatoes") for number in range(30)))
    return ask(service, PROJECT, "ledger invoice").hits[0].memory


@pytest.mark.long
def test_a_long_memory_is_one_memory_of_many_chunks(filled: pb.Memory) -> None:
    """S4-55: chunking."""
    assert filled.id == "long"
    assert filled.chunk_count > 50


@pytest.mark.parametrize(
    ("where", "query"),
    [
        ("first", "lighthouse keeper whale oil lamp"),
        ("middle", "潮汐木芯怎么采"),
        ("last", "who cast the bell of the cathedral"),
    ],
)
@pytest.mark.usefixtures("filled")
def test_any_part_of_a_long_memory_finds_it_as_one_hit(service: Stubs, where: str, query: str) -> None:
    """S4-55: a memory scores as its best chunk and is one hit."""
    hits = ask(service, PROJECT, query).hits
    assert hits[0].memory.id == "long"
    assert NEEDLES[where] in hits[0].memory.content
    assert [hit.memory.id for hit in hits].count("long") == 1


@pytest.mark.usefixtures("filled", "real_models")
def test_a_long_memory_is_as_similar_as_its_best_part(service: Stubs) -> None:
    """S4-55, S4-25: the cosine is that of the nearest chunk, not of the mean of all."""
    paths = [recall.RECALL_PATH_VECTOR]
    hits = ask(service, PROJECT, NEEDLES["last"], paths=paths, top_k=1).hits
    assert hits[0].memory.id == "long"
    assert hits[0].cosine > 0.25
