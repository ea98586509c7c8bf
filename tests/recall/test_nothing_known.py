"""The rule that tells whether nothing found bears on a query."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from hummock.core.candidates import Bridged, FoundBy
from hummock.recall.evidence import LATIN, Unanswered, nothing_known, unheld_name
from hummock.recall.fuse import Fused
from hummock.recall.query_features import CorrectedWord, QueryFeatures
from tests.recall.candidates import PLAIN, Row, candidates, features, plan, ranked
from tests.sure import sure

ASKED = "where are terms kept"
QUERY = features(asked=(1, 2), terms=("where", "terms"))
HELD = (0.5, 0.5)
NEAR = [Row(id="near", cosine=0.8, tokens=(1, 2)), Row(id="far", cosine=0.1, tokens=(8,))]
FAR = [Row(id="a", cosine=0.12, tokens=(8,)), Row(id="b", cosine=0.1, tokens=(9,))]


def group(rows: list[Row], query: QueryFeatures = QUERY, **changed: object) -> Fused:
    found = replace(candidates(rows, HELD), **changed)
    return ranked(found, plan(), query)


def finding(rows: list[Row], query: QueryFeatures = QUERY, text: str = ASKED, **changed: object) -> Unanswered | None:
    return answered([group(rows, query, **changed)], query, text)


def answered(groups: list[Fused], query: QueryFeatures, text: str) -> Unanswered | None:
    cosines = [one.candidates.cosine for one in groups] or [np.empty(0, np.float32)]
    return nothing_known(groups, query, text, PLAIN.similarity(np.concatenate(cosines), han=query.is_han))


def test_what_is_far_from_all_is_not_known_and_what_is_near_one_may_be() -> None:
    found = sure(finding(FAR))
    assert (found.group, found.row) == (0, 0)
    assert 0.5 < found.confidence <= 1
    assert "0.12" in found.reason
    assert finding(NEAR) is None


def test_the_nearest_of_all_groups_is_named() -> None:
    groups = [group(FAR), group([Row(id="c", cosine=0.05, tokens=(8,)), Row(id="d", cosine=0.15, tokens=(8,))])]
    found = sure(answered(groups, QUERY, ASKED))
    assert (found.group, found.row) == (1, 1)


def test_without_groups_nothing_is_said_and_without_memories_all_is_unknown() -> None:
    assert answered([], QUERY, ASKED) is None
    found = sure(finding([]))
    assert (found.confidence, found.row) == (1.0, -1)


@pytest.mark.parametrize(
    ("why", "rows", "query", "changed"),
    [
        ("no query vector", FAR, replace(QUERY, vector=None), {}),
        ("no token vectors", FAR, features(), {}),
        ("vectors are pending", FAR, QUERY, {"pending": 1}),
        ("a holder of the name", [*FAR, Row(id="c", cosine=0.0, found_by=FoundBy.HOLDER)], QUERY, {}),
        ("a named domain", [*FAR, Row(id="c", cosine=0.0, found_by=FoundBy.DOMAIN)], QUERY, {}),
        ("every word of the query", [*FAR, Row(id="c", cosine=0.0, matched=0b11)], QUERY, {}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_it_is_not_said_where_it_cannot_be_told(
    why: str, rows: list[Row], query: QueryFeatures, changed: dict[str, object]
) -> None:
    assert finding(rows, query, **changed) is None, why  # type: ignore[arg-type] # its own fields


def test_an_echo_of_the_query_is_no_answer() -> None:
    echo = Row(id="echo", cosine=1.0, text_hash=77, tokens=(1, 2), origin=3)  # type: ignore[arg-type] # USER_INPUT
    query = replace(QUERY, echoes=lambda: frozenset({77}))
    assert sure(finding([echo, *FAR], query)).row == 1


@given(st.lists(st.floats(-0.25, 1.0, width=32), min_size=1, max_size=6), st.floats(0.0, 0.5, width=32))
def test_a_nearer_memory_never_makes_it_less_known(cosines: list[float], more: float) -> None:
    rows = [Row(id=str(place), cosine=cosine, tokens=(8,)) for place, cosine in enumerate(cosines)]
    best = int(np.argmax(cosines))
    raised = [*rows]
    raised[best] = Row(id=str(best), cosine=min(1.0, cosines[best] + more), tokens=(8,))
    before, after = finding(rows), finding(raised)
    assert before is not None or after is None
    if before and after:
        assert after.confidence <= before.confidence + 1e-6


@given(st.lists(st.floats(-1.0, 1.0, width=32), max_size=6))
def test_the_confidence_is_a_probability_above_the_bar(cosines: list[float]) -> None:
    found = finding([Row(id=str(place), cosine=cosine, tokens=(8,)) for place, cosine in enumerate(cosines)])
    if found is not None:
        assert 1 / (1 + math.exp(LATIN.least)) <= found.confidence <= 1


def test_among_memories_in_two_languages_more_is_asked() -> None:
    """1.1-10: token vectors of the model of the other language are not compared, and no word may lead to the answer."""
    own = [Row(id="a", cosine=0.2, tokens=(1, 9)), Row(id="b", cosine=0.2, tokens=(1, 9))]
    assert finding(own) is not None
    assert finding([*own, Row(id="of the other language", cosine=0.2)]) is None


NAMED = features(asked=(1, 2), terms=("tea", "japan"))


def named(text: str, word: str = "Japan", rarity: tuple[float, float] = (0.4, 1.0), **changed: object) -> str:
    query = replace(NAMED, words=("tea", word), **changed)
    return unheld_name(candidates(FAR, rarity), 0, query, text)


@pytest.mark.parametrize(
    ("text", "word", "name"),
    [
        ("Did the tea go to Japan by ship?", "Japan", "Japan"),
        ("Does tea gate 11 leak?", "11", "11"),
        ("茶叶卖到 Japan 了吗", "Japan", "Japan"),
        ("Japan and its tea", "Japan", ""),
        ('"Japan and its tea"', "Japan", ""),
        ("did the tea go to japan?", "japan", ""),
        ("Ship The Tea To Japan", "Japan", ""),
        ("Is the tea ready? The kettle is.", "The", ""),
    ],
)
def test_a_name_is_a_number_or_a_capitalised_word_behind_the_first(text: str, word: str, name: str) -> None:
    assert named(text, word) == name


def test_a_held_or_corrected_word_is_no_missing_name() -> None:
    text = "Did the tea go to Japan by ship?"
    assert named(text, rarity=(0.4, 0.9)) == ""
    corrected = CorrectedWord(asked="Japan", word="japans", terms=("japans",), places=(1,))
    assert named(text, meant=(corrected,)) == ""


def test_a_name_is_not_missing_to_a_memory_in_the_other_language() -> None:
    said = Bridged(
        is_foreign=np.ones(2, np.bool_),
        cosine=np.zeros(2, np.float32),
        keyword=np.zeros(2, np.float32),
        matched=np.zeros(2, np.uint32),
    )
    found = replace(candidates(FAR, (0.4, 1.0)), bridged=said)
    query = replace(NAMED, words=("tea", "Japan"))
    assert unheld_name(found, 0, query, "Did the tea go to Japan by ship?") == ""
