from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummock.core.learning import LearningSettings, Profile
from hummock.learning.entry_keywords import priority, select

SETTINGS = LearningSettings()
profiles = st.builds(
    Profile,
    keywords=st.integers(0, 14).map(lambda count: tuple(f"k{number}" for number in range(count))),
    last_analyzed_turn=st.integers(-999, 100),
    miss_count=st.integers(0, 20),
)


@pytest.mark.parametrize(
    ("keywords", "since", "misses", "expected"),
    [(0, 1099, 0, 100), (3, 1099, 0, 70), (10, 20, 0, 0), (14, 50, 0, 0), (0, 0, 0, 0), (0, 19, 0, 95), (2, 5, 3, -25)],
)
def test_the_priority_is_the_shipped_formula(keywords: int, since: int, misses: int, expected: int) -> None:
    """S3-09, S3-10, S3-11, S3-44."""
    known = tuple(f"k{number}" for number in range(keywords))
    profile = Profile(keywords=known, last_analyzed_turn=100 - since, miss_count=misses)
    assert priority(profile, 100, SETTINGS) == expected


@given(profiles, st.integers(0, 100))
def test_it_is_the_formula_as_it_is_written(profile: Profile, turn: int) -> None:
    """S3-44."""
    since = max(0, turn - profile.last_analyzed_turn)
    expected = (10 - min(len(profile.keywords), 10)) * 10 - profile.miss_count * 10
    if since < 20:
        expected -= (20 - since) * 5
    assert priority(profile, turn, SETTINGS) == expected


def test_five_of_many_are_chosen_the_least_learnt_first_and_the_nearest_of_equals() -> None:
    """S3-07, S3-09, S3-12."""
    near = [f"e{number}" for number in range(8)]
    known = {"e0": Profile(keywords=("a", "b")), "e1": Profile(last_analyzed_turn=49), "e2": Profile(miss_count=1)}
    assert select((), near, known, 50, SETTINGS) == ("e3", "e4", "e5", "e6", "e7")
    assert select((), near[:5], known, 50, SETTINGS) == ("e3", "e4", "e2", "e0", "e1")


def test_nothing_near_is_nothing_chosen() -> None:
    assert select((), [], {}, 3, SETTINGS) == ()


def test_what_the_turn_names_comes_before_all_else() -> None:
    """S3-09, S3-12: also what is well known, was analysed a moment ago, or in vain."""
    known = {"e6": Profile(keywords=("a", "b"), last_analyzed_turn=50), "e7": Profile(miss_count=9)}
    near = [f"e{number}" for number in range(8)]
    assert select(("e7", "e6", "named"), near, known, 50, SETTINGS) == ("named", "e7", "e6", "e0", "e1")


@given(
    st.sets(st.sampled_from("abcdefg")),
    st.lists(st.sampled_from("abcdefg")),
    st.dictionaries(st.sampled_from("abcdefg"), profiles),
    st.integers(1, 9),
)
def test_each_is_chosen_once_and_none_that_is_not_near(
    named: set[str], near: list[str], known: dict[str, Profile], most: int
) -> None:
    chosen = select(named, near, known, 30, LearningSettings(candidates=most))
    assert len(chosen) == min(most, len(named.union(near))) == len(set(chosen))
    assert set(chosen) <= named.union(near)
    ranks = [(one in named, priority(known.get(one, Profile()), 30, SETTINGS)) for one in chosen]
    assert ranks == sorted(ranks, reverse=True)
