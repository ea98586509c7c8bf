"""Kind of answer that a question wants."""

from __future__ import annotations

import pytest

from hummock.core.recall import Wanted
from hummock.text.question import Question
from hummock.text.questions import Trait, asks, is_only_of_times, is_small_talk, traits_of, wanted_by
from hummock.text.time_words import time_intervals

NOON = 1_684_319_400.0


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("When did Mia move to Porto?", Wanted.WHEN),
        ("What date was the concert?", Wanted.WHEN),
        ("How long ago did he start?", Wanted.WHEN),
        ("我什么时候买的相机？", Wanted.WHEN),
        ("那次体检的具体日期是？", Wanted.WHEN),
        ("上次团建是哪天", Wanted.WHEN),
        ("What did you suggest for the headache?", Wanted.FROM_ASSISTANT),
        ("what was your advice on the roof", Wanted.FROM_ASSISTANT),
        ("你上次推荐的餐厅叫什么", Wanted.FROM_ASSISTANT),
        ("上周你教我的那道菜怎么做", Wanted.FROM_ASSISTANT),
        # Other texts want nothing in particular.
        *(
            (text, Wanted.NOTHING)
            for text in (
                "", "When I was in the library I read a novel, remind me of it", "retry when the server is down",
                "the person who likes tea", "你能推荐一家餐厅吗", "我给你推荐过一本书", "Can you recommend a book?",
                "当时间到了就关闭", "parse_date",
            )
        ),
    ],
)  # fmt: skip
def test_the_words_of_a_question_say_what_it_wants(text: str, wanted: Wanted) -> None:
    assert wanted_by(Question(text)) == wanted


@pytest.mark.parametrize(
    ("text", "is_only"),
    [
        ("11月19日我做了什么", True), ("上周五我在忙些什么？", True), ("帮我看看国庆节那天记了什么", True),
        ("What did I do on May 2nd?", True), ("How did I spend my time last weekend?", True),
        ("anything in my diary about last Tuesday", True), ("5月2日我买的裙子是什么颜色", False),
        ("上周五天气怎么样", False), ("Which movie did I watch on May 2nd?", False), ("我做了什么", False),
    ],
)  # fmt: skip
def test_a_question_may_be_of_a_time_and_of_nothing_else(text: str, is_only: bool) -> None:
    assert is_only_of_times(Question(text), [each.phrase for each in time_intervals(Question(text), NOON)]) == is_only


@pytest.mark.parametrize(
    ("text", "traits"),
    [
        ("Where to?", Trait.ASKS | Trait.ASKS_WITHIN),
        ("你还好吗？我昨天去了医院。", Trait.ASKS_WITHIN | Trait.TELLS_TIME),
        ("Did you go? Last Friday was fun.", Trait.ASKS_WITHIN | Trait.TELLS_TIME),
        ("How are you?\nFine.", Trait(0)),
        ("GET /a?b=c", Trait(0)),
        ("x = a ? b : c", Trait(0)),
        ("我喜欢川菜。", Trait(0)),
    ],
)
def test_a_turn_asks_or_tells_a_time(text: str, traits: Trait) -> None:
    assert traits_of(text) == traits


SMALL_TALK = [
    "ok", "OK.", "k", "thanks!", "thank you so much", "good morning", "Good night :)", "and then?", "go on", "yes",
    "hahaha", "hmm", "hello there", "see you later", "so what", "got it", "继续", "谢谢", "谢谢你", "好的", "嗯嗯",
    "早上好", "晚安", "然后呢？", "不用了", "再见", "辛苦了", "知道了", "還有呢", "謝謝", "ok 谢谢", "好的 thanks",
    "嗯，go on",
    "好的😊", "thanks! 🙏🏽", "ok <3", "what is it?", "it's ok",
]  # fmt: skip
NO_SMALL_TALK = [
    "", "...", "🦄", "ok lamp", "thanks for the recipe", "good restaurants", "and then the server?", "C#",
    "Go on Linux",
    "what is ✅?", "what is $?", "what is &&", "what is a?", "What's go?", "Go", "go?", "C", "R", "a", "for", "ok ✅",
    "it_is", "goOn", "hello()", "go.on", "好的👎", "什么是$", "继续部署", "谢谢她的礼物", "早上好喝的咖啡",
    "然后呢，缓存怎么办",
    "晚安故事", "ok 缓存", "好" * 41, "what did I say", "昨天", "吗啡",
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "is_small"), [*((text, True) for text in SMALL_TALK), *((text, False) for text in NO_SMALL_TALK)]
)
def test_small_talk_names_nothing_and_what_names_something_is_none(text: str, is_small: bool) -> None:
    assert is_small_talk(Question(text)) is is_small


ASKING = [
    "你喜欢哪种菜系呢？", "I cook a lot.\nWhat do you like to eat?", "他问：“你去哪里？” ", "(really?)", "?",
    "什么?!?\n",
]  # fmt: skip
NOT_ASKING = ["", " ", "我喜欢川菜。", "Why? Because it is late.", "is it so", "x = a ? b : c", "?" + " " * 40]


@pytest.mark.parametrize(
    ("text", "expected"), [*((one, True) for one in ASKING), *((one, False) for one in NOT_ASKING)]
)
def test_a_text_that_ends_in_a_question_asks_and_others_do_not(text: str, expected: bool) -> None:
    assert asks(text) is expected
