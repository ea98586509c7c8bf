"""Choice of the hits that the context form shows."""

from __future__ import annotations

import pytest
from msgspec import structs

from hummock.core.candidates import FoundBy
from hummock.core.memory import Memory
from hummock.core.recall import Hit
from hummock.render.passage import drawbacks
from tests.render.samples import note
from tests.render.test_render import hit

N = note("n", "x")


def weighed(one: Hit, query: str = "How long is a cache entry kept?", *others: Hit) -> str:
    return drawbacks([one, *others], query)[0]


def made(score: float, similarity: float, *terms: str, memory: Memory = N, **fields: object) -> Hit:
    return structs.replace(hit(memory, score), similarity=similarity, matched_terms=terms, **fields)


BEST = made(0.9, 0.8)


@pytest.mark.parametrize(
    ("one", "others", "expected"),
    [
        # What is similar, whatever its words: across languages no word matches.
        (made(0.4, 0.4), (), ""),
        # What holds most of the telling words, whatever its similarity.
        (made(0.9, -0.1, "long", "cache", "entry", "kept"), (), ""),
        # What holds only words that every text holds.
        (
            made(0.83, 0.01, "how", "is", "a"),
            (),
            "left out: its similarity 0.01 is below 0.2, and it holds 0 of 4 words",
        ),
        # What has no vector is not judged by one: a keyword-only hit is a hit.
        (made(0.4, 0.0, "cach", cosine=0.0), (), ""),
        # What is far behind the best of its group.
        (made(0.3, 0.3), (BEST,), "left out: its relevance 0.30 is far below the best, 0.90"),
        (made(0.4, 0.3), (BEST,), ""),
        # A score of a year ago is near 0.
        (made(0.004, 0.5, decay=0.01), (made(0.5, 0.5),), ""),
        # What was said of it makes it fall behind others, and leaves it out for nothing else.
        (made(0.27, 0.3, verdict=0.6), (made(0.9, 0.5),), ""),
    ],
)
def test_what_does_not_bear_on_the_query_is_left_out_with_why(one: Hit, others: tuple[Hit, ...], expected: str) -> None:
    """1.1-6, S0-13, S1-17, S4-29."""
    assert weighed(one, "q" if others else "How long is a cache entry kept?", *others) == expected


@pytest.mark.parametrize(
    ("query", "terms", "is_shown"),
    [
        ("what is the capital of France", ("capital",), False),
        ("capital", ("capital",), True),
        ("near twin 的阈值", ("near", "twin"), True),
        ("book a flight to Tokyo", ("flight",), False),
    ],
)
def test_one_word_of_several_is_no_reason(query: str, terms: tuple[str, ...], is_shown: bool) -> None:
    assert (weighed(made(0.8, 0.1, *terms), query) == "") is is_shown


def test_what_the_query_names_is_shown_and_is_no_measure_for_others() -> None:
    """S0-10."""
    named = made(1.0, 0.0, found_by=FoundBy.DOMAIN)
    assert drawbacks([named, made(0.3, 0.3)], "q") == ["", ""]
    assert drawbacks([], "q") == []


def test_the_closest_hit_in_the_other_language_is_shown_though_no_word_can_match() -> None:
    """1.1-6: the others are judged as any, among themselves."""
    chinese = note("zh", "缓存的条目留五分钟。", title="缓存")
    closest, other, english = made(0.02, 0.08, memory=chinese), made(0.02, 0.06, memory=chinese), made(0.9, 0.4)
    assert [not each for each in drawbacks([english, other, closest], "How long is it kept?")] == [True, False, True]
    assert drawbacks([made(0.02, 0.04, memory=chinese)], "How long is it kept?") != [""]
    assert drawbacks([english, closest], "留多久？")[1].startswith("left out: its similarity 0.08")


def test_where_the_own_language_answers_nothing_of_the_other_is_shown_for_being_the_closest() -> None:
    """1.1-6: a note about something else is no answer because it is the only one in English."""
    chinese = note("zh", "先息后本由 interestFirst 实现。", title="先息后本")
    english = note("en", "On-call is on Monday.")
    answer, stray, close = made(0.5, 0.58, "先息", memory=chinese), made(0.15, 0.17, memory=english), made(0.15, 0.3)
    assert drawbacks([answer, stray], "先息后本怎么实现？")[1].startswith("left out: its similarity 0.17")
    assert drawbacks([answer, close], "先息后本怎么实现？") == ["", ""]
