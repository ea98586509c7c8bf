"""Questions that tell a time by what happened then: the event is found first, and what lies near it answers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from hummock_client.v1 import recall_pb2 as recall
from tests.service.calls import ask, contents, learn
from tests.service.inputs import note
from tests.service.running import Stubs

MOVE = datetime(2025, 4, 18, 10, tzinfo=UTC)
DAYS = {
    -20: "bought seeds for the balcony",
    -9: "gave the old sofa away",
    -1: "packed the last boxes of books",
    0: "搬家公司一早就来了 the moving van came early",
    1: "slept until noon among the boxes",
    5: "met the neighbour from upstairs",
    30: "planted tomatoes in the yard",
}


def stamp(days: int) -> Timestamp:
    found = Timestamp()
    found.FromDatetime(MOVE + timedelta(days=days))
    return found


def keep_diary(service: Stubs, project: str) -> None:
    learn(service, project, *[note(text, id=f"d{day}", event_time=stamp(day)) for day, text in DAYS.items()])


def first_days(service: Stubs, project: str, question: str, count: int, **options: bool) -> set[str]:
    found = ask(service, project, question, preset=recall.PRESET_AGENT, **options)
    return {hit.memory.id for hit in found.hits[:count]}


@pytest.mark.parametrize(
    ("question", "begins", "days"),
    [
        ("搬家前一天我做了什么", -1, [-1]),
        ("搬家前两周我都做了些什么", -14, [-1, -9]),
        ("我搬家第二天在忙些什么", 1, [1]),
        ("搬家后的一周里发生了什么", 1, [1, 5]),
        ("What did I do on the day before the moving van came?", -1, [-1]),
        ("What happened in the week after the moving van came?", 1, [1, 5]),
    ],
)
def test_what_lies_beside_an_event_answers(
    service: Stubs, project: str, question: str, begins: int, days: list[int]
) -> None:
    keep_diary(service, project)
    assert first_days(service, project, question, len(days)) == {f"d{day}" for day in days}
    (told,) = ask(service, project, question).receipt.times
    assert told.phrase in question
    assert (told.start_time.ToDatetime(UTC).date() - MOVE.date()).days == begins


def test_an_event_that_nothing_is_known_of_tells_no_time(service: Stubs, project: str) -> None:
    keep_diary(service, project)
    assert not ask(service, project, "what did I do on the day before the volcano erupted").receipt.times


def test_who_wants_no_times_gets_none(service: Stubs, project: str) -> None:
    keep_diary(service, project)
    assert not ask(service, project, "搬家前一天我做了什么", time_words=False).receipt.times


def test_the_answer_is_kept_until_the_event_has_another_day(service: Stubs, project: str) -> None:
    """S2-03: the cache goes by the content."""
    keep_diary(service, project)
    question = "搬家第二天我做了什么"
    assert contents(ask(service, project, question))[0] == DAYS[1]
    assert ask(service, project, question).receipt.cached
    learn(service, project, note(DAYS[0], id="d0", event_time=stamp(4)))
    after = ask(service, project, question)
    assert not after.receipt.cached
    assert contents(after)[0] == DAYS[5]
