from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from hummock.core.candidates import FoundBy
from hummock.core.memory import MemoryKind, Origin
from hummock.core.recall import Decay, DecayMode, TimeInterval
from hummock.recall.evidence import DOUBT, DOUBT_OF_WRONG, MOST_GAIN, MOST_LOSS, verdict_factors
from hummock.recall.fuse import Fused
from tests.recall.candidates import DAY, NOW, Row, candidates, features, plan, ranked

BOTH = FoundBy.VECTOR | FoundBy.KEYWORD
FOURTEEN_DAYS = Decay(mode=DecayMode.EXPONENTIAL, half_life_days=14.0)


def order(rows: Sequence[Row], decay: Decay | None = None) -> tuple[str, ...]:
    return fused(rows, decay).memory_ids


def fused(rows: Sequence[Row], decay: Decay | None = None) -> Fused:
    return ranked(candidates(rows), plan(decay=decay), features())


def test_no_candidates_give_no_hits() -> None:
    assert len(fused([])) == 0


def test_candidates_that_are_reordered_take_all_their_numbers_along() -> None:
    """Also what only some stages know, but for what is given anew."""
    before = fused([Row(id=name, cosine=cosine) for name, cosine in (("a", 0.9), ("b", 0.7), ("c", 0.5), ("d", 0.3))])
    before = structs.replace(before, cross=np.linspace(1, 0, len(before), dtype=np.float32))
    places = np.array([2, 0])
    after = before.take(places, score=np.zeros(2, np.float32))
    columns = {
        name: getattr(before, name) for name in ("row", "joined", "similarity", "relevance", "log_decay", "cross")
    }
    assert after.memory_ids == ("c", "a")
    assert all(np.array_equal(getattr(after, name), column[places]) for name, column in columns.items())
    assert (after.score.tolist(), after.candidates) == ([0, 0], before.candidates)
    assert np.array_equal(after.late, before.late, equal_nan=True)


def test_equal_scores_are_ordered_by_memory_id() -> None:
    """S4-24."""
    assert order([Row(id="c"), Row(id="a"), Row(id="b")]) == ("a", "b", "c")


@pytest.mark.parametrize("origin", [Origin.USER_INPUT, Origin.AI_OUTPUT])
@pytest.mark.parametrize("age_days", [0.0, 1.0, 400.0])
def test_what_a_user_or_model_said_is_no_answer_to_itself_at_any_age(origin: Origin, age_days: float) -> None:
    """S4-27, S4-48, 1.1-2."""
    rows = [Row(id="echo", origin=origin, age_days=age_days, text_hash=7), Row(id="other", text_hash=8)]
    result = ranked(candidates(rows), plan(), features(hashes=frozenset({7})))
    assert result.memory_ids == ("other",)
    assert result.tally.echoes == 1


@pytest.mark.parametrize("origin", [Origin.MANUAL, Origin.SUMMARY, Origin.INDEXER])
def test_a_manual_note_equal_to_the_query_is_a_hit(origin: Origin) -> None:
    """1.1-2."""
    rows = [Row(id="note", origin=origin, text_hash=7)]
    assert ranked(candidates(rows), plan(), features(hashes=frozenset({7}))).memory_ids == ("note",)


def test_of_equal_texts_the_newest_is_kept() -> None:
    """S4-28, 1.1-7."""
    rows = [
        Row(id="old", age_days=9, text_hash=5, cosine=0.9),
        Row(id="new", age_days=1, text_hash=5, cosine=0.1),
        Row(id="x", text_hash=6),
    ]
    result = fused(rows)
    assert set(result.memory_ids) == {"new", "x"}
    assert result.tally.older_copies == 1


def test_a_hit_of_the_vector_path_below_the_minimum_is_dropped() -> None:
    """S4-26."""
    result = ranked(
        candidates([Row(id="far", cosine=0.29), Row(id="near", cosine=0.31)]), plan(min_similarity=0.30), features()
    )
    assert result.memory_ids == ("near",)
    assert result.below_min_similarity == 1


