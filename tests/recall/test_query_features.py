from __future__ import annotations

import pytest

from hummock.recall.query_features import is_name

NAMES = [
    "parse_date",
    "parseDate",
    "_running",
    "Repayment.interest",
    "std::vector",
    "img2",
    " base_url ",
    "a_b",
    "HTTPServer2",
]
NO_NAMES = [
    "",
    "_",
    "...",
    "date",
    "Repayment",
    "parse date",
    "先本后息",
    "parse_date怎么用",
    "what is a_b?",
    "2024",
    "2024-05-02",
    "#",
]


@pytest.mark.parametrize("text", NAMES)
def test_a_word_that_is_joined_humped_or_numbered_is_a_name_of_code(text: str) -> None:
    assert is_name(text)


@pytest.mark.parametrize("text", NO_NAMES)
def test_plain_words_sentences_and_chinese_are_no_names_of_code(text: str) -> None:
    assert not is_name(text)
