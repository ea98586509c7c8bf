"""Questions that depend on those before them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummock.render.search import leans_back

LEANING = [
    "它在哪里被调用？",
    "它们在哪里定义？",
    "那计算公式呢？",
    "测试呢？",
    "为什么？",
    "怎么用？",
    "这个在哪里配置",
    "还有别的吗",
    "它的参数是什么",
    "上面说的表在哪",
    "and the tests?",
    "what is it for?",
    "where is it called?",
    "and what is the limit?",
    "how long does it wait?",
    "why?",
    "what about retries?",
    "who calls that?",
    "show me its values",
    "?",
    "",
]
STANDING = [
    "增加先本后息的还款方式",
    "还款方式有哪些类型？",
    "PaymentService 类作用",
    "还款方式 添加 流程",
    "这个 webhook 失败了会重试几次？",
    "其他模块怎么调用还款服务",
    "应该在哪个类里计算利息",
    "因此需要修改哪个文件",
    "其中哪些类属于还款模块的接口",
    "How does the list API paginate?",
    "What happens when a webhook delivery keeps failing?",
    "parse_date",
    "RepaymentCalculator.calculate monthlyRate divide",
    "Where is the retry policy of this payment service configured?",
    "tests",
    "潮汐木芯",
]


@pytest.mark.parametrize("text", LEANING)
def test_a_question_with_nothing_of_its_own_leans(text: str) -> None:
    """S1-21."""
    assert leans_back(text)


@pytest.mark.parametrize("text", STANDING)
def test_a_question_that_says_what_it_is_about_does_not(text: str) -> None:
    """S1-21."""
    assert not leans_back(text)


@given(st.text(max_size=300))
def test_any_text_has_an_answer_and_one_that_refers_to_nothing_stands_by_a_word(text: str) -> None:
    """X6."""
    assert isinstance(leans_back(text), bool)
    assert not leans_back("repayment calculator " + "x" * len(text))