def test_a_true_half_life_leaves_half() -> None:
    """1.1-3."""
    decay = Decay(mode=DecayMode.TRUE_HALF_LIFE, half_life_days=14.0)
    result = fused([Row(id="now"), Row(id="old", age_days=14)], decay)
    assert result.score[1] / result.score[0] == pytest.approx(0.5, rel=1e-5)


def test_ages_so_great_that_scores_underflow_keep_their_order() -> None:
    """1.1-3."""
    rows = [Row(id=f"{days:05}", age_days=days) for days in (30_000, 12_000, 20_000, 15_000)]
    assert order(rows, FOURTEEN_DAYS) == ("12000", "15000", "20000", "30000")


def test_a_memory_from_the_future_has_age_zero() -> None:
    """1.1-3."""
    result = ranked(candidates([Row(id="a", age_days=-3)]), plan(decay=FOURTEEN_DAYS), features())
    assert result.log_decay[0] == 0


def test_exempt_origins_do_not_decay() -> None:
    """1.1-3."""
    decay = Decay(mode=DecayMode.EXPONENTIAL, half_life_days=1.0, exempt_origins=frozenset({Origin.MANUAL}))
    rows = [Row(id="manual", age_days=50), Row(id="said", origin=Origin.USER_INPUT, age_days=1)]
    assert order(rows, decay) == ("manual", "said")


def test_a_domain_that_the_query_names_comes_first_with_full_score() -> None:
    """S0-10."""
    rows = [
        Row(id="near", cosine=0.9, kind=MemoryKind.DOMAIN_KNOWLEDGE),
        Row(id="named", cosine=0.1, kind=MemoryKind.DOMAIN_KNOWLEDGE, found_by=FoundBy.DOMAIN),
    ]
    result = fused(rows)
    assert result.memory_ids == ("named", "near")
    assert result.score[0] == 1


def test_a_fragment_of_a_named_domains_key_file_rises() -> None:
    rows = [
        Row(id="key", cosine=0.5, kind=MemoryKind.CODE_FRAGMENT, found_by=FoundBy.KEY_FILE),
        Row(id="near", cosine=0.6, kind=MemoryKind.CODE_FRAGMENT),
        Row(id="best", cosine=0.9, kind=MemoryKind.CODE_FRAGMENT),
    ]
    assert order(rows) == ("best", "key", "near")


def test_a_model_that_cannot_read_the_query_has_no_say_when_words_match() -> None:
    rows = [Row(id="word", cosine=0.1, keyword=2.0, matched=3, found_by=BOTH), Row(id="noise", cosine=0.9)]
    result = ranked(candidates(rows), plan(), features(known=0.0))
    assert result.memory_ids[0] == "word"
    assert result.vector_share == 0


def test_noise_of_the_vector_path_does_not_outvote_an_identifier_that_is_found() -> None:
    rows = [
        Row(id="found", cosine=0.01, keyword=25.0, matched=3, found_by=BOTH, kind=MemoryKind.CODE_FRAGMENT),
        Row(id="noise", cosine=0.04, keyword=8.0, matched=1, found_by=BOTH, kind=MemoryKind.CODE_FRAGMENT),
    ]
    assert order(rows) == ("found", "noise")


def found_by_both(cosine: float, kind: MemoryKind = MemoryKind.NOTE) -> Fused:
    return fused([Row(id="a", cosine=cosine, keyword=2.0, matched=1, found_by=BOTH, kind=kind)])


def test_the_vector_path_weighs_the_more_the_nearer_it_comes_to_the_query() -> None:
    shares = [found_by_both(cosine).vector_share for cosine in (-0.2, 0.0, 0.2, 0.5, 0.8, 1.0)]
    assert shares[:2] == [0, 0]
    assert shares == sorted(shares)
    assert shares[3] == pytest.approx(0.5)
    assert shares[-1] < 0.9


def test_the_vector_path_weighs_more_among_code() -> None:
    assert found_by_both(0.5, MemoryKind.CODE_FRAGMENT).vector_share > found_by_both(0.5).vector_share


