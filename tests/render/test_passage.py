"""Passages that answer a query, and the choice of the hits that the context form shows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from hummock.core.candidates import FoundBy
from hummock.core.memory import Memory
from hummock.core.recall import Hit
from hummock.render.passage import Passage, columns, passage_of
from hummock.render.pipeline import drawbacks
from tests.render.samples import note
from tests.render.test_render import hit

FILLER = [f"第 {n} 条说的是别的事情。" for n in range(60)]
WARM = ["the cache is warm"] * 40


def found(lines: list[str], query: str, limit: int = 200) -> Passage:
    return passage_of("\n".join(lines), query, limit)


def test_a_text_that_fits_is_whole() -> None:
    assert passage_of("一行\n两行", "", 200) == Passage(text="一行\n两行", first_line=0, last_line=1)
    assert passage_of("", "", 1).is_whole


@pytest.mark.parametrize(
    ("line", "query"),
    [
        ("还款日是每月 8 日，节假日顺延。", "还款日是哪天？"),
        ("Retries stop after five attempts.", "how many retries until it stops?"),
        ("    return queries[user_id]", "where is userId looked up among queries, user_id"),
        ("The 还款 API is paginated by cursor.", "还款 API 怎么分页 pagination"),
    ],
)
def test_the_line_that_holds_the_querys_words_is_shown_wherever_it_stands(line: str, query: str) -> None:
    """S1-22, S2-03: in Chinese, English, code and mixtures of them."""
    for place in (0, 30, 60):
        passage = found([*FILLER[:place], line, *FILLER[place:]], query)
        assert line in passage.text.split("\n")
        assert passage.is_found
        assert passage.first_line <= place <= passage.last_line


@pytest.mark.parametrize(
    ("lines", "query", "shown"),
    [
        # The rarer word decides.
        ([*WARM, "the cache forgets entries after five minutes", *WARM], "when does the cache forget", "five minutes"),
        # Words that stand together outweigh one alone.
        (["decay is off", *FILLER, "half life of the decay", *FILLER], "half life decay", "half life of the decay"),
    ],
)
def test_the_line_that_tells_most_is_shown(lines: list[str], query: str, shown: str) -> None:
    assert shown in found(lines, query).text


def test_without_a_word_in_common_it_is_the_beginning() -> None:
    passage = found(FILLER, "unrelated")
    assert passage.text.startswith(FILLER[0])
    assert (passage.is_found, passage.is_cut_before, passage.is_cut_behind) == (False, False, True)


def test_a_little_of_what_stands_before_is_shown_and_more_of_what_follows() -> None:
    passage = found([*FILLER[:30], "还款日是 8 日。", *FILLER[30:]], "还款日")
    lines = passage.text.split("\n")
    assert 0 < lines.index("还款日是 8 日。") < len(lines) - 2


def test_a_text_of_one_line_is_cut_between_sentences() -> None:
    text = (
        "".join(f"这是第{n}句话。" for n in range(80)) + "还款日是八日。" + "".join(f"还有{n}句。" for n in range(80))
    )
    passage = passage_of(text, "还款日", 200)
    assert "还款日是八日。" in passage.text
    assert passage.text.endswith("。")
    assert text[text.index(passage.text) - 1] == "。"


def test_a_line_that_fits_is_never_parted_and_a_sentence_that_is_too_long_is_cut_between_words() -> None:
    lines = [f"Line {n} is nearly as long as all the room that a passage has here." for n in range(20)]
    assert found(lines, "line 7", 100).text in lines
    assert set(passage_of("word " * 1000, "", 100).text.split()) == {"word"}


TEXTS = st.text(st.sampled_from("还款 ab.\n。_ß\u0301İ😀("), max_size=400)


@given(text=TEXTS, query=TEXTS, limit=st.integers(1, 120))
def test_a_passage_is_a_part_of_its_text_within_the_limit(text: str, query: str, limit: int) -> None:
    """S2-03."""
    for measure in (columns, len):
        passage = passage_of(text, query, limit, measure)
        assert passage.text in text
        # Where a character alone is wider than the limit, it stands alone.
        assert measure(passage.text) <= limit + 2
        first, last = passage.first_line, passage.last_line
        assert passage.text in "\n".join(text.split("\n")[first : last + 1])
        assert passage.is_whole or len(passage.text) < len(text)


@given(words=st.lists(st.sampled_from(["alpha", "beta_2", "Γάμμα", "café"]), min_size=30, max_size=80))
def test_no_word_is_cut(words: list[str]) -> None:
    passage = passage_of(" ".join(words), words[-1], 60)
    assert set(passage.text.split()) <= set(words)


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


@pytest.mark.parametrize(
    ("text", "similarity", "terms", "is_shown"),
    [
        ("why did the import job fail last night?", 0.3, (), False),
        ("为什么我们不用这个框架？", 0.3, (), False),
        ("why did the import job fail last night?", 0.36, (), True),
        ("how long is the cache kept?", 0.3, ("long", "cache", "kept"), True),
        ("It failed last night. Why?", 0.3, (), True),
        ("it failed last night", 0.3, (), True),
    ],
)
def test_a_question_is_shown_for_more_than_being_one(
    text: str, similarity: float, terms: tuple[str, ...], is_shown: bool
) -> None:
    """1.1-6."""
    query = "条目留多久？" if "框架" in text else "How long is a cache entry kept?"
    one = made(0.5, similarity, *terms, memory=note("n", text, title=text))
    assert (weighed(one, query) == "") is is_shown


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
