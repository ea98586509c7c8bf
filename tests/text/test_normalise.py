"""Texts that count as equal."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummock.text import normalise

MARKED = st.text(st.sampled_from("aΑΣςßİı\u0345\u0301\u0316\u0308\u0f73ｶﾞ가ᄀ\ufdfaﬁ℡ \u3000\t还"), max_size=12)


@given(st.text() | MARKED)
def test_the_prose_form_of_a_prose_form_is_itself(text: str) -> None:
    """DESIGN 4, dedupe on write."""
    once = normalise.prose(text)
    assert normalise.prose(once) == once


@given(st.text() | MARKED)
def test_the_code_form_of_a_code_form_is_itself(text: str) -> None:
    once = normalise.code(text)
    assert normalise.code(once) == once


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("还款 方式", "　还款\n\n方式 "),
        ("ＡＢＣ１２３", "abc123"),
        ("Straße", "STRASSE"),
        ("café", "cafe\u0301"),
        ("ﾊﾞｯｸｱｯﾌﾟ", "バックアップ"),
        ("", " \t\u3000\n"),
    ],
)
def test_prose_differs_neither_in_width_nor_in_case_nor_in_spaces(one: str, other: str) -> None:
    """S4-28."""
    assert normalise.prose(one) == normalise.prose(other)
    assert normalise.text_hash(one, is_code=False) == normalise.text_hash(other, is_code=False)


@pytest.mark.parametrize(("one", "other"), [("parseDate", "parsedate"), ("a\n  b", "a b"), ("x１", "x1")])
def test_code_differs_in_case_spaces_and_width(one: str, other: str) -> None:
    """DESIGN 4: code NFC only."""
    assert normalise.text_hash(one, is_code=True) != normalise.text_hash(other, is_code=True)


def test_code_written_with_combining_marks_is_the_same_code() -> None:
    assert normalise.text_hash("é = 1", is_code=True) == normalise.text_hash("e\u0301 = 1", is_code=True)


def test_a_hash_is_sixteen_bytes_even_of_a_lone_surrogate() -> None:
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