NAMED = [
    Row(id="holds it", cosine=0.6, keyword=9.0, matched=3, found_by=BOTH, kind=MemoryKind.CODE_FRAGMENT),
    Row(id="sounds alike", cosine=0.9, keyword=2.0, matched=2, found_by=BOTH, kind=MemoryKind.CODE_FRAGMENT),
]


def test_a_name_of_code_that_is_found_letter_by_letter_outranks_what_sounds_alike() -> None:
    """1.1-13."""
    by_name = ranked(candidates(NAMED), plan(), features(is_name=True))
    assert by_name.memory_ids == ("holds it", "sounds alike")
    assert by_name.vector_share < fused(NAMED).vector_share


def test_a_name_that_nothing_holds_leaves_the_vector_path_its_share() -> None:
    rows = [replace(row, matched=2) for row in NAMED]
    by_name = ranked(candidates(rows), plan(), features(is_name=True))
    assert by_name.vector_share == fused(rows).vector_share


def test_without_any_matching_word_the_vector_path_decides_alone() -> None:
    assert fused([Row(id="b", cosine=0.9), Row(id="a", cosine=0.2)]).vector_share == 1


def test_a_memory_without_a_vector_is_ranked_by_its_words() -> None:
    rows = [Row(id="word", cosine=math.nan, keyword=2.0, matched=3, found_by=FoundBy.KEYWORD)]
    result = fused(rows)
    assert result.similarity[0] == 0
    assert 0 < result.score[0] <= 1


@given(
    st.lists(
        st.builds(
            Row,
            id=st.text("abc还款", min_size=1, max_size=4),
            cosine=st.one_of(st.just(math.nan), st.floats(-1, 1, width=32)),
            keyword=st.floats(0, 30, width=32),
            matched=st.integers(0, 3),
            found_by=st.sampled_from([FoundBy.VECTOR, FoundBy.KEYWORD, BOTH, FoundBy.DOMAIN, FoundBy.KEY_FILE]),
            kind=st.sampled_from(MemoryKind),
            origin=st.sampled_from(Origin),
            age_days=st.floats(-10, 40_000),
            text_hash=st.integers(1, 6),
        ),
        max_size=12,
        unique_by=lambda row: row.id,
    )
)
def test_fused_results_are_unique_ordered_and_in_range(rows: list[Row]) -> None:
    """S0-13, S4-24."""
    result = ranked(candidates(rows), plan(decay=FOURTEEN_DAYS), features(hashes=frozenset({1})))
    hashes = result.candidates.rows["text_hash"][result.row].tolist()
    assert len(set(hashes)) == len(hashes)
    assert np.isfinite(result.score).all()
    assert (result.score >= 0).all()
    assert (result.score <= 1).all()
    named = result.candidates.found_by[result.row] == FoundBy.DOMAIN
    assert (np.diff(named.astype(int)) <= 0).all()
    for group in (named, ~named):
        assert (np.diff(result.relevance[group]) <= 1e-6).all()
    left_out = result.tally.echoes + result.tally.older_copies + result.below_min_similarity
    assert len(rows) == len(hashes) + left_out


def test_of_equal_texts_one_that_is_similar_enough_answers_for_a_newer_one_that_is_not() -> None:
    """S4-24: the minimum comes before the duplicates, or both copies would be lost."""
    rows = [
        Row(id="old", cosine=0.1, keyword=2.0, matched=1, found_by=FoundBy.KEYWORD, age_days=9, text_hash=7),
        Row(id="new", cosine=0.1, age_days=1, text_hash=7),
    ]
    result = ranked(candidates(rows), plan(min_similarity=0.3), features())
    assert result.memory_ids == ("old",)
    assert (result.below_min_similarity, result.tally.older_copies) == (1, 0)


YESTERDAY = TimeInterval(start=NOW - 2 * DAY, end=NOW - DAY)


def test_a_memory_of_the_time_that_the_query_names_ranks_higher() -> None:
    rows = [Row(id="a", cosine=0.6), Row(id="b", cosine=0.5, event_time=NOW - 1.5 * DAY)]
    assert ranked(candidates(rows), plan(times=(YESTERDAY,)), features()).memory_ids == ("b", "a")
    assert ranked(candidates(rows), plan(), features()).memory_ids == ("a", "b")


