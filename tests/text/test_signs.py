"""Signs, emoji, marks and names with signs, as terms."""

from __future__ import annotations

import sys
import unicodedata
from string import ascii_lowercase, ascii_uppercase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummock.text.analyzer import document_terms, query_terms
from hummock.text.keywords import keywords
from hummock.text.question import Question
from hummock.text.signs import has_sign
from hummock.text.terms import terms_of
from hummock_kernels.analyzer import BODY

EMOJI = ["🦄", "☕", "🫨", "🀄", "🇩🇪", "1️⃣", "#️⃣", "👩‍👩‍👧", "👁️‍🗨️", "❤️‍🔥", "🏳️‍🌈", "🏴󠁧󠁢󠁳󠁣󠁴󠁿", "☺︎"]
SYMBOLS = ["±", "≠", "©", "∑", "→", "€", "°", "✅", "×", "§", "¶", "‰", "√", "₹"]
WORDS = {
    **{"Devanagari": "मुंबई", "Bengali": "ঢাকা", "Gurmukhi": "ਅੰਮ੍ਰਿਤਸਰ", "Gujarati": "અમદાવાદ", "Oriya": "ଭୁବନେଶ୍ୱର"},
    **{"Tamil": "சென்னை", "Telugu": "హైదరాబాద్", "Kannada": "ಬೆಂಗಳೂರು", "Malayalam": "കൊച്ചി", "Sinhala": "කොළඹ"},
    **{"Tibetan": "ལྷ", "Arabic": "القُدْس", "Hebrew": "יְרוּשָׁלַיִם", "Cyrillic": "Москва", "Ethiopic": "አዲስ"},
    **{"Georgian": "თბილისი", "Armenian": "Երևան", "Greek": "Αθήνα", "Latin": "ṛ̥gveda"},
}
LETTERS = st.sampled_from(["क", "ক", "ก", "က", "ང", "ا", "ש", "a", "É", "ß", "я", "9"])
MARKS = st.sampled_from([chr(code) for code in range(sys.maxunicode) if unicodedata.category(chr(code))[0] == "M"])


@pytest.mark.parametrize("sign", EMOJI + SYMBOLS)
def test_a_sign_is_one_term_wherever_it_stands(sign: str) -> None:
    (term,) = query_terms(sign)
    for text in (sign, f"the {sign} is red", f"a{sign}b", f"中{sign}文", f"{sign}{sign}", f"हिन्दी{sign}"):
        assert document_terms(text).count(term) == text.count(sign)
    assert not set(query_terms("the red one, 中文 a b हिन्दी")) & {term}


def test_variation_selectors_tell_no_signs_apart_and_neighbouring_flags_are_two() -> None:
    assert query_terms("❤️ ☕︎ ©️ 1️⃣") == query_terms("❤ ☕ © 1⃣")
    assert query_terms("🇩🇪🇫🇷") == ["🇩🇪", "🇫🇷"]


@pytest.mark.parametrize("sign", ["👍🏽", "👩🏿‍💻", "👩🏻‍🤝‍👨🏿"])
def test_a_skin_tone_is_a_term_besides_the_emoji_without(sign: str) -> None:
    toneless = "".join(character for character in sign if not "🏻" <= character <= "🏿")
    assert document_terms(sign) == query_terms(sign) == [sign, toneless]
    assert document_terms(toneless) == [toneless]


@pytest.mark.long
def test_symbols_beyond_ascii_are_terms_and_frames_of_tables_are_none() -> None:
    no_signs = {*range(0x2500, 0x25A0), *range(0x2800, 0x2900), 0x2044, 0xFFFC}
    for code in set(range(0x80, sys.maxunicode)) - no_signs:
        character = chr(code)
        if unicodedata.category(character) in {"Sm", "Sc", "So"} and unicodedata.is_normalized("NFKC", character):
            assert query_terms(f"a {character} b") == ["a", character, "b"]
    for code in no_signs:
        assert not has_sign(chr(code))


def test_signs_of_code_are_no_terms() -> None:
    plain = f"0123456789 {ascii_uppercase} _ {ascii_lowercase}"
    assert query_terms("".join(map(chr, range(32, 127)))) == query_terms(plain)


