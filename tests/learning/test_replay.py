"""History played again, as it was and under other numbers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hummock.core.deadline import Deadline
from hummock.core.errors import DeadlinePassed, InvalidRequest
from hummock.core.learning_requests import ForkedTurn, SettingsChanges
from tests.learning.workbench import Workbench, entry_id
from tests.store.opening import opened
from tests.sure import sure

FIVE_TWO = SettingsChanges(high_above=5, mid_above=2)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Workbench]:
    with opened(tmp_path) as store:
        made = Workbench(store)
        made.put("alder", "birch")
        made.update(enabled=True)
        yield made


def test_a_replay_of_nothing_matches(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        replayed = Workbench(store, "nobody").replay(FIVE_TWO)
        assert (replayed.events, replayed.matches) == (0, True)
        assert replayed.fork is not None
        assert replayed.fork.turn_count == 0


def test_a_replay_gives_the_state_touches_nothing_and_ends_once_nobody_waits(bench: Workbench) -> None:
    """S3-28, S3-41."""
    bench.say("alder", 1)
    bench.learn("alder", "harbour wood")
    bench.remove("birch")
    before = bench.log()
    replayed = bench.replay(FIVE_TWO)
    assert replayed.matches
    assert (bench.log(), replayed.events) == (before, len(before))
    nobody = Deadline(until_s=0.0, monotonic=lambda: 1.0)
    with pytest.raises(DeadlinePassed):
        bench.learning.replay(bench.project, None, nobody)


def test_a_fork_under_the_same_numbers_differs_in_nothing(bench: Workbench) -> None:
    for turn in range(1, 40):
        bench.say("alder birch" if turn % 9 == 1 else "nothing", turn, room=turn % 3)
    fork = sure(bench.replay(SettingsChanges(high_above=10, mid_above=3)).fork)
    assert fork.turn_count == 39
    assert (fork.differing_count, fork.injected_count) == (0, fork.forked_injected_count)


def test_a_fork_says_what_five_and_two_would_have_injected(bench: Workbench) -> None:
    """S3-44: the same history, thresholds 5/2."""
    for turn in range(1, 7):
        bench.say("alder", turn)
    assert bench.say("nothing", 7) == []
    fork = sure(bench.replay(FIVE_TWO).fork)
    assert (fork.settings.high_above, fork.settings.mid_above) == (5, 2)
    assert (fork.injected_count, fork.forked_injected_count) == (6, 7)
    number = len(bench.log())
    assert fork.differing == (
        ForkedTurn(event=number, scope="", turn=7, added_ids=(entry_id("alder"),), removed_ids=()),
    )


def test_a_fork_lives_with_what_it_has_sent(bench: Workbench) -> None:
    """An event sent earlier in the fork cools down there, and comes later than it did."""
    bench.say("alder", 1)
    shown = [turn for turn in range(2, 26) if bench.say("nothing", turn)]
    assert shown == [12, 23]
    fork = sure(bench.replay(SettingsChanges(low_cooldown_turns=6)).fork)
    added = [one.turn for one in fork.differing if one.added_ids]
    removed = [one.turn for one in fork.differing if one.removed_ids]
    assert (added, removed) == ([8, 15, 22], [12, 23])


def test_a_fork_follows_settings_that_changed_in_between(bench: Workbench) -> None:
    """Numbers that the fork does not say are those of the time."""
    bench.say("alder", 1)
    bench.update(changes=SettingsChanges(low_cooldown_turns=1))
    assert bench.say("nothing", 3) == ["alder"]
    assert sure(bench.replay(SettingsChanges(mid_cooldown_turns=7)).fork).differing_count == 0


def test_a_fork_does_not_decide_anew_while_learning_was_off_nor_under_wrong_numbers(bench: Workbench) -> None:
    bench.say("alder", 1)
    bench.update(enabled=False)
    bench.say("alder", 2)
    assert sure(bench.replay(FIVE_TWO).fork).turn_count == 1
    with pytest.raises(InvalidRequest) as refused:
        bench.replay(SettingsChanges(high_above=2))
    assert refused.value.field == "fork.high_above"