def test_a_time_that_no_memory_is_near_changes_no_score() -> None:
    found = candidates([Row(id="a", cosine=0.6), Row(id="b", cosine=0.5)])
    without, given = (ranked(found, plan(times=times), features()).score.tolist() for times in ((), (YESTERDAY,)))
    assert given == without


def test_sentences_of_a_session_gain_from_each_other_and_other_memories_stay_as_they_are() -> None:
    talk = [
        Row(id=f"t{place}", cosine=cosine, session=7, session_position=place)
        for place, cosine in enumerate((0.9, 0.4, 0.5))
    ]
    found = candidates([*talk, Row(id="n", cosine=0.7)])
    scores = {}
    for neighbours in (False, True):
        fused = ranked(found, plan(neighbours=neighbours), features())
        scores[neighbours] = dict(zip(fused.memory_ids, fused.score.tolist(), strict=True))
    assert scores[True]["n"] == scores[False]["n"]
    assert scores[True]["t0"] == pytest.approx(scores[False]["t0"])
    assert scores[False]["t1"] < scores[False]["t2"]
    assert scores[True]["t1"] > scores[True]["t2"]


def test_records_of_a_session_lend_each_other_nothing() -> None:
    """The value of neighbours was measured on sentences."""
    rows = [
        Row(id=f"r{place}", cosine=0.5, kind=MemoryKind.LEARNING_RECORD, session=7, session_position=place)
        for place in range(2)
    ]
    found = candidates(rows)
    scores = [ranked(found, plan(neighbours=neighbours), features()).score.tolist() for neighbours in (False, True)]
    assert scores[0] == scores[1]


@pytest.mark.parametrize(("terms", "first"), [(12, "near"), (3, "word"), (1, "word")])
def test_one_word_of_a_long_question_is_less_evidence_than_meaning(terms: int, first: str) -> None:
    """S0-13: a year, or a word learnt of another memory, does not outrank what the question is about."""
    rows = [Row(id="word", cosine=0.2, keyword=3.0, matched=1, found_by=FoundBy.KEYWORD), Row(id="near", cosine=0.4)]
    asked = features(terms=tuple(f"t{place}" for place in range(terms)))
    assert ranked(candidates(rows), plan(), asked).memory_ids[0] == first


def test_what_holds_enough_of_the_question_weighs_as_if_it_held_all() -> None:
    """S0-13."""
    rows = [Row(id="words", cosine=0.2, keyword=3.0, matched=7, found_by=FoundBy.KEYWORD), Row(id="near", cosine=0.4)]
    half, whole = (features(terms=tuple(f"t{place}" for place in range(terms))) for terms in (6, 3))
    assert ranked(candidates(rows), plan(), half).joined.tolist() == (
        ranked(candidates(rows), plan(), whole).joined.tolist()
    )


@given(st.integers(0, 255), st.integers(0, 255))
def test_verdicts_move_a_score_within_their_bounds_and_one_more_moves_it_its_way(helpful: int, wrong: int) -> None:
    """S1-17."""
    rows = [
        Row(id="a", helpful=helpful, wrong=wrong),
        Row(id="b", helpful=min(helpful + 1, 255), wrong=wrong),
        Row(id="c", helpful=helpful, wrong=min(wrong + 1, 255)),
    ]
    as_is, one_helpful, one_wrong = verdict_factors(candidates(rows)).tolist()
    assert 1 - MOST_LOSS <= one_wrong <= as_is <= one_helpful <= 1 + MOST_GAIN
    assert as_is - one_wrong <= MOST_LOSS / (DOUBT_OF_WRONG + 1) + MOST_GAIN / (DOUBT + 1)


def test_wrong_does_not_take_a_candidate_out_nor_helpful_let_one_in() -> None:
    """S1-17."""
    rows = [Row(id="near", cosine=0.35, wrong=32), Row(id="far", cosine=0.29, helpful=32)]
    assert ranked(candidates(rows), plan(min_similarity=0.3), features()).memory_ids == ("near",)
