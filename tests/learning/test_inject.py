"""Injection by use: the shipped numbers, and properties that hold for all numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummock.core.errors import InvalidRequest
from hummock.core.learning import NEVER, Injection, InjectionStatus, LearningSettings, Usage
from hummock.learning.inject import ScopeUsage, decide, idle, injected_ids, plain

SHIPPED = LearningSettings()
A = "世界.图鉴.物品.v1.2 灯"


def row(frequency: int, last_sent_turn: int, turn: int, settings: LearningSettings = SHIPPED) -> Injection:
    (found,) = decide(ScopeUsage.of({A: Usage(frequency=frequency, last_sent_turn=last_sent_turn)}), (), turn, settings)
    return found


@pytest.mark.parametrize(
    ("frequency", "since", "is_injected"),
    [
        (11, 1, True), (10, 3, False), (10, 4, True), (4, 3, False), (4, 4, True), (3, 4, False), (3, 10, False),
        (3, 11, True), (1, 11, True), (0, 10, False), (0, 11, True),
    ],
)  # fmt: skip
def test_the_shipped_numbers(frequency: int, since: int, is_injected: bool) -> None:
    """S3-21, S3-44: above 10 always; above 3 after more than 3 turns; the others after more than 10."""
    assert row(frequency, 100 - since, 100).injected == is_injected


@pytest.mark.parametrize("frequency", [1, 3, 4, 10, 11])
def test_what_was_never_sent_or_not_before_this_turn_has_no_cooldown(frequency: int) -> None:
    """S3-44: never sent = -999."""
    assert NEVER == -999
    assert row(frequency, NEVER, 0).injected
    assert all(row(1, 50, turn).injected for turn in (0, 49, 50))


def test_probability_grows_while_an_entry_cools_down() -> None:
    """S3-40."""
    probabilities = [row(1, 0, turn).probability for turn in range(1, 13)]
    assert probabilities == sorted(probabilities)
    assert probabilities[0] == pytest.approx(1 / 11)
    assert probabilities[-2:] == [1.0, 1.0]


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (row(11, 1, 2), "referenced 11 times: more than 10, always"),
        (row(4, 1, 2), "referenced 4 times; last sent 1 turn ago, again after more than 3"),
        (row(4, 1, 9), "referenced 4 times; last sent 8 turns ago, more than 3"),
        (row(1, NEVER, 9), "referenced once; never sent so far"),
        (row(1, 9, 9), "referenced once; not sent before this turn"),
        (idle(A), "nobody has referred to it here"),
        (plain(A, None), "learning is off: every entry comes"),
        (decide(ScopeUsage.of({}), (A,), 1, SHIPPED)[0], "referenced in this turn"),
    ],
)
def test_reasons_are_for_people(found: Injection, reason: str) -> None:
    """S3-40, S3-44."""
    assert found.reason == reason


def test_the_order_is_forced_then_by_use_then_what_cools_down() -> None:
    by_id = {
        "cooling-most": Usage(frequency=1, last_sent_turn=1),
        "cooling-b": Usage(frequency=1, last_sent_turn=9),
        "cooling-a": Usage(frequency=1, last_sent_turn=9),
        "used-b": Usage(frequency=20, last_sent_turn=9),
        "used-a": Usage(frequency=20, last_sent_turn=9),
        "used-most": Usage(frequency=30, last_sent_turn=9),
        "forced": Usage(frequency=1, last_sent_turn=9),
    }
    usage = ScopeUsage.of(by_id)
    rows = decide(usage, ("new", "forced", "new"), 10, SHIPPED)
    assert [one.memory_id for one in rows] == [
        "new", "forced", "used-most", "used-a", "used-b", "cooling-most", "cooling-a", "cooling-b",
    ]  # fmt: skip
    assert decide(usage, ("new", "forced"), 10, SHIPPED, most_waiting=2) == rows[:-1]
    assert decide(usage, ("new", "forced"), 10, SHIPPED, most_waiting=0) == rows[:-3]


TURNS = st.integers(0, 60)
USAGE = st.dictionaries(
    st.sampled_from(["a", "b", "c", "世界.图鉴.物品.v1.2 灯"]),
    st.builds(Usage, frequency=st.integers(0, 15), last_sent_turn=st.just(NEVER) | TURNS),
)
REFERENCED = st.lists(st.sampled_from(["a", "b", "new"]), max_size=3).map(tuple)


@st.composite
def settings(draw: st.DrawFn) -> LearningSettings:
    mid = draw(st.integers(0, 6))
    return LearningSettings(
        mid_above=mid,
        high_above=draw(st.integers(mid, 12)),
        mid_cooldown_turns=draw(st.integers(0, 12)),
        low_cooldown_turns=draw(st.integers(0, 12)),
    )


@given(USAGE, REFERENCED, TURNS, settings())
def test_every_entry_has_one_row_that_says_what_becomes_of_it(
    usage: dict[str, Usage], referenced: tuple[str, ...], turn: int, numbers: LearningSettings
) -> None:
    """S3-20, S3-21, S3-24."""
    used = ScopeUsage.of(usage)
    rows = decide(used, referenced, turn, numbers)
    assert sorted(one.memory_id for one in rows) == sorted({*usage, *referenced})
    assert rows == decide(ScopeUsage.of(dict(reversed(usage.items()))), referenced, turn, numbers)
    assert injected_ids(used, referenced, turn, numbers) == tuple(one.memory_id for one in rows if one.injected)
    for one in rows:
        assert one.forced == (one.memory_id in referenced)
        assert one.injected or not one.forced
        assert (one.probability == 1) == one.injected
        assert 0 <= one.probability <= 1
        assert (one.status is InjectionStatus.INJECTING) == one.injected
        known = usage.get(one.memory_id, Usage())
        assert one.usage.frequency == known.frequency + one.forced
        assert one.usage.last_sent_turn == known.last_sent_turn


@given(USAGE, TURNS, settings())
def test_the_documents_rule_decides_what_was_sent(
    usage: dict[str, Usage], turn: int, numbers: LearningSettings
) -> None:
    """S3-44, word for word, of everything that was sent before this turn or never."""
    for one in decide(ScopeUsage.of(usage), (), turn, numbers):
        used = usage[one.memory_id]
        if used.last_sent_turn >= turn:
            continue
        since = turn - used.last_sent_turn
        if used.frequency > numbers.high_above:
            expected = True
        elif used.frequency > numbers.mid_above:
            expected = since > numbers.mid_cooldown_turns
        else:
            expected = since > numbers.low_cooldown_turns
        assert one.injected == expected


@pytest.mark.parametrize(
    ("field", "numbers"),
    [
        ("high_above", {"high_above": 2}),
        ("mid_above", {"mid_above": -1}),
        ("min_similarity", {"min_similarity": float("nan")}),
        ("min_similarity", {"min_similarity": 1.01}),
        ("candidates", {"candidates": 0}),
        ("keyword_target", {"keyword_target": 65}),
        ("cold_start_pause_s", {"cold_start_pause_s": -0.1}),
        ("low_cooldown_turns", {"low_cooldown_turns": 1_000_001}),
    ],
)
def test_numbers_that_make_no_sense_are_refused(field: str, numbers: dict[str, float]) -> None:
    with pytest.raises(InvalidRequest) as refused:
        LearningSettings(**numbers)  # type: ignore[arg-type] # int and float fields alike
    assert refused.value.field == field


def test_the_shipped_settings_are_the_default() -> None:
    """S3-44, S3-12, S3-29."""
    shipped = LearningSettings(
        high_above=10, mid_above=3, mid_cooldown_turns=3, low_cooldown_turns=10, min_similarity=0.6, candidates=5,
        analysis_cooldown_turns=20, keyword_target=10, cold_start_pause_s=0.5,
    )  # fmt: skip
    assert shipped == SHIPPED


@given(USAGE, USAGE)
def test_usage_after_changes_is_that_of_all_anew(before: dict[str, Usage], changed: dict[str, Usage]) -> None:
    followed, anew = ScopeUsage.of(before).after(changed), ScopeUsage.of(before | changed)
    assert (followed.by_id, followed.ids) == (anew.by_id, anew.ids)
    assert followed.numbers.tolist() == anew.numbers.tolist()
