"""Choice of the lines of a text that bear on a query."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummock.render.passage import Passage, columns, passage_of, words_of

FILLER = [f"第 {n} 条说的是别的事情。" for n in range(60)]
WARM = ["the cache is warm"] * 40


def found(lines: list[str], query: str, limit: int = 200) -> Passage:
    return passage_of("\n".join(lines), words_of(query), limit)


def test_a_text_that_fits_is_whole() -> None:
    assert passage_of("一行\n两行", (), 200) == Passage(text="一行\n两行", first_line=0, last_line=1)
    assert passage_of("", (), 1).is_whole


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
    passage = passage_of(text, words_of("还款日"), 200)
    assert "还款日是八日。" in passage.text
    assert passage.text.endswith("。")
    assert text[text.index(passage.text) - 1] == "。"


def test_a_line_that_fits_is_never_parted_and_a_sentence_that_is_too_long_is_cut_between_words() -> None:
    lines = [f"Line {n} is nearly as long as all the room that a passage has here." for n in range(20)]
    assert found(lines, "line 7", 100).text in lines
    assert set(passage_of("word " * 1000, (), 100).text.split()) == {"word"}


TEXTS = st.text(st.sampled_from("还款 ab.\n。_ß\u0301İ😀("), max_size=400)


@given(text=TEXTS, query=TEXTS, limit=st.integers(1, 120))
def test_a_passage_is_a_part_of_its_text_within_the_limit(text: str, query: str, limit: int) -> None:
    """S2-03."""
    for measure in (columns, len):
        passage = passage_of(text, words_of(query), limit, measure)
        assert passage.text in text
        # Where a character alone is wider than the limit, it stands alone.
        assert measure(passage.text) <= limit + 2
        first, last = passage.first_line, passage.last_line
        assert passage.text in "\n".join(text.split("\n")[first : last + 1])
        assert passage.is_whole or len(passage.text) < len(text)


@given(words=st.lists(st.sampled_from(["alpha", "beta_2", "Γάμμα", "café"]), min_size=30, max_size=80))
def test_no_word_is_cut(words: list[str]) -> None:
    passage = passage_of(" ".join(words), words_of(words[-1]), 60)
    assert set(passage.text.split()) <= set(words)
