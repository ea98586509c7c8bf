"""Corrections of words that no memory holds, among memories that hold words of the query."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from hummock.core.candidates import Candidates, CorrectionScores, Spelling
from hummock.recall.query_features import CorrectedWord
from hummock.recall.spelling import BEHIND, corrections, find_corrections, own_words, with_corrections, with_spelling
from hummock.text.question import Question
from tests.recall.candidates import candidates, features
from tests.render.samples import note

SCORES = st.floats(0.0625, 64, width=32)
ROWS = st.lists(st.tuples(st.integers(0, 3), SCORES, SCORES | st.just(0.0)), min_size=1, max_size=12)
ASKED = features(terms=("harbour", "the", "lighthos"))
MEANT = (CorrectedWord(asked="lighthose", word="lighthouse", terms=("lighthous",), places=(2,)),)


def found(rows: list[tuple[int, float, float]]) -> Candidates:
    """Candidates from rows of matched bits for the query's first two terms, their score, and the correction's score."""
    matched = np.array([bits for bits, _, _ in rows], np.uint32)
    spelt = np.array([score for _, _, score in rows], np.float32)
    return replace(
        candidates([]),
        matched=matched,
        keyword=np.where(matched, np.array([score for _, score, _ in rows], np.float32), np.float32(0)),
        spelt=CorrectionScores(keyword=spelt, held=(spelt > 0).astype(np.uint32)),
    )


@given(ROWS)
def test_what_only_may_be_meant_scores_less_than_all_that_holds_a_telling_word(
    rows: list[tuple[int, float, float]],
) -> None:
    before, asked = found(rows), with_spelling(ASKED, MEANT)
    after = with_corrections(before, asked, "the harbour lighthose")
    telling = before.matched & 1 != 0
    weak = ~telling & (before.spelt is not None and before.spelt.keyword > 0)
    assert (after.keyword[telling] >= before.keyword[telling]).all()
    assert (after.keyword[~telling & ~weak] == before.keyword[~telling & ~weak]).all()
    if telling.any() and weak.any():
        assert after.keyword[weak].max() <= BEHIND * before.keyword[telling].min() * 1.0001
        assert (after.keyword[weak] > 0).all()
    assert (after.matched >> 2 == (before.spelt is not None and before.spelt.keyword > 0)).all()


def test_without_a_spelling_nothing_changes() -> None:
    before = found([(1, 2.0, 0.0)])
    assert with_corrections(before, ASKED, "harbour") is before
    assert with_spelling(ASKED, ()) is ASKED
    own = replace(MEANT[0], terms=("harbour",))
    assert with_spelling(ASKED, (own,)).spelling is None


def test_a_hit_does_not_hold_what_it_was_taken_for() -> None:
    asked = with_spelling(ASKED, MEANT)
    assert isinstance(asked.spelling, Spelling)
    assert own_words(asked) & 7 == 3
    assert own_words(ASKED) & 7 == 7
    memory = note("m", "All Lighthouses shine")
    assert [(each.asked, each.meant) for each in corrections(1, asked, memory)] == [("lighthose", "Lighthouses")]
    assert corrections(0, asked, memory) == ()
    assert corrections(1, ASKED, memory) == ()


class Holders:
    """A project in which some words are held; notes what is looked up."""

    def __init__(self, *held: str) -> None:
        self._held = held
        self.asked: list[tuple[str, ...]] = []

    def holders(self, terms: Sequence[str]) -> tuple[int, ...]:
        """Number of holders of each term: 1 if it is held, else 0."""
        self.asked.append(tuple(terms))
        return tuple(int(term in self._held) for term in terms)

    def unheld(self, terms: Sequence[str]) -> list[int]:
        """Places of terms that are not held."""
        return [place for place, count in enumerate(self.holders(terms)) if not count]


def test_nothing_is_looked_up_for_what_cannot_be_meant() -> None:
    project, asked = Holders("harbour", "还款"), features(terms=("harbour", "还款", "20"))
    asked = replace(asked, words=asked.terms)
    question = Question("harbour 还款 20")
    assert find_corrections(asked, question, project) == ()  # type: ignore[arg-type] # all that is asked of it
    assert project.asked == [asked.terms]
