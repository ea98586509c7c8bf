"""Queries of more words than are scored: those that tell most are looked for."""

from __future__ import annotations

import pytest

from hummock_client.v1 import recall_pb2 as recall
from tests.service.calls import ask, contents, learn
from tests.service.inputs import note
from tests.service.running import Stubs

WORDS = [recall.RECALL_PATH_KEYWORD]
TALK = " ".join(f"we talked about point {number} of the agenda and about topic{number} too" for number in range(40))
CHINESE = "".join(f"我们今天讨论了第{number}个问题，大家都同意了这个方案，" for number in "一二三四五六七八九十")


@pytest.mark.parametrize(
    ("talk", "said"),
    [(TALK, "zeppelins land at noon"), (CHINESE, "飞艇中午降落"), (TALK + CHINESE, "parse_date 只接受 ISO 8601")],
)
def test_the_telling_word_at_the_end_of_a_long_query_is_looked_for(
    service: Stubs, project: str, talk: str, said: str
) -> None:
    """S0-36."""
    filler = [note(f"point {number} of the agenda, 大家讨论了问题和方案 {number}") for number in range(20)]
    learn(service, project, *filler, note(said, id="wanted"))
    reply = ask(service, project, f"{talk} {said.split()[0]}", paths=WORDS)
    assert contents(reply)[0] == said
    assert reply.hits[0].matched_terms


def test_words_of_an_intent_are_looked_for_before_those_of_a_long_query(service: Stubs, project: str) -> None:
    """S0-36."""
    filler = [note(f"the agenda has point {number}") for number in range(20)]
    learn(service, project, *filler, note("the agenda is common", id="wanted"))
    intent = recall.Intent(keywords=["common"])
    assert ask(service, project, TALK, paths=WORDS, intent=intent).hits[0].memory.id == "wanted"
