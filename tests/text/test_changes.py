"""Words of change in a sentence, and of the past in a question."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummock.text.question import question_of
from hummock.text.questions import MAX_CHANGE_BYTES, Tense, Trait, tells_change, tense_of, traits_of


@pytest.mark.parametrize(
    "text",
    [
        "We moved to Bristol last weekend",
        "PRs need one approval now.",
        "I am no longer allergic to cats",
        "The queue was REPLACED by Kafka",
        "The meeting got pushed back to Friday",
        "上周末我们搬到滨江了",
        "测试库昨天升级成 8.0 了",
        "我不再对猫毛过敏",
        "從下週起例會改到週五",
        "超时已经调到 10 秒",
        "主分支更名為 main",
        "人数上限提到十二个了",
        "上传上限提至 20 MB",
    ],
)
def test_a_change_is_told_by_its_words(text: str) -> None:
    assert tells_change(text)
    assert Trait.TELLS_CHANGE in traits_of(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I live in a flat in Leeds near the station.",
        "The build uses Maven with a parent pom.",
        "Knowledge of newton and renewal",
        "我住在杭州西湖区文三路的公寓里。",
        "缓存过期时间是五分钟。",
        "改善体验，改进流程",
        "我会跟你分享刚才提到的电影情节。",
        "We moved. " + "x" * MAX_CHANGE_BYTES,
        "我们搬家了。" + "一" * 90,
    ],
)
def test_no_change_is_told_by_a_plain_fact_nor_by_a_document(text: str) -> None:
    assert not tells_change(text)


@pytest.mark.parametrize(
    ("question", "tense"),
    [
        ("Where do I live?", Tense.NOW),
        ("我住在哪里？", Tense.NOW),
        ("目前用的是什么前端框架", Tense.NOW),
        ("parseDate", Tense.NOW),
        ("", Tense.NOW),
        ("Where did I live before we moved?", Tense.FORMER),
        ("what did the build use originally", Tense.FORMER),
        ("我搬家之前住哪儿？", Tense.FORMER),
        ("還款提醒原來用什麼發送？", Tense.FORMER),
        ("What did we eat in Leeds?", Tense.PAST),
        ("昨天谁来了", Tense.PAST),
        ("我是什么时候学会街舞的？", Tense.PAST),
        ("发布窗口是什么时候？", Tense.NOW),
        ("我朋友的生日是哪天", Tense.NOW),
        ("前天开会说了什么", Tense.PAST),
    ],
)
def test_a_question_asks_for_now_for_before_or_for_some_time(question: str, tense: Tense) -> None:
    assert tense_of(question_of(question)) is tense


@given(st.text(max_size=400))
def test_no_text_is_an_error(text: str) -> None:
    tells_change(text)
    tense_of(question_of(text))
