from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bench.eval.halves import Half, drawn, half_of

IDS = [f"question-{i}" for i in range(1000)]


def test_the_half_of_a_question_depends_on_its_id_alone() -> None:
    # Worked out by hand once; figures of earlier runs are worth nothing when these move.
    assert [half_of(each) for each in ("q00-0", "q00-1", "q00-2", "DEV_0_QUERY_0")] == [
        Half.TUNE,
        Half.REPORT,
        Half.REPORT,
        Half.REPORT,
    ]


def test_the_halves_are_about_as_large_as_each_other() -> None:
    assert 450 <= sum(half_of(each) is Half.TUNE for each in IDS) <= 550


def test_a_sample_does_not_depend_on_the_order_of_the_ids() -> None:
    assert drawn(IDS, 50) == drawn(reversed(IDS), 50)


def test_a_larger_sample_holds_the_smaller_one() -> None:
    assert drawn(IDS, 50) < drawn(IDS, 51)


def test_a_sample_takes_from_both_halves() -> None:
    assert {half_of(each) for each in drawn(IDS, 20)} == {Half.TUNE, Half.REPORT}


@given(st.sets(st.text(), max_size=20), st.none() | st.integers(0, 30))
def test_a_sample_is_as_large_as_it_may_be(ids: set[str], most: int | None) -> None:
    taken = drawn(ids, most)
    assert taken <= ids
    assert len(taken) == (len(ids) if most is None else min(most, len(ids)))
