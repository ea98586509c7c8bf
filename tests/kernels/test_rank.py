"""The order of candidates against its twin."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from hummock_kernels import reference
from hummock_kernels.pool import (
    AGELESS,
    ASKING,
    ASKING_FIRST,
    CODE,
    HOLDER,
    KEY_FILE,
    KEYWORD,
    NAMED,
    ORIGINS,
    ROW,
    SAID,
    SENTENCE,
    VECTOR,
    Pool,
    Tally,
    Weights,
)
from hummock_kernels.rank import rank

NOW = 1_000_000.0
PLAIN = Weights(
    unrelated=0.0, min_similarity=-1.0, min_of_best=-1.0, best_cosine=2.0, vector_share=1.0, decay_rate=0.0, as_of=NOW,
    echo_window_s=float("inf"),
    even_similarity=0.5, steepness=3.0, enough_terms=0.3, scarcity=2.0, code_odds=1.5, name_odds=1.0,
    key_file_evidence=0.5, late_share=0.5, late_from=0.2, late_full=0.7, neighbour_weight=0.0, answer_weight=0.6,
    asking_loss=0.2, time_share=0.0, decay_floor=0.0,
)  # fmt: skip
SIMILAR = st.floats(-1, 1, width=32) | st.just(float("nan"))
MARKS = st.sampled_from(
    [0, CODE, SENTENCE, SENTENCE | ASKING, SENTENCE | ASKING_FIRST, SENTENCE | SAID, SAID | AGELESS]
)
DRAWN: dict[str, st.SearchStrategy[Any]] = {
    "text_hash": st.integers(1, 7), "copy_hash": st.integers(1, 7), "session": st.integers(0, 2),
    "create_time": st.integers(0, 20).map(lambda days: NOW + 86_400 - 86_400 * days),
    "session_position": st.integers(0, 4), "speaker": st.integers(0, 2), "file": st.integers(0, 2),
    "kind": st.integers(0, 3), "origin": st.integers(0, ORIGINS - 1), "traits": MARKS,
}  # fmt: skip
MARKS_OF = np.zeros((3, 256), np.uint8)
MARKS_OF[2] = np.arange(256)
"""The marks are the traits, but for the code of one kind and what one origin said."""
MARKS_OF[0, 3], MARKS_OF[1, 2] = CODE, SAID
PATHS = st.sampled_from([VECTOR, KEYWORD, VECTOR | KEYWORD, NAMED, KEY_FILE, KEYWORD | HOLDER])


@st.composite
def pools(draw: st.DrawFn) -> tuple[Any, ...]:
    """The arguments of `rank`; some texts are equal, some were said."""
    n = draw(st.integers(0, 9))

    def column(dtype: Any, elements: st.SearchStrategy[Any]) -> Any:
        array = draw(hnp.arrays(dtype, n, elements=elements))
        array.flags.writeable = False
        return array

    weights = PLAIN._replace(
        unrelated=draw(st.sampled_from([0.0, 0.3])), min_similarity=draw(st.sampled_from([-1.0, 0.3])),
        min_of_best=draw(st.sampled_from([-1.0, 0.1])), best_cosine=draw(st.sampled_from([-float("inf"), 0.25, 2.0])),
        vector_share=draw(st.sampled_from([0.0, 0.5, 1.0])), decay_rate=draw(st.sampled_from([0.0, 0.1])),
        decay_floor=draw(st.sampled_from([0.0, 0.9])), name_odds=draw(st.sampled_from([0.1, 1.0])),
        neighbour_weight=draw(st.sampled_from([0.0, 0.4])), echo_window_s=draw(st.sampled_from([5e5, float("inf")])),
        time_share=draw(st.sampled_from([0.0, 0.4])),
    )  # fmt: skip
    time_match = column(np.float32, st.floats(0, 1, width=32))
    verdict = column(np.float32, st.sampled_from([0.6, 0.9, 1.0, 1.1]))
    rows = np.zeros(n, ROW)
    for name, elements in DRAWN.items():
        rows[name] = draw(hnp.arrays(ROW[name], n, elements=elements))
    rows.flags.writeable = False
    pool = Pool(
        rows,
        column(np.float32, SIMILAR),
        column(np.float32, st.floats(0, 30, width=32)),
        column(np.uint32, st.integers(0, 7)),
        column(np.float32, st.sampled_from([0.0, 0.5, 1.0, 2.0])),
        column(np.float32, SIMILAR),
        column(np.uint8, PATHS),
        MARKS_OF,
        time_match if draw(st.booleans()) else time_match[:0],
        verdict if draw(st.booleans()) else verdict[:0],
        np.array(draw(st.permutations(range(n))), np.int32),
    )
    return pool, np.array([1, 2], np.uint64), draw(st.integers(1, 20)), weights


@pytest.mark.long
@given(pools())
def test_the_order_equals_its_twin(pool: tuple[Any, ...]) -> None:
    """S0-13, S4-24."""
    rows, columns, tally, measures = rank(*pool)
    expected_rows, expected_columns, expected_tally, expected_measures = reference.rank(*pool)
    assert sorted(rows.tolist()) == sorted(expected_rows.tolist())
    ties = Tally._fields.index("ties")
    assert np.delete(tally, ties).tolist() == np.delete(expected_tally, ties).tolist()
    np.testing.assert_allclose(measures, expected_measures, atol=1e-6)
    # Scores that differ in their last bits alone may stand in either order; of each place they are the same.
    for found, expected in zip(columns[2:4], expected_columns[2:4], strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-5)
    by_row = dict(zip(expected_rows.tolist(), zip(*expected_columns, strict=True), strict=True))
    for row, *values in zip(rows.tolist(), *columns, strict=True):
        np.testing.assert_allclose(np.array(values), np.array(by_row[row]), atol=1e-5)


def pool_of(n: int, **columns: Any) -> Pool:
    """A pool of `n` like candidates but for these columns."""
    rows = np.zeros(n, ROW)
    rows["text_hash"] = rows["copy_hash"] = np.arange(n)
    rows["create_time"] = NOW
    for name in set(columns) & set(ROW.fields or ()):
        rows[name] = columns.pop(name)
    like: dict[str, Any] = {
        "rows": rows,
        "cosine": np.full(n, 0.5, np.float32),
        "keyword": np.zeros(n, np.float32),
        "matched": np.zeros(n, np.uint32),
        "evidence": np.zeros(n, np.float32),
        "late": np.full(n, np.nan, np.float32),
        "found_by": np.full(n, VECTOR, np.uint8),
        "marks_of": MARKS_OF,
        "time_match": np.empty(0, np.float32),
        "verdict": np.empty(0, np.float32),
        "tie": np.arange(n, dtype=np.int32),
    }
    return Pool(**(like | columns))


def ranked(n: int, tie: list[int], *, weights: Weights = PLAIN, **columns: Any) -> tuple[list[int], int]:
    """Rows in order, and how many ties there were."""
    rows, _, tally, _ = rank(pool_of(n, tie=np.array(tie, np.int32), **columns), np.empty(0, np.uint64), 1, weights)
    return rows.tolist(), int(tally[3])


def test_ties_are_counted_and_broken_by_the_smaller_number() -> None:
    assert ranked(3, [2, 0, 1]) == ([1, 2, 0], 2)
    assert ranked(2, [1, 0], cosine=np.array([0.6, 0.5], np.float32)) == ([0, 1], 0)


def test_of_equal_texts_of_one_moment_the_smaller_number_stays() -> None:
    rows, ties = ranked(2, [1, 0], copy_hash=np.ones(2, np.uint64))
    assert rows == [1]
    assert ties > 0


def test_the_more_similar_comes_first_where_scores_are_equal() -> None:
    cosine = np.array([-0.5, -0.25], np.float32)
    assert ranked(2, [0, 1], cosine=cosine)[0] == [1, 0]


LENDING = PLAIN._replace(neighbour_weight=0.4)
TALK: dict[str, Any] = {
    "session": np.full(4, 7, np.uint64),
    "traits": np.full(4, SENTENCE, np.uint8),
    "weights": LENDING,
}


def test_a_sentence_gains_from_the_one_beside_it() -> None:
    cosine = np.array([0.2, 0.9, 0.3, 0.25], np.float32)
    position = np.array([1, 2, 9, 3], np.int32)
    assert ranked(4, [0, 1, 2, 3], cosine=cosine, session_position=position, **TALK)[0] == [1, 3, 0, 2]
    apart = {**TALK, "session": np.arange(1, 5, dtype=np.uint64)}
    assert ranked(4, [0, 1, 2, 3], cosine=cosine, session_position=position, **apart)[0] == [1, 2, 3, 0]


def test_a_question_lends_its_answer_more_than_it_keeps_unless_it_goes_on() -> None:
    cosine = np.array([0.6, 0.5, 0.2, 0.3], np.float32)
    position = np.array([5, 6, 4, 9], np.int32)
    asking = {**TALK, "traits": np.array([SENTENCE | ASKING, SENTENCE, SENTENCE, SENTENCE], np.uint8)}
    assert ranked(4, [0, 1, 2, 3], cosine=cosine, session_position=position, **asking)[0] == [1, 0, 2, 3]
    assert ranked(4, [0, 1, 2, 3], cosine=cosine, session_position=position, **TALK)[0] == [0, 1, 2, 3]
    within = {**TALK, "traits": np.array([SENTENCE | ASKING_FIRST, SENTENCE, SENTENCE, SENTENCE], np.uint8)}
    ends = {**TALK, "traits": np.array([SENTENCE | ASKING, SENTENCE, SENTENCE, SENTENCE], np.uint8)}
    given = [rank_scores(cosine, position, marks) for marks in (TALK, within, ends)]
    assert given[0][1] / given[0][0] < given[1][1] / given[1][0] < given[2][1] / given[2][0]


def test_an_answer_is_what_another_says_within_two_turns() -> None:
    """A question, what its asker adds, the answer of another; alone, the answer would come last."""
    cosine = np.array([0.6, 0.4, 0.35, 0.36], np.float32)
    position = np.array([5, 6, 7, 20], np.int32)
    asking = {**TALK, "traits": np.array([SENTENCE | ASKING, SENTENCE, SENTENCE, SENTENCE], np.uint8)}
    goes_on = {**asking, "speaker": np.array([1, 1, 2, 2], np.uint32)}
    assert ranked(4, [0, 1, 2, 3], cosine=cosine, session_position=position, **goes_on)[0][0] == 2
    nobody_knows = rank_scores(cosine, position, asking)
    # Both sides of the talk are kept under one name.
    assert rank_scores(cosine, position, {**asking, "speaker": np.ones(4, np.uint32)}) == nobody_knows
    assert nobody_knows[1] > nobody_knows[2]
    too_late = position + np.array([0, 0, 1, 0], np.int32)
    assert rank_scores(cosine, too_late, goes_on)[2] < rank_scores(cosine, position, goes_on)[2]


def rank_scores(cosine: NDArray[np.float32], position: NDArray[np.int32], talk: dict[str, Any]) -> list[float]:
    """Relevance of each row of a talk."""
    columns = {name: column for name, column in talk.items() if name != "weights"}
    pool = pool_of(len(cosine), cosine=cosine, session_position=position, **columns)
    rows, (_, _, relevance, _, _), *_ = rank(pool, np.empty(0, np.uint64), 1, talk["weights"])
    return [float(relevance[place]) for place in np.argsort(rows)]


def test_a_question_without_an_answer_loses_nothing() -> None:
    cosine = np.array([0.5, 0.45, 0.3, 0.3], np.float32)
    position = np.array([3, 6, 0, 9], np.int32)
    asking = {**TALK, "traits": np.full(4, SENTENCE | ASKING, np.uint8)}
    assert ranked(4, [0, 1, 2, 3], cosine=cosine, session_position=position, **asking)[0] == [0, 1, 2, 3]


def test_what_stands_in_no_session_keeps_its_place_before_those_that_do() -> None:
    cosine = np.array([0.5, 0.49, 0.9, 0.1], np.float32)
    position = np.array([1, 2, -1, -1], np.int32)
    session = np.array([7, 7, 0, 0], np.uint64)
    assert ranked(4, [0, 1, 2, 3], cosine=cosine, session_position=position, **{**TALK, "session": session})[0] == [
        2,
        0,
        1,
        3,
    ]


def test_an_echo_lends_nothing() -> None:
    """1.1-2."""
    pool = pool_of(
        3, cosine=np.array([0.3, 1.0, 0.35], np.float32), session_position=np.array([0, 1, 5], np.int32),
        session=np.full(3, 7, np.uint64), traits=np.array([SENTENCE, SENTENCE | SAID, SENTENCE], np.uint8),
        text_hash=np.array([5, 6, 7], np.uint64),
    )  # fmt: skip
    rows, *_ = rank(pool, np.array([6], np.uint64), 1, LENDING)
    assert rows.tolist() == [2, 0]


def test_a_time_of_the_query_ranks_higher() -> None:
    given: dict[str, Any] = {"cosine": np.array([0.5, 0.45], np.float32), "weights": PLAIN._replace(time_share=0.4)}
    assert ranked(2, [0, 1], time_match=np.array([0, 1], np.float32), **given)[0] == [1, 0]
    assert ranked(2, [0, 1], **given)[0] == [0, 1]


def test_what_is_of_the_very_time_needs_no_similarity() -> None:
    given: dict[str, Any] = {
        "cosine": np.array([0.1, 0.1, 0.1], np.float32),
        "weights": PLAIN._replace(time_share=0.4, min_similarity=0.3),
    }
    assert ranked(3, [0, 1, 2], time_match=np.array([0.9, 1, 0], np.float32), **given)[0] == [1]
    assert ranked(3, [0, 1, 2], **given)[0] == []


def test_the_few_holders_of_a_name_come_first_whatever_their_age() -> None:
    found_by = np.array([VECTOR | KEYWORD, KEYWORD | HOLDER], np.uint8)
    given: dict[str, Any] = {
        "cosine": np.array([0.9, 0.1], np.float32),
        "keyword": np.array([9, 1], np.float32),
        "create_time": np.array([NOW, NOW - 1e7]),
        "weights": PLAIN._replace(decay_rate=0.1),
    }
    assert ranked(2, [0, 1], found_by=found_by, **given)[0] == [1, 0]


def test_what_is_below_the_minimum_needs_words_or_a_name() -> None:
    """S4-26, 1.1-10: a shared word alone exempts nothing."""
    given: dict[str, Any] = {"cosine": np.full(4, 0.1, np.float32), "weights": PLAIN._replace(min_similarity=0.2)}
    found_by = np.array([VECTOR, VECTOR | KEYWORD, HOLDER, NAMED], np.uint8)
    assert ranked(4, [0, 1, 2, 3], found_by=found_by, **given)[0] == [3, 2]
    assert ranked(4, [0, 1, 2, 3], evidence=np.array([0.9, 1.0, 0.0, 2.0], np.float32), **given)[0] == [1, 3]


def test_the_most_similar_of_the_recall_has_a_minimum_of_its_own() -> None:
    """S4-26."""
    cosine = np.array([0.1, 0.15, np.nan], np.float32)
    weights = PLAIN._replace(min_similarity=0.2, min_of_best=0.1, best_cosine=float(cosine[1]))
    assert ranked(3, [0, 1, 2], cosine=cosine, weights=weights)[0] == [1]
    elsewhere = weights._replace(best_cosine=0.5)
    assert ranked(3, [0, 1, 2], cosine=cosine, weights=elsewhere)[0] == []


def test_a_verdict_moves_a_candidate_and_no_minimum() -> None:
    cosine, weights = np.array([0.5, 0.45, 0.2], np.float32), PLAIN._replace(min_similarity=0.3)
    given: dict[str, Any] = {"cosine": cosine, "weights": weights}
    assert ranked(3, [0, 1, 2], **given)[0] == [0, 1]
    assert ranked(3, [0, 1, 2], verdict=np.array([0.8, 1, 1.1], np.float32), **given)[0] == [1, 0]


def test_a_named_domain_that_is_wrong_stays_before_what_is_not_named() -> None:
    given: dict[str, Any] = {"found_by": np.array([VECTOR, NAMED, NAMED], np.uint8)}
    assert ranked(3, [0, 1, 2], verdict=np.array([1.1, 0.6, 1], np.float32), **given)[0] == [2, 1, 0]
