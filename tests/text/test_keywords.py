"""Keywords and candidate domain names of a sentence."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummock.store.views import domain_names
from hummock.store.views.domain_names import MAX_CHARACTERS, names_within
from hummock.text.keywords import keywords
from hummock.text.normalise import prose
from hummock.text.word_lists import CHINESE_STOP_WORDS, ENGLISH_STOP_WORDS

MIXED = st.text(st.sampled_from("还款的目和平在线先本后息aB1 ,。-_.+'/#’\n"), max_size=40)


def domain_windows(text: str) -> frozenset[str]:
    """Every stretch of the text that may be a domain's name or alias, in the form of `normalise.prose`."""
    normal_form = domain_names._normal_form(text)
    units = list(domain_names._UNIT.finditer(normal_form))
    each = (domain_names._windows_from(normal_form, units, first) for first in range(len(units)))
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
    assert keywords(sentence) == expected


@given(st.text() | MIXED, st.integers(0, 6))
def test_keywords_are_few_distinct_long_enough_and_no_stop_words(text: str, limit: int) -> None:
    """S0-36."""
    found = keywords(text, limit)
    assert len(found) <= limit
    assert len({word.casefold() for word in found}) == len(found)
    assert all(len(word) >= 2 for word in found)
    assert not {word.casefold() for word in found} & (CHINESE_STOP_WORDS | ENGLISH_STOP_WORDS)


def test_words_that_differ_in_case_alone_are_one_keyword() -> None:
    assert keywords("Redis REDIS 缓存") == ("Redis", "缓存")


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


def test_windows_do_not_reach_over_punctuation() -> None:
    assert "还款方式" not in domain_windows("还款，方式")


def test_windows_have_two_to_twelve_chinese_characters() -> None:
    lengths = {len(window) for window in domain_windows("一二三四五六七八九十" * 3)}
    assert lengths == set(range(2, 13))


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
    lengths: dict[str, set[int]] = {}
    for name in names:
        lengths.setdefault(name[0], set()).add(len(name))
    assert names_within(text, names, lengths) == names & set(windows)


def test_only_the_beginning_of_a_long_text_is_looked_at() -> None:
    assert "还款" not in domain_windows("x " * (MAX_CHARACTERS // 2) + "还款")


def test_an_empty_text_has_no_windows() -> None:
    assert domain_windows("") == frozenset()
