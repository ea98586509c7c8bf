"""Words as people write them, through the socket."""

from __future__ import annotations

import pytest

from hummock.v1 import recall_pb2 as recall
from tests.service.calls import ask, learn
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
    assert hit.memory.payload.content == held
    assert all(term in query for term in hit.matched_terms)
    assert recall.RECALL_PATH_KEYWORD in hit.paths


def test_a_text_in_the_other_way_of_writing_is_a_memory_of_its_own(service: Stubs, project: str) -> None:
    """1.1-2: what counts as the same text does not depend on how it is searched."""
    learn(service, project, note("每月十五號還款"), note("每月十五号还款"))
    assert len(ask(service, project, "每月十五号还款").hits) == 2
