"""A question is folded once, and tables of words are opened only for a text that has one of their hints."""

from __future__ import annotations

import re
from unittest.mock import patch

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hummock.core.recall import Wanted
from hummock.text import question as questions
from hummock.text.analyzer import query_words
from hummock.text.normalise import is_han, known_share, nfkc, simplified
from hummock.text.question import MAX_OPENING, Question, hints_of, question_of
from hummock.text.questions import PATTERNS, is_small_talk, wanted_by


@given(st.text(max_size=700))
@example("x" * MAX_OPENING + "Å後")
@example("café\u200d 還款 ｆｕｌｌ 👩🏽‍💻")
def test_a_questions_forms_are_those_of_its_text(text: str) -> None:
    question, opening = Question(text), nfkc(text[:MAX_OPENING])
    assert (question.nfkc, question.simplified) == (nfkc(text), simplified(nfkc(text)))
    assert (question.opening, question.simple_opening) == (opening, simplified(opening))
    assert list(question.words) == query_words(text)
    assert question.is_han == is_han(text)
    assert question.han_share == (known_share(question.scripts, frozenset({"han"})) if is_han(text) else 0)


def test_a_question_of_usual_length_is_kept() -> None:
    assert question_of("还款 plan") is question_of("还款 plan")
    with patch.object(questions, "nfkc", wraps=nfkc) as folds:
        for _ in range(3):
            assert question_of("kept 一次").words == (("kept", "kept"), ("一次", "一次"))
    assert folds.call_count == 1


@pytest.mark.parametrize(("wanted", "hints", "pattern"), PATTERNS)
@given(data=st.data())
def test_words_that_say_what_is_wanted_have_a_hint(
    data: st.DataObject, wanted: Wanted, hints: frozenset[str], pattern: re.Pattern[str]
) -> None:
    written = simplified(nfkc(data.draw(st.from_regex(pattern))))
    if pattern.search(written):
        assert not hints.isdisjoint(hints_of(written))
        assert wanted & wanted_by(Question(written[:MAX_OPENING])) or len(written) > MAX_OPENING


@pytest.mark.parametrize("text", ["好的😀继续", "嗯 :D 谢谢", "ok 继续吧！"])
def test_faces_between_words_do_not_keep_a_text_from_being_small_talk(text: str) -> None:
    assert is_small_talk(Question(text))
    assert not is_small_talk(Question(f"{text}还款"))
