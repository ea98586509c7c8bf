"""Keywords and candidate domain names of a sentence."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummock.store.views import domain_names
from hummock.store.views.domain_names import DomainNames
from hummock.text.analyzer import query_terms
from hummock.text.keywords import is_word_at, keywords, phrases
from hummock.text.normalise import prose
from hummock.text.question import MAX_OPENING, Question
from hummock.text.word_lists import CHINESE_STOP_WORDS, ENGLISH_STOP_WORDS

MIXED = st.text(st.sampled_from("还款的目和平在线先本后息aB1 ,。-_.+'/#’\n"), max_size=40)


def domain_windows(text: str) -> frozenset[str]:
    """Every stretch of the text that may be a domain's name or alias, in the form of `normalise.prose`."""
    normal_form = domain_names._normal_form(text)
    starts = [unit.start() for unit in domain_names._UNIT.finditer(normal_form)]
    each = (domain_names._windows_from(normal_form, start) for start in starts)
    return frozenset(window for windows in each for window in windows)


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("增加先本后息的还款方式", ("增加先本后息", "还款方式")),
        ("如何修改 PaymentService 的重试策略？", ("修改", "PaymentService", "重试策略")),
        ("缓存为什么失效", ("缓存", "失效")),
        ("How do I parse a date in Python?", ("parse", "date", "Python")),
        ("帮我看 C++ 和 node.js 的区别", ("C++", "node.js", "区别")),
        ("还款目的是什么", ("还款目的",)),
        ("的", ()),
        ("", ()),
        ("？！, . ", ()),
    ],
)
def test_keywords_are_what_the_sentence_is_about(sentence: str, expected: tuple[str, ...]) -> None:
    """S0-36, S0-04 as far as the sentence goes (1.1-15)."""
    assert keywords(Question(sentence)) == expected


@given(st.text() | MIXED, st.integers(0, 6))
def test_keywords_are_few_distinct_long_enough_and_no_stop_words(text: str, limit: int) -> None:
    """S0-36."""
    found = keywords(Question(text), limit)
    assert len(found) <= limit
    assert len({word.casefold() for word in found}) == len(found)
    assert all(len(word) >= 2 for word in found)
    assert not {word.casefold() for word in found} & (CHINESE_STOP_WORDS | ENGLISH_STOP_WORDS)


def test_words_that_differ_in_case_alone_are_one_keyword() -> None:
    assert keywords(Question("Redis REDIS 缓存")) == ("Redis", "缓存")


@pytest.mark.parametrize(
    "domain", ["还款", "还款方式", "先本后息", "PaymentService", "order-service", "B超", "C++", "HTTP 缓存"]
)
def test_a_domain_that_the_sentence_names_is_among_its_windows(domain: str) -> None:
    """S0-10: domains are looked up exactly."""
    assert prose(domain) in domain_windows(f"请问增加先本后息的还款方式，{domain}和其他的关系？")


def test_a_name_of_several_english_words_is_a_window() -> None:
    windows = domain_windows("How does the  Payment Retry\nPolicy work?")
    assert {"payment", "payment retry policy", "retry policy"} <= windows
    assert "how does the payment retry policy" not in windows


def test_windows_have_two_to_twelve_chinese_characters_and_do_not_reach_over_punctuation() -> None:
    assert {len(window) for window in domain_windows("一二三四五六七八九十" * 3)} == set(range(2, 13))
    assert "还款方式" not in domain_windows("还款，方式")


@given(MIXED)
def test_every_window_is_a_normal_form_found_in_the_text(text: str) -> None:
    normal = prose(text)
    for window in domain_windows(text):
        assert window in normal
        assert window == prose(window)


@given(MIXED, st.sets(MIXED.map(prose).filter(bool), max_size=6), st.data())
def test_the_names_within_a_text_are_those_among_its_windows(text: str, names: set[str], data: st.DataObject) -> None:
    windows = sorted(domain_windows(text))
    if windows:
        names |= data.draw(st.sets(st.sampled_from(windows), max_size=3))
    numbers = {name: number for number, name in enumerate(sorted(names))}
    assert DomainNames.of(numbers).within(text) == {name: numbers[name] for name in names & set(windows)}


