"""Background learning is bounded, does one thing at a time, and blocks no call."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest

from hummock.core.learning import KeywordUpdate, Learner
from hummock.core.learning_requests import EntryLearnt, EntryOutcome, ScanEnd, ScanScope
from hummock.learning.background import FAILURES, MAX_WAITING_PROJECTS
from hummock.ports.models import KeywordQuestion, LearnerFailed
from tests.learning_desk import PROJECT, LearningDesk, learning_desk, learnt, progress, saying

NAMES = ("wood", "star", "port")


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[LearningDesk]:
    with learning_desk(tmp_path) as opened:
        opened.entries(*NAMES)
        opened.switch()
        yield opened


def fail(_: KeywordQuestion) -> tuple[KeywordUpdate, ...]:
    raise LearnerFailed("it is down")


def test_of_a_project_the_newest_turn_is_learnt_from_and_others_are_counted(desk: LearningDesk) -> None:
    """S3-44: one at a time."""
    for number in range(5):
        desk.turn(number, f"wood {number}")
    assert desk.background.dropped == 4
    assert desk.work() == 1
    assert [asked.user_text for asked in desk.learner.asked] == ["wood 4"]


def test_a_learner_that_goes_down_is_logged_once_each_time(
    desk: LearningDesk, caplog: pytest.LogCaptureFixture
) -> None:
    for number, answer in enumerate((fail, fail, saying({}), fail)):
        desk.learner.answer = answer
        desk.turn(number, "wood")
        desk.work()
    assert [record.getMessage() for record in caplog.records] == ["nothing was learnt from a turn: it is down"] * 2


def test_an_unexpected_error_is_logged_without_what_was_said(
    desk: LearningDesk, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(question: KeywordQuestion) -> tuple[KeywordUpdate, ...]:
        raise ValueError(f"cannot read {question.user_text} of {question.entries[0].text}")

    desk.entries("wood", text="潮汐木芯")
    desk.switch(cold_start_pause_s=0.0)
    desk.learner.answer = broken
    desk.turn(0, "wood, my secret")
    desk.background.scan(PROJECT, ScanScope.ALL)
    desk.work()
    assert {record.getMessage().partition(" at ")[0] for record in caplog.records} == {
        "nothing was learnt from a turn: ValueError",
        "an entry could not be learnt of: ValueError",
    }
    assert "broken" in caplog.text
    assert not any(said in caplog.text for said in ("secret", "潮汐木芯"))


def test_what_waits_is_bounded_and_the_oldest_is_dropped(desk: LearningDesk) -> None:
    for number in range(MAX_WAITING_PROJECTS + 3):
        desk.background.seen(f"p{number}", "wood")
    assert desk.background.dropped == 3
    assert desk.work() == MAX_WAITING_PROJECTS


def test_nobody_waits_for_a_learner_that_hangs(desk: LearningDesk) -> None:
    """S3-05, S3-44."""
    is_asked, may_answer = Event(), Event()

    def hang(question: KeywordQuestion) -> tuple[KeywordUpdate, ...]:
        is_asked.set()
        assert may_answer.wait(30)
        return saying({"wood": ("timber",)})(question)

    desk.learner.answer = hang
    desk.background.start()
    desk.turn(1, "wood")
    assert is_asked.wait(30)
    for number in range(2, 50):
        desk.turn(number, "star")
    assert desk.background.dropped == 47
    learnt_something = Event()
    desk.place.store.follow(lambda *_: learnt_something.set())
    may_answer.set()
    assert learnt_something.wait(30)
    desk.background.close()
    assert desk.runs()[0].updates == (KeywordUpdate(memory_id="wood", keywords=("timber",)),)


def test_after_it_was_closed_nothing_is_begun(desk: LearningDesk) -> None:
    desk.background.start()
    desk.background.close()
    desk.turn(1, "wood")
    assert desk.learner.asked == []
    desk.background.close()


def test_a_cold_start_reads_the_entries_without_keywords_one_by_one(desk: LearningDesk) -> None:
    """S3-25, S3-26, S3-27, S3-30."""
    desk.learner.answer = saying({"wood": ("timber",)})
    desk.learn.of_entry(PROJECT, "wood")
    desk.learner.asked.clear()
    scan = desk.background.scan(PROJECT, ScanScope.UNLEARNED)
    assert progress(scan).total == 2
    assert desk.work() == 1
    assert learnt(scan) == (EntryLearnt(memory_id="star", outcome=EntryOutcome.NOTHING_NEW),)
    assert progress(scan).end is None
    desk.place.clock.move(0.5)
    desk.work()
    assert [one.memory_id for one in learnt(scan, 1)] == ["port"]
    assert progress(scan).end is ScanEnd.DONE
    assert desk.learner.read_ids == [["star"], ["port"]]
    assert {asked.user_text for asked in desk.learner.asked} == {""}


def test_switching_on_is_a_cold_start_where_there_is_a_language_model(desk: LearningDesk) -> None:
    """S3-25, S3-31."""
    for kind, expected in ((Learner.LLM, [["wood"]]), (Learner.OFFLINE, [])):
        desk.learner.kind = kind
        desk.learner.asked.clear()
        desk.switch(enabled=False)
        desk.place.clock.move(9.0)
        desk.work()
        desk.switch()
        desk.work()
        assert desk.learner.read_ids == expected


def test_between_two_entries_the_pause_goes_by_and_turns_go_first(desk: LearningDesk) -> None:
    """S3-29."""
    desk.background.scan(PROJECT, ScanScope.UNLEARNED)
    assert desk.work() == 1
    desk.place.clock.move(0.49)
    assert desk.work() == 0
    desk.turn(1, "wood")
    desk.place.clock.move(0.01)
    desk.work()
    assert [asked.user_text for asked in desk.learner.asked] == ["", "wood", ""]


def test_the_pause_is_a_setting(desk: LearningDesk) -> None:
    """S3-29."""
    desk.switch(cold_start_pause_s=0.0)
    desk.background.scan(PROJECT, ScanScope.UNLEARNED)
    assert desk.work() == 3


def test_all_entries_can_be_read_again_by_hand_and_single_ones(desk: LearningDesk) -> None:
    """S3-31, S3-36, S3-44."""
    desk.switch(cold_start_pause_s=0.0)
    desk.learner.answer = saying({name: (f"{name}y",) for name in NAMES})
    for scope, expected in ((ScanScope.ALL, 3), (ScanScope.ALL, 3), (ScanScope.UNLEARNED, 0)):
        scan = desk.background.scan(PROJECT, scope)
        desk.work()
        assert len(learnt(scan)) == expected
        assert progress(scan).end is ScanEnd.DONE
    desk.learner.asked.clear()
    desk.background.scan(PROJECT, ScanScope.CHOSEN, ["star", "absent"])
    desk.work()
    assert desk.learner.read_ids == [["star"]]


def test_an_entry_that_is_gone_is_said_to_be(desk: LearningDesk) -> None:
    scan = desk.background.scan(PROJECT, ScanScope.CHOSEN, ["absent"])
    desk.work()
    assert learnt(scan) == (EntryLearnt(memory_id="absent", outcome=EntryOutcome.GONE),)


def test_whoever_asks_while_a_scan_runs_joins_it(desk: LearningDesk) -> None:
    """S3-44: one at a time."""
    scan = desk.background.scan(PROJECT, ScanScope.UNLEARNED)
    desk.work()
    assert desk.background.scan(PROJECT, ScanScope.UNLEARNED) is scan
    assert progress(scan).total == 4


def test_a_scan_goes_on_with_what_is_left(desk: LearningDesk) -> None:
    """S3-25, S3-26: keywords are what tells what is done, so that a restart loses nothing."""
    desk.switch(cold_start_pause_s=0.0)
    desk.learner.answer = saying({"wood": ("timber",)})
    desk.background.scan(PROJECT, ScanScope.UNLEARNED)
    desk.background.step()
    desk.learner.answer = fail
    desk.work()
    desk.learner.asked.clear()
    desk.learner.answer = saying({})
    desk.background.scan(PROJECT, ScanScope.UNLEARNED)
    desk.work()
    assert desk.learner.read_ids == [["star"], ["port"]]


def test_without_a_learner_the_scan_is_skipped_and_says_so(tmp_path: Path) -> None:
    """S3-31."""
    with learning_desk(tmp_path, has_learner=False) as desk:
        desk.entries("wood")
        desk.switch()
        scan = desk.background.scan(PROJECT, ScanScope.UNLEARNED)
        assert progress(scan).end is ScanEnd.NO_LEARNER
        assert "no learner" in progress(scan).reason
        desk.turn(1, "wood")
        assert desk.work() == 0


def test_while_learning_is_off_nothing_is_read(desk: LearningDesk) -> None:
    """S3-37."""
    scan = desk.background.scan(PROJECT, ScanScope.UNLEARNED)
    desk.switch(enabled=False)
    desk.work()
    assert (progress(scan).end, learnt(scan)) == (ScanEnd.OFF, ())
    assert progress(desk.background.scan(PROJECT, ScanScope.ALL)).end is ScanEnd.OFF


def test_a_scan_that_was_ended_while_it_read_an_entry_stays_ended(desk: LearningDesk) -> None:
    """S3-37, S3-38."""
    scan = desk.background.scan(PROJECT, ScanScope.UNLEARNED)

    def switch_off_and_on(question: KeywordQuestion) -> tuple[KeywordUpdate, ...]:
        desk.switch(enabled=False)
        desk.background.scan(PROJECT, ScanScope.ALL)
        desk.switch()
        return saying({"wood": ("timber",)})(question)

    desk.learner.answer = switch_off_and_on
    desk.work()
    assert progress(scan).end is ScanEnd.OFF
    again = desk.background.scan(PROJECT, ScanScope.UNLEARNED)
    assert again is not scan
    assert progress(again).total == 2


def test_a_learner_that_fails_again_and_again_ends_the_scan(desk: LearningDesk) -> None:
    """S3-44."""
    desk.entries("a", "b")
    desk.switch(cold_start_pause_s=0.0)
    desk.learner.answer = fail
    scan = desk.background.scan(PROJECT, ScanScope.UNLEARNED)
    assert desk.work() == FAILURES
    assert progress(scan).end is ScanEnd.FAILING
    assert {(one.outcome, one.reason) for one in learnt(scan)} == {(EntryOutcome.FAILED, "it is down")}
    assert desk.runs() == []


def test_every_step_of_a_scan_is_told_of(desk: LearningDesk) -> None:
    """S3-30."""
    told: list[tuple[str, int]] = []
    desk.background.follow(lambda project, seq: told.append((project, seq)))
    desk.switch(cold_start_pause_s=0.0)
    desk.learner.answer = fail
    desk.background.scan(PROJECT, ScanScope.UNLEARNED)
    desk.work()
    assert told == [(PROJECT, 0)] * 3


def test_scans_of_several_projects_take_turns(desk: LearningDesk) -> None:
    scans = [desk.background.scan(PROJECT, ScanScope.UNLEARNED), desk.background.scan("q", ScanScope.UNLEARNED)]
    assert progress(scans[1]).end is ScanEnd.OFF
    assert desk.work() == 1
