"""What is small talk, and what a fact may be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummock.text.small_talk import is_awaited, tells_nothing

SMALL_TALK = [
    *("good morning", "I'm so tired", "OK!", "How are you doing today?", "Thanks a lot", "Sweet dreams!", "hmm"),
    *("Feeling a bit down today", "ok", "lol", "Good night, see you tomorrow", "I feel better now"),
    *(
        "嗯嗯",
        "今天有点累",
        "哈哈哈",
        "晚安，好梦",
        "在干嘛呢？",
        "我好无聊啊",
        "想你了",
        "谢谢你呀",
        "又是开心的一天",
        "今天心情不好",
    ),
    *("😀", "。。。", "👍👍", "haha 好的"),
]
FACTS = [
    *("I'm tired of Lima", "I moved to Bristol", "good morning Anna", "3 pm", "yes, the 7th", "API", "I have a dog"),
    *("a.py", "I am vegan", "I love jazz", "I am pregnant", "My dad died", "OK, use port 8080", "I can't eat nuts"),
    *(
        "我对花生过敏",
        "我明天去上海",
        "我养了一只猫",
        "我不吃香菜",
        "我叫小林",
        "我在北京",
        "我是医生",
        "我爱吃辣",
        "我今天生日",
    ),
    *("我怀孕了", "我有妹妹", "我睡觉打呼噜", "我和她分手了", "我戒烟了", "明天三点", "密码是好的123"),
]


@pytest.mark.parametrize("text", SMALL_TALK)
def test_what_greets_agrees_or_tells_a_mood_is_small_talk(text: str) -> None:
    assert tells_nothing(text)


@pytest.mark.parametrize("text", FACTS)
def test_what_names_anything_is_none(text: str) -> None:
    assert not tells_nothing(text)


@given(st.sampled_from(SMALL_TALK), st.sampled_from(FACTS), st.booleans())
def test_small_talk_beside_a_fact_hides_nothing(talk: str, fact: str, is_first: bool) -> None:
    assert not tells_nothing(f"{talk}, {fact}" if is_first else f"{fact}. {talk}")


def test_a_question_that_asks_for_a_fact_awaits_even_a_yes() -> None:
    assert is_awaited("Are you allergic to peanuts?")
    assert is_awaited("你对花生过敏吗？")
    assert not is_awaited("How are you today?")
    assert not is_awaited("你今天怎么样？")
    assert not is_awaited("You are allergic to peanuts.")
