from __future__ import annotations

import pytest

from hummock.text.questions import asks


@pytest.mark.parametrize(
    "text",
    [
        "你喜欢哪种菜系呢？",
        "I cook a lot.\nWhat do you like to eat?",
        "他问：“你去哪里？” ",
        "(really?)",
        "?",
        "什么?!?\n",
    ],
)
def test_a_text_that_ends_in_a_question_asks(text: str) -> None:
    assert asks(text)


@pytest.mark.parametrize(
    "text", ["", " ", "我喜欢川菜。", "Why? Because it is late.", "is it so", "x = a ? b : c", "?" + " " * 40]
)
def test_other_texts_do_not_ask(text: str) -> None:
    assert not asks(text)
