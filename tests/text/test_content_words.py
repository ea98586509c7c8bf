"""Terms of a question that tell its subject."""

from __future__ import annotations

import pytest

from hummock.text.analyzer import query_terms
from hummock.text.keywords import COMMON_WEIGHT, content_weights


def weights(text: str) -> dict[str, float]:
    terms = tuple(dict.fromkeys(query_terms(text)))
    return dict(zip(terms, (round(weight, 2) for weight in content_weights(terms, [text]).tolist()), strict=True))


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