def test_signs_that_normal_forms_spell_out_stay_words() -> None:
    assert document_terms("№ 5 Acme ™ 10² ½ ①") == ["no", "5", "acm", "tm", "102", "1", "2", "1"]


@pytest.mark.parametrize("word", WORDS.values(), ids=WORDS)
def test_a_word_of_any_script_is_one_term(word: str) -> None:
    assert len(query_terms(word)) == 1
    assert document_terms(f"x {word}, {word}") == ["x", *2 * query_terms(word)]


@pytest.mark.long
def test_every_mark_stays_within_the_word_whose_letter_it_follows() -> None:
    ignored = {*map(chr, (0x180B, 0x180C, 0x180D, 0x180F, *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)))}
    for code in range(sys.maxunicode + 1):
        mark = chr(code)
        if unicodedata.category(mark)[0] == "M":
            (term,) = query_terms(f"x ग{mark}ग y")[1:-1]
            assert term == ("गग" if mark in ignored else unicodedata.normalize("NFKC", f"ग{mark}ग".casefold()))


def test_keywords_keep_their_marks() -> None:
    assert keywords(Question("मुंबई कार्यालय, ঢাকা ṛ̥gveda")) == ("मुंबई", "कार्यालय", "ঢাকা", "ṛ̥gveda")


@given(st.lists(LETTERS | MARKS, min_size=1, max_size=6).map("".join))
def test_marks_are_read_as_by_the_kernel_that_reads_the_rest(text: str) -> None:
    (made,) = terms_of([[(f"A {text} b", BODY)]])
    spelt = made.batch.spell(range(*made.batch.indptr[made.place : made.place + 2].tolist()))
    assert set(spelt) == set(document_terms(f"A {text} b"))


@pytest.mark.parametrize("word", ["می‌خواهم", "क्‍ष", "co\u00adoperate", "\u200fשלום\u200e", "葛\U000e0100城"])
def test_what_cannot_be_seen_parts_no_word(word: str) -> None:
    visible = "".join(each for each in word if each not in "\u200c\u200d\u00ad\u200e\u200f\U000e0100")
    assert document_terms(word) == document_terms(visible)


def test_letters_put_together_and_apart_are_one() -> None:
    assert query_terms("e\u0301te\u0301 \u1112\u1161\u11ab\u1100\u1173\u11af") == query_terms("été 한글")


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("สำนักงานกรุงเทพปิดแล้ว", "กรุงเทพ"),
        ("ຫ້ອງການວຽງຈັນປິດແລ້ວ", "ວຽງຈັນ"),
        ("ရန်ကုန်ရုံးပိတ်သည်", "ရုံး"),
        ("ការិយាល័យភ្នំពេញបិទ", "ភ្នំពេញ"),
    ],
)
def test_a_word_is_found_within_a_run_without_spaces(text: str, word: str) -> None:
    assert set(query_terms(word)) <= set(document_terms(text))
    assert len(query_terms(word)) > 1


LANGUAGES = ["C#", "c#", "F#", "J#", "Q#", "C++", "c++", "Ｃ＃"]


@pytest.mark.parametrize("name", LANGUAGES)
@pytest.mark.parametrize("frame", ["{}", "in {}.", "({})", "我用{}写", "{}17", "{}, Go", "it's {}'s", "a {}-like one"])
def test_the_name_of_a_language_is_one_term(name: str, frame: str) -> None:
    term = unicodedata.normalize("NFKC", name).lower()
    terms = document_terms(frame.format(name))
    assert term in terms
    assert term[0] not in [*terms, "c"][:-1]


@pytest.mark.parametrize(
    ("code", "terms"),
    [
        ("#include <a.h>", ["includ", "a", "h"]),
        ("i++; ++c; n++", ["i", "c", "n"]),
        ("a##b c+++d _c++ x_c#", ["a", "b", "c", "d", "c", "x_c", "x", "c"]),
        ("x = c+d; y = c + +d", ["x", "c", "d", "y", "c", "d"]),
        ("c#define f#g", ["c", "defin", "f", "g"]),
        ("count++ Notepad++", ["count", "notepad"]),
    ],
)
def test_operators_of_code_are_no_names(code: str, terms: list[str]) -> None:
    assert document_terms(code) == query_terms(code) == terms
