"""Texts that count as equal."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummock.text import normalise
from hummock.text.analyzer import document_terms, query_terms, query_words
from hummock.text.glossary import gloss
from hummock.text.keywords import content_weights, keywords
from hummock.text.normalise import simplified, simplified_forms, text_hash
from hummock.text.question import Question
from hummock.text.questions import wanted_by
from hummock.text.time_words import time_intervals

MARKED = st.text(st.sampled_from("aΑΣςßİı\u0345\u0301\u0316\u0308\u0f73ｶﾞ가ᄀ\ufdfaﬁ℡ \u3000\t还"), max_size=12)


@pytest.mark.parametrize("form", [normalise.prose, normalise.code])
@given(text=st.text() | MARKED)
def test_the_form_of_a_form_is_itself(form: Callable[[str], str], text: str) -> None:
    """DESIGN 4, dedupe on write."""
    once = form(text)
    assert form(once) == once


@given(st.text() | MARKED | st.text(st.sampled_from("，！？；：（）～．　…a\u0301\u0338")))
def test_plain_marks_leave_the_normal_form_as_it_is(text: str) -> None:
    assert unicodedata.normalize("NFKC", normalise.with_plain_marks(text)) == unicodedata.normalize("NFKC", text)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("还款 方式", "　还款\n\n方式 "), ("ＡＢＣ１２３", "abc123"), ("Straße", "STRASSE"), ("café", "cafe\u0301"),
        ("ﾊﾞｯｸｱｯﾌﾟ", "バックアップ"), ("", " \t\u3000\n"),
    ],
)  # fmt: skip
def test_prose_differs_neither_in_width_nor_in_case_nor_in_spaces(one: str, other: str) -> None:
    """S4-28."""
    assert normalise.prose(one) == normalise.prose(other)
    assert normalise.text_hash(one, is_code=False) == normalise.text_hash(other, is_code=False)


@pytest.mark.parametrize(("one", "other"), [("parseDate", "parsedate"), ("a\n  b", "a b"), ("x１", "x1")])
def test_code_differs_in_case_spaces_and_width(one: str, other: str) -> None:
    """DESIGN 4: code NFC only."""
    assert normalise.text_hash(one, is_code=True) != normalise.text_hash(other, is_code=True)


def test_code_written_with_combining_marks_is_the_same_code() -> None:
    hashes = [normalise.text_hash(text, is_code=True) for text in ("é = 1", "e\u0301 = 1")]
    assert hashes[0] == hashes[1]
    assert len(normalise.text_hash("\ud800", is_code=False)) == 16


def test_ordinary_marks_are_normalised_as_unicode_says() -> None:
    text = "Việt Nam, Ελλάδα, हिन्दी, " + "e" + "\u0316\u0301" * 15
    assert normalise.nfkc(text) == unicodedata.normalize("NFKC", text)


@pytest.mark.parametrize("pair", ["\u0301\u0316", "\u0f73", "\u0344\u0316", "\uff9e\u0316"])
def test_a_run_of_combining_marks_is_broken_up_before_it_is_sorted(pair: str) -> None:
    """Sorting a run of n marks takes time in n squared: minutes for 256 KiB, and nothing else would run meanwhile."""
    normal = normalise.nfkc("a" + pair * 20_000)
    longest = max(len(run) for run in "".join(c if unicodedata.combining(c) else " " for c in normal).split())
    assert longest <= 60  # 30 characters, of which some are two marks


# Traditional characters and their simplified forms.


HAN = st.text(st.characters(min_codepoint=0x3400, max_codepoint=0x9FFF))


@given(HAN)
def test_either_way_of_writing_has_the_same_terms_and_folding_twice_changes_nothing(text: str) -> None:
    once = simplified(text)
    assert simplified(once) == once
    assert len(once) == len(text)
    assert document_terms(text) == document_terms(simplified(text))
    assert query_terms(text) == query_terms(simplified(text))


def test_no_simplified_form_is_traditional() -> None:
    forms = simplified_forms()
    assert not forms.keys() & set(forms.values())
    assert len(forms) > 2_500


def test_characters_of_every_region_are_known() -> None:
    assert simplified("還款後顯示帳單，臺灣裡的麵條，為什麼著急") == "还款后显示帐单，台湾里的面条，为什么着急"
    assert simplified("裏面的綫、羣組、喫飯、瞭解") == "里面的线、群组、吃饭、了解"
    assert simplified("parse_date の取得 한국어 么") == "parse_date の取得 한국어 么"


def test_terms_are_simplified_and_what_they_were_made_of_is_not() -> None:
    assert list(query_words("還款")) == [("还款", "還款")]
    assert document_terms("還款") == ["还", "还款", "款"]


def test_traditional_texts_are_texts_of_their_own() -> None:
    """1.1-2: the same text twice is one memory; another way of writing it is not the same text."""
    assert text_hash("還款", is_code=False) != text_hash("还款", is_code=False)


def test_questions_times_stop_words_and_the_glossary_know_traditional_characters() -> None:
    assert wanted_by(Question("我們什麼時候還款")) == wanted_by(Question("我们什么时候还款"))
    (asked,) = time_intervals(Question("上個月的帳單"), 1.8e9)
    (same,) = time_intervals(Question("上个月的帐单"), 1.8e9)
    assert (asked.start, asked.end, asked.phrase) == (same.start, same.end, "上個月")
    assert keywords(Question("為什麼還款失敗")) == ("還款失敗",)
    traditional, plain = gloss(Question("緩存怎麼過期")), gloss(Question("缓存怎么过期"))
    assert traditional == plain
    terms = tuple(query_terms("為什麼還款"))
    assert (
        content_weights(terms, [Question("為什麼還款")]).tolist()
        == content_weights(terms, [Question("为什么还款")]).tolist()
    )
