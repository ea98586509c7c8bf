"""Words as people write them, through the socket."""

from __future__ import annotations

import pytest

from hummock_client.v1 import explain_pb2 as explain
from hummock_client.v1 import recall_pb2 as recall
from tests.service.calls import ask, learn, recall_request
from tests.service.inputs import note
from tests.service.running import Stubs


@pytest.mark.parametrize(
    ("query", "held", "shown"),
    [
        ("Which parties are PARSING it?", "we parse it for the party", ["parties", "PARSING"]),
        ("parseDates of the 还款日", "parse dates; 还款", ["parse", "Dates", "还款"]),
        ("what doesn't load, ｆｕｌｌ width", "it doesn't load full width", ["doesn't", "load", "full", "width"]),
    ],
)
def test_matched_terms_stand_as_the_query_writes_them(
    service: Stubs, project: str, query: str, held: str, shown: list[str]
) -> None:
    learn(service, project, note(held))
    (hit,) = ask(service, project, query).hits
    assert [term for term in hit.matched_terms if term in shown] == shown


@pytest.mark.parametrize("paths", [[], [recall.RECALL_PATH_KEYWORD]])
@pytest.mark.parametrize(
    ("query", "held"),
    [
        ("還款後怎麼開發票", "还款后可以开发票"),
        ("还款后怎么开发票", "還款後可以開發票"),
        ("臺灣的颱風", "台湾今年有四个台风"),
    ],
)
def test_either_way_of_writing_chinese_finds_the_other_by_words(
    service: Stubs, project: str, query: str, held: str, paths: list[recall.RecallPath]
) -> None:
    learn(service, project, note("猫喜欢晒太阳"), note(held, id="wanted"), note("每天早上跑步"))
    hit = ask(service, project, query, paths=paths).hits[0]
    assert hit.memory.id == "wanted"
    assert hit.memory.content == held
    assert all(term in query for term in hit.matched_terms)
    assert recall.RECALL_PATH_KEYWORD in hit.paths


def test_a_text_in_the_other_way_of_writing_is_a_memory_of_its_own(service: Stubs, project: str) -> None:
    """1.1-2: what counts as the same text does not depend on how it is searched."""
    learn(service, project, note("每月十五號還款"), note("每月十五号还款"))
    assert len(ask(service, project, "每月十五号还款").hits) == 2


NOISE = [note(f"the {each} of the house is old") for each in ("roof", "door", "window", "cellar", "garden")]


def corrections(hit: recall.Hit) -> list[tuple[str, str]]:
    return [(each.asked, each.meant) for each in hit.corrections]


@pytest.mark.parametrize("paths", [[], [recall.RECALL_PATH_KEYWORD]])
@pytest.mark.parametrize(
    ("query", "held", "correction"),
    [
        ("parseDaet", "we call parseDate there", ("parseDaet", "parseDate")),
        ("where is parse_daet", "def parse_date(text): ...", ("parse_daet", "parse_date")),
        ("lighthose paint", "Lighthouses shine", ("lighthose", "Lighthouses")),
        ("configuraiton", "every configuration lies here", ("configuraiton", "configuration")),
        ("xconnect", "connect at noon", ("xconnect", "connect")),
        ("huankuan", "每月十五号还款", ("huankuan", "还款")),
        ("huan kuan ri", "还款日是十五号", ("huan kuan ri", "还款日")),
        ("huankuan", "每月十五號還款", ("huankuan", "還款")),
        ("还款", "huankuan every month", ("还款", "huankuan")),
    ],
)
def test_a_word_that_nobody_holds_is_taken_for_one_that_is_held(
    service: Stubs, project: str, query: str, held: str, correction: tuple[str, str], paths: list[recall.RecallPath]
) -> None:
    learn(service, project, *NOISE, note(held, id="wanted"))
    hit = ask(service, project, query, paths=paths).hits[0]
    assert hit.memory.id == "wanted"
    assert correction in corrections(hit)
    assert correction[0] not in hit.matched_terms
    assert recall.RECALL_PATH_KEYWORD in hit.paths


@pytest.mark.usefixtures("real_models")
def test_what_may_be_meant_ranks_behind_what_holds_a_word_of_the_query(service: Stubs, project: str) -> None:
    said = [note("the invoice came late, and much else with it, on a day of rain and wind", id="said")]
    learn(service, project, *NOISE, *said, note("lighthouse", id="meant"), note("还款", id="pinyin"))
    hits = ask(service, project, "lighthose invoice huankuan", paths=[recall.RECALL_PATH_KEYWORD]).hits
    assert [hit.memory.id for hit in hits][:3] == ["said", "meant", "pinyin"]
    assert not corrections(hits[0])


@pytest.mark.parametrize(
    ("query", "held", "said"),
    [
        ("parseDaet", "we call parseDate there", "taken for its own: parseDaet → parseDate"),
        ("还款", "huankuan every month", "按它的词理解：还款 → huankuan。"),
    ],
)
def test_explain_says_which_words_were_taken_for_others(
    service: Stubs, project: str, query: str, held: str, said: str
) -> None:
    learn(service, project, *NOISE, note(held, id="wanted"))
    hit = ask(service, project, query).hits[0]
    explained = service.context.Explain(
        explain.ExplainRequest(recall=recall_request(project, query), memory_id="wanted")
    )
    assert list(explained.numbers.corrections) == list(hit.corrections)
    assert hit.corrections
    assert said in explained.sentence


def test_explain_speaks_of_no_other_words_where_the_query_s_own_are_held(service: Stubs, project: str) -> None:
    learn(service, project, *NOISE, note("we call parseDate there", id="wanted"))
    asked = recall_request(project, "parseDate")
    explained = service.context.Explain(explain.ExplainRequest(recall=asked, memory_id="wanted"))
    assert not explained.numbers.corrections
    assert "→" not in explained.sentence


def test_a_word_that_is_held_is_taken_for_no_other(service: Stubs, project: str) -> None:
    learn(service, project, note("parseDaet is misspelt", id="held"), note("parseDate is not", id="other"))
    hits = ask(service, project, "parseDaet", paths=[recall.RECALL_PATH_KEYWORD]).hits
    assert hits[0].memory.id == "held"
    assert not any(corrections(hit) for hit in hits)


@pytest.mark.parametrize("query", ["port 8081", "sha257", "error E1235", "the", "cst", "Ünit", "form7"])
def test_numbers_short_words_and_stop_words_are_taken_for_no_other(service: Stubs, project: str, query: str) -> None:
    learn(service, project, note("port 8080, sha256, E1234, then, cut, unit, form8"))
    assert not any(corrections(hit) for hit in ask(service, project, query).hits)