def test_only_the_beginning_of_a_long_text_is_looked_at_and_an_empty_one_has_no_windows() -> None:
    assert "还款" not in domain_windows("x " * (MAX_OPENING // 2) + "还款")
    assert domain_windows("") == frozenset()


def stands(text: str, word: str) -> bool:
    start = text.index(word)
    return is_word_at(text, start, start + len(word))


WORDS = [
    ("去火山脚下", "火山"), ("吃了水果然后睡觉", "水果"), ("增加先本后息的还款方式", "还款"), ("潮汐", "潮汐"),
    ("我的天命", "天命"),
    # What nobody knows is given the benefit of doubt.
    ("龘靐齉爩", "靐齉"),
]  # fmt: skip
HALVES = [
    ("喝水果然舒服", "水果"), ("归还款项", "还款"), ("金额度量", "额度"), ("结果子弹", "果子"), ("今天命令", "天命"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "word", "expected"), [*((*pair, True) for pair in WORDS), *((*pair, False) for pair in HALVES)]
)
def test_a_word_is_one_but_not_one_end_with_another_beginning(text: str, word: str, expected: bool) -> None:
    assert stands(text, word) is expected


@given(st.text(st.sampled_from("水果然后今天命令 龘\ud800"), min_size=1, max_size=30), st.data())
def test_any_stretch_has_an_answer(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    assert is_word_at(text, start, end) in (True, False)


# Phrases of a sentence made of distinctive terms.


def all_of(text: str) -> list[str]:
    return list(phrases(text, lambda term: True))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("潮汐木芯是怎么来的？", ["潮汐木芯"]),
        ("我们应该如何使用那块硬木头", ["硬木头"]),
        ("那种芦苇编的材料堆在哪里了", ["芦苇编", "材料堆"]),
        ("请问目的地", []),
        ("where do we keep the tidewood core?", ["tidewood", "core"]),
        ("call parse_date in utils.py 2024 times", ["parse_date", "utils.py"]),
        ("用 tidewood 做的潮汐木芯", ["tidewood", "潮汐木芯"]),
        ("", []),
        ("？！ … 1 2 3", []),
        ("什么 是 的 the a", []),
    ],
)
def test_a_phrase_is_what_is_left_between_the_words_of_any_sentence(text: str, expected: list[str]) -> None:
    """S3-01."""
    assert all_of(text) == expected


def test_a_term_that_is_not_distinctive_ends_a_phrase() -> None:
    """S3-01."""
    assert list(phrases("蓝焰潮汐木芯", lambda term: term != "焰潮")) == ["蓝焰", "潮汐木芯"]
    assert list(phrases("utils.py parse_date tidewood", lambda term: term not in {"py", "parse_date"})) == ["tidewood"]


@given(st.text(alphabet=st.sampled_from("潮汐木芯的是什么abc_1 ，\ud800")) | st.text())
def test_every_term_of_a_phrase_is_distinctive(text: str) -> None:
    """S3-01."""
    told = set(query_terms(text)[::2])
    for phrase in phrases(text, told.__contains__):
        # Only the first term: the parts of a name in code need not be distinctive.
        assert query_terms(phrase)[0] in told


@pytest.mark.parametrize("text", ["潮" * 50_000, "潮的" * 25_000, "a." * 25_000, "潮a" * 25_000])
def test_a_text_made_to_be_slow_is_looked_through_once(text: str) -> None:
    """S3-01."""
    asked: list[str] = []

    def is_distinctive(term: str) -> bool:
        asked.append(term)
        return True

    for _ in phrases(text, is_distinctive):
        pass
    assert len(asked) <= 2 * len(text)


@given(st.text())
def test_any_text_has_phrases_or_none(text: str) -> None:
    """S3-01."""
    assert all(phrase and phrase == phrase.strip() for phrase in all_of(text))
