"""Words of several requests, analysed together."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummock.core.memory import Terms
from hummock.memories.preparation import Analysis, Words
from hummock.text.terms import Piece, terms_of
from hummock.text.tokens import EstimatedTokens
from hummock_kernels.analyzer import BODY, TITLE

TEXT = st.text(st.sampled_from("还款 aZsStT_9-éﬁ\n.ß℃\u0301\ud800"), max_size=20)
MEMORIES = st.lists(TEXT, max_size=3)


def begun(analysis: Analysis, texts: Sequence[str]) -> list[Words]:
    return analysis.begin(str(len(texts)), [(pieces(text), text) for text in texts])


def pieces(text: str) -> list[Piece]:
    return [("title of all", TITLE), (text, BODY)]


def held(terms: Terms) -> tuple[list[str], list[int], int]:
    """The terms of a memory as they are spelt, their counts, and their number with repetitions."""
    start, end = terms.batch.indptr[terms.place : terms.place + 2].tolist()
    spelt = terms.batch.spell(range(start, end))
    return spelt, terms.batch.counts[start:end].tolist(), int(terms.batch.lengths[terms.place])


@pytest.mark.long
@given(requests=st.lists(MEMORIES, max_size=4), asked=st.randoms(use_true_random=False))
def test_words_are_the_same_whoever_they_are_analysed_with(requests: list[list[str]], asked: object) -> None:
    analysis, counter = Analysis(EstimatedTokens()), EstimatedTokens()
    words = [one for texts in requests for one in begun(analysis, texts)]
    asked.shuffle(words)  # type: ignore[attr-defined] # a Random
    for one in words:
        (alone,) = terms_of([pieces(one.shown)])
        assert held(one.analysed().terms) == held(alone)
        assert one.analysed().token_count == counter.count(one.shown)


def test_words_that_nobody_asked_for_in_time_are_analysed_when_they_are_needed() -> None:
    analysis = Analysis(EstimatedTokens())
    (first,) = begun(analysis, ["还款"])
    for number in range(1000):
        begun(analysis, [f"never asked for {number}"])
    assert first.analysed().token_count == EstimatedTokens().count("还款")


class Faulty(EstimatedTokens):
    """Cannot count one text."""

    def counts(self, texts: Sequence[str]) -> list[int]:
        if "faulty" in texts:
            raise ZeroDivisionError
        return super().counts(texts)


def test_words_that_cannot_be_analysed_fail_alone() -> None:
    analysis = Analysis(Faulty())
    before, faulty, behind = (begun(analysis, [text])[0] for text in ("a", "faulty", "b"))
    assert before.analysed().token_count == 2
    with pytest.raises(ZeroDivisionError):
        faulty.analysed()
    assert behind.analysed().token_count == 2
