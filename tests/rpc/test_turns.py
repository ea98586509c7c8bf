"""Order of queued work: projects share, interactive work goes before bulk, and nobody starves."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from hummock.rpc.turns import BULK_ONE_IN, REFUSALS_AT_ONCE, Refusals, Turns


def order(turns: Turns[str], took_s: float = 1.0) -> list[str]:
    """All queued work, in the order in which it is done."""
    done = []
    while (one := turns.pop(took_s)) is not None:
        done.append(one[1])
    return done


def test_a_quiet_project_does_not_stand_behind_anothers_flood() -> None:
    """D8, V10 of the reliability notes."""
    turns: Turns[str] = Turns()
    for number in range(100):
        turns.push("loud", f"loud {number}")
    turns.push("quiet", "quiet")
    assert order(turns).index("quiet") <= 1


def test_projects_share_time_and_not_calls() -> None:
    turns: Turns[str] = Turns()
    for number in range(40):
        turns.push("cheap", f"cheap {number}")
        turns.push("dear", f"dear {number}")
    done = []
    for _ in range(22):
        project, item = turns.pop(1.0) or ("", "")
        turns.charge(project, 9.0 if project == "dear" else 0.0)
        done.append(item.split()[0])
    assert (done.count("cheap"), done.count("dear")) == (20, 2)


def test_what_was_not_used_is_not_saved_up() -> None:
    turns: Turns[str] = Turns()
    turns.push("old", "first")
    assert order(turns) == ["first"]
    for number in range(50):
        turns.push("busy", str(number))
    for _ in range(40):
        turns.pop(1.0)
    for number in range(10):
        turns.push("old", f"old {number}")
    assert [one.startswith("old") for one in order(turns)].count(True) == 10
    turns.push("busy", "b")
    assert order(turns) == ["b"]


def test_interactive_work_goes_first_and_bulk_never_starves() -> None:
    """D16."""
    turns: Turns[str] = Turns()
    for number in range(10):
        turns.push("p", f"bulk {number}", is_bulk=True)
    for number in range(3 * (BULK_ONE_IN - 1)):
        turns.push("p", f"call {number}")
    done = order(turns)
    assert [place for place, one in enumerate(done) if one.startswith("bulk")][:3] == [
        BULK_ONE_IN - 1,
        2 * BULK_ONE_IN - 1,
        3 * BULK_ONE_IN - 1,
    ]
    assert len(done) == 31


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xy"), st.booleans()), max_size=60))
def test_all_that_waits_is_done_once_and_in_each_line_in_order(pushed: list[tuple[str, str, bool]]) -> None:
    turns: Turns[str] = Turns()
    named = [f"{project}{caller}{bulk} {number}" for number, (project, caller, bulk) in enumerate(pushed)]
    for name, (project, caller, is_bulk) in zip(named, pushed, strict=True):
        turns.push(project, name, caller=caller, is_bulk=is_bulk)
    assert len(turns) == len(pushed)
    done = order(turns)
    assert len(turns) == 0
    assert sorted(done) == sorted(named)
    for line in {one.split()[0] for one in done}:
        numbers = [int(one.split()[1]) for one in done if one.split()[0] == line]
        assert numbers == sorted(numbers)


def test_how_much_is_ahead_counts_the_turns_of_others() -> None:
    turns: Turns[str] = Turns()
    for number in range(100):
        turns.push("loud", str(number))
    assert (turns.ahead("loud"), turns.ahead("quiet")) == (100, 1)
    turns.push("quiet", "q")
    assert turns.ahead("quiet") == 3


def test_callers_of_a_project_take_turns_and_take_nothing_from_other_projects() -> None:
    turns: Turns[str] = Turns()
    for number in range(30):
        turns.push("shared", f"loud {number}", caller="loud")
    turns.push("shared", "quiet 0", caller="quiet")
    turns.push("shared", "quiet 1", caller="quiet")
    for number in range(3):
        turns.push("own", f"own {number}", caller="loud")
    assert order(turns)[:7] == ["loud 0", "own 0", "quiet 0", "own 1", "loud 1", "own 2", "quiet 1"]


def test_how_much_is_ahead_of_a_caller_counts_the_turns_of_others_in_its_project() -> None:
    turns: Turns[str] = Turns()
    for number in range(100):
        turns.push("p", str(number), caller="loud")
    assert (turns.ahead("p", "loud"), turns.ahead("p", "quiet"), turns.ahead("q", "loud")) == (100, 1, 1)
    turns.push("p", "q", caller="quiet")
    assert (turns.ahead("p", "quiet"), turns.ahead("p", "third")) == (3, 2)
    turns.push("q", "q")
    assert (turns.ahead("p", "quiet"), turns.ahead("p", "third")) == (7, 5)


def test_the_caller_with_most_work_has_the_longest_queue_of_its_project() -> None:
    turns: Turns[str] = Turns()
    assert turns.longest() is None
    for caller, count in (("a", 2), ("b", 3)):
        for number in range(count):
            turns.push("p", f"{caller} {number}", caller=caller)
    for number in range(4):
        turns.push("q", str(number))
    assert turns.longest() == ("p", "b", "b 2")
    turns.remove("p", "b 2", caller="b")
    turns.remove("p", "b 1", caller="b")
    assert turns.longest() == ("q", "", "3")
    assert (turns.length("p"), turns.length("p", "a"), turns.length("p", "c")) == (3, 2, 0)


async def test_beyond_the_first_refusals_callers_take_turns() -> None:
    refusals, told = Refusals(), list[str]()

    async def refuse(caller: str) -> None:
        await refusals.turn(caller)
        told.append(caller)

    loud = [refuse("loud") for _ in range(REFUSALS_AT_ONCE + 5)]
    async with asyncio.timeout(30):
        await asyncio.gather(*loud, refuse("quiet"))
    assert told[:REFUSALS_AT_ONCE] == ["loud"] * REFUSALS_AT_ONCE
    assert "quiet" in told[: REFUSALS_AT_ONCE + 3]


async def test_refusals_that_wait_are_let_go_by_a_stop_and_by_their_deadline() -> None:
    refusals = Refusals()
    waiting = [asyncio.ensure_future(refusals.turn("loud")) for _ in range(10 * REFUSALS_AT_ONCE)]
    async with asyncio.timeout(30):
        await refusals.turn("late", 0.0)
        assert not all(each.done() for each in waiting)
        refusals.end()
        await asyncio.gather(*waiting)
