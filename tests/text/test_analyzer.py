"""Terms of documents and of queries."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hummock.text import analyzer
from hummock.text.analyzer import (
    MAX_TERM_CHARACTERS,
    document_terms,
    first_terms,
    other_spellings,
    query_terms,
    query_words,
)
from hummock.text.keywords import COMMON_WEIGHT, content_weights
from hummock.text.question import Question

MIXED = st.text(st.sampled_from("还款方式aZ09_-'’s éÉ。，ﬁ가かﾊﾞ\n.𠀀"), max_size=30)


@given(st.text() | MIXED)
def test_every_text_finds_itself_by_short_folded_terms(text: str) -> None:
    assert set(query_terms(text)) <= set(document_terms(text))
    for term in document_terms(text):
        assert 0 < len(term) <= MAX_TERM_CHARACTERS
        assert not re.search(r"[A-Z\s]", term)


@pytest.mark.long
@given(st.lists(st.from_regex("[A-Za-z0-9][A-Za-z0-9_-]{0,9}", fullmatch=True)))
def test_many_words_have_the_first_terms_of_each(words: list[str]) -> None:
    assert first_terms(words) == [query_terms(word)[0] for word in words]


@pytest.mark.parametrize(
    ("analyse", "text", "terms"),
    [
        # Chinese is stored as characters and overlapping pairs, and looked for by pairs.
        (document_terms, "还款方式", ["还", "还款", "款", "款方", "方", "方式", "式"]),
        (query_terms, "还款方式", ["还款", "款方", "方式"]),
        (query_terms, "税 b", ["税", "b"]),
        # Pairs do not reach over punctuation.
        (query_terms, "还款，方式", ["还款", "方式"]),
        # An identifier is kept whole and in stemmed parts, a word as its English stem alone.
        (document_terms, "parseHTTPResponse2", ["parsehttpresponse2", "pars", "http", "respons", "2"]),
        (document_terms, "running cached Dates", ["run", "cach", "date"]),
        # A contraction is one word, and a quoted string is not.
        (document_terms, "John's x = f'abc' don’t", ["john", "x", "f", "abc", "don't"]),
        (document_terms, "ＰａｒｓｅＤａｔｅ ﬁle ﾊﾞ", [*document_terms("ParseDate file"), "バ"]),
        (query_terms, "修改PaymentService重试", ["修改", "paymentservice", "payment", "servic", "重试"]),
    ],
)
def test_a_text_has_these_terms(analyse: Callable[[str], list[str]], text: str, terms: list[str]) -> None:
    assert analyse(text) == terms


def test_a_single_chinese_character_is_found() -> None:
    assert "税" in document_terms("个税起征点")


@pytest.mark.parametrize("text", ["ひらがなカナ", "한국어", "〇々〆", "𠀀𠀁"])
def test_kana_hangul_and_rare_ideographs_are_paired_too(text: str) -> None:
    assert query_terms(text) == [text[i : i + 2] for i in range(len(text) - 1)]


@pytest.mark.parametrize(
    ("identifier", "parts"),
    [
        ("user_id", ["user", "id"]),
        ("__init__", []),
        ("state-of-the-art", ["state", "of", "the", "art"]),
        ("MAX_SIZE", ["max", "size"]),
        ("userIDs", ["user", "id"]),
        ("utf8", ["utf", "8"]),
        ("2023-04-27", ["2023", "04", "27"]),
        ("ÜberGröße", ["über", "grösse"]),
    ],
)
def test_identifiers_of_every_style_are_split(identifier: str, parts: list[str]) -> None:
    whole = identifier.casefold().strip("_")
    assert document_terms(identifier) == [whole, *parts]


@pytest.mark.parametrize(
    "stored", ["parse_date", "parseDate", "parse-date", "ParseDate", "parsing dates", "PARSE_DATE"]
)
@pytest.mark.parametrize("asked", ["parseDate", "parse_date", "parse date"])
def test_styles_of_one_name_match_through_their_parts(stored: str, asked: str) -> None:
    assert {"pars", "date"} <= set(document_terms(stored)) & set(query_terms(asked))


def test_the_same_spelling_matches_as_a_whole_too() -> None:
    assert "parsedate" in query_terms("parseDate")
    assert "parsedate" in document_terms("val x = parseDate(raw)")


@pytest.mark.parametrize(
    ("name", "spellings"),
    [
        ("parseDate", ["parse_date", "parse-date"]),
        ("PARSE_DATE", ["parsedate", "parse-date"]),
        ("Sha256Of", ["sha_256_of", "sha-256-of", "sha256_of", "sha256-of"]),
        ("parsedate", ["parsedate"]),
        ("parse date", []),
        ("解析", []),
    ],
)
def test_a_name_has_other_spellings_by_its_parts(name: str, spellings: list[str]) -> None:
    assert other_spellings(name) == spellings


def test_long_terms_stay_distinct() -> None:
    one, other = document_terms("a" * 300 + "b"), document_terms("a" * 300 + "c")
    assert len(one) == len(other) == 1
    assert one != other
    assert one == query_terms("A" * 300 + "B")


@pytest.mark.parametrize("text", ["", " ", "。，！?", "___", "--", "\u0301", "├──┤", "\ud800"])
def test_a_text_without_words_has_no_terms(text: str) -> None:
    assert document_terms(text) == query_terms(text) == []


@pytest.mark.parametrize(
    "unit",
    ["a", "aA", "a-", "a_", "_", "还", "\u0301\u0316", "a1", "é", "'s", "-", "👍🏽", "👩\u200d", "क्", "c++", "1\u20e3"],
)
def test_one_hostile_token_gives_at_most_two_terms_a_character(unit: str) -> None:
    text = unit * (20_000 // len(unit))
    assert len(document_terms(text)) <= 2 * len(text) + 1


def test_threads_do_not_share_a_stemmer() -> None:
    text = " ".join(f"parsing{letter} dates running" for letter in "abcdefgh") * 20
    expected = document_terms(text)
    found: list[list[str]] = []
    threads = [threading.Thread(target=lambda: found.append(document_terms(text))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 4


def sample(path: Path, field: str, size: int) -> list[str]:
    lines = path.read_text("utf-8").splitlines()
    return [json.loads(line)[field] for line in lines[:: max(len(lines) // size, 1)]]


@pytest.mark.parametrize(
    ("corpus", "size", "pattern"),
    [
        ("cmrc2018-dev-zh/corpus.jsonl", 60, "([\u4e00-\u9fff]+)"),
        ("xquad-en-zh/corpus.en.jsonl", 60, "([A-Za-z]{2,})"),
        ("cosqa-code/corpus.jsonl", 200, r"def ([A-Za-z0-9_]+)\("),
    ],
    ids=["Chinese pairs", "English words", "names of code"],
)
def test_words_of_a_real_corpus_are_found(shared: Callable[[str], Path], corpus: str, size: int, pattern: str) -> None:
    for text in sample(shared(f"datasets/{corpus}"), "text", size):
        terms = set(document_terms(text))
        for word in re.findall(pattern, text):
            joined = "xquad" in corpus and re.search(rf"['’\w-]{word}|{word}['’\w-]", text)
            assert set(query_terms(word)) <= terms or joined


# Terms of a question that tell its subject.


def weights(text: str) -> dict[str, float]:
    terms = tuple(dict.fromkeys(query_terms(text)))
    return dict(
        zip(terms, (round(weight, 2) for weight in content_weights(terms, [Question(text)]).tolist()), strict=True)
    )


@pytest.mark.parametrize("text", ["What is it?", "how do I", "这是什么", "为什么", "你们在哪里", "the the THE"])
def test_words_of_any_question_tell_nothing(text: str) -> None:
    """S4-26, 1.1-10."""
    assert set(weights(text).values()) <= {0.0}


def test_names_and_rare_words_tell_all_they_can() -> None:
    assert weights("where is parse_date") == {"where": 0.0, "is": 0.0, "parse_date": 1.0, "pars": 1.0, "date": 1.0}


def test_common_words_tell_little() -> None:
    told = weights("请问这个问题的答案 1 number of kimchi")
    assert told["问题"] == told["答案"] == told["1"] == told["number"] == COMMON_WEIGHT
    assert told["kimchi"] == 1.0


def test_pairs_that_cross_a_stop_word_tell_nothing() -> None:
    told = weights("数据库的备份怎么恢复")
    assert told["库的"] == told["的备"] == told["份怎"] == told["么恢"] == told["怎么"] == 0.0
    assert told["数据"] > 0
    assert told["备份"] == 1.0


def test_no_terms_have_no_weights() -> None:
    assert content_weights((), []).shape == (0,)


@given(st.text(st.sampled_from("aBcCs tT1_-'#+.?*"), max_size=24) | st.text(st.characters(max_codepoint=127)))
@example("it's C++ and c#, a_b--c x-1's' C+++ _a__b")
def test_tokens_of_ascii_are_those_of_any_text(text: str) -> None:
    found, expected = analyzer._ASCII_TOKEN.finditer(text), analyzer.TOKEN.finditer(text)
    assert [(each.span(), each.groups()) for each in found] == [(each.span(), each.groups()) for each in expected]


@given(st.from_regex("[A-Za-z0-9_]{0,3}[A-Za-z0-9]{1,70}", fullmatch=True))
@example("of")
@example("5002")
@example("1" * 70)
def test_words_that_need_no_cutting_have_the_terms_of_any_word(word: str) -> None:
    if analyzer.TOKEN.fullmatch(word):
        assert query_words(word) == analyzer._word_terms(word, None, analyzer._Stems())
