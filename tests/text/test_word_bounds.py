from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummock.text.keywords import is_word_at


def stands(text: str, word: str) -> bool:
    start = text.index(word)
    return is_word_at(text, start, start + len(word))


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("去火山脚下", "火山"),
        ("吃了水果然后睡觉", "水果"),
        ("增加先本后息的还款方式", "还款"),
        ("潮汐", "潮汐"),
        ("我的天命", "天命"),
    ],
)
def test_a_word_among_its_neighbours_is_one(text: str, word: str) -> None:
    assert stands(text, word)


@pytest.mark.parametrize(
    ("text", "word"),
    [("喝水果然舒服", "水果"), ("归还款项", "还款"), ("金额度量", "额度"), ("结果子弹", "果子"), ("今天命令", "天命")],
)
def test_the_end_of_one_word_and_the_beginning_of_another_are_none(text: str, word: str) -> None:
    assert not stands(text, word)


def test_what_nobody_knows_is_given_the_benefit_of_doubt() -> None:
    assert stands("龘靐齉爩", "靐齉")


@given(st.text(st.sampled_from("水果然后今天命令 龘\ud800"), min_size=1, max_size=30), st.data())
def test_any_stretch_has_an_answer(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    assert is_word_at(text, start, end) in (True, False)
