"""Times that a query tells: days in a time zone, and days by what happened then."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import recall_pb2 as recall
from tests.service.calls import ask, change_settings, contents, failure, learn, stamp
from tests.service.inputs import note
from tests.service.running import Stubs

pytestmark = pytest.mark.storeless

SHANGHAI = "Asia/Shanghai"
DIARY = {
    "the day before": "2026-11-25T10:00+08:00",
    "yesterday": "2026-11-26T10:00+08:00",
    "this morning": "2026-11-27T06:50+08:00",
}
MORNING, EVENING = "2026-11-27T07:00+08:00", "2026-11-27T20:00+08:00"


def at(written: str) -> Timestamp:
    return stamp(datetime.fromisoformat(written).astimezone(UTC))


@pytest.fixture
def diary(service: Stubs, project: str) -> str:
    texts = ("整理了阳台上的花盆", "去河边拍了照片", "买了两斤橘子")
    told = zip(DIARY.items(), texts, strict=True)
    learn(service, project, *(note(text, id=id_, event_time=at(time)) for (id_, time), text in told))
    return project


def live_in(service: Stubs, project: str, zone: str) -> None:
    change_settings(service, project, "times.zone", times={"zone": zone})


def first(service: Stubs, project: str, time: str, **options: Any) -> str:
    return ask(service, project, "我昨天做了什么？", as_of=at(time), **options).hits[0].memory.id


@pytest.mark.parametrize("time", [MORNING, EVENING])
@pytest.mark.parametrize("preset", [recall.PRESET_AGENT, recall.PRESET_CHAT])
def test_yesterday_is_the_askers(service: Stubs, diary: str, time: str, preset: recall.Preset.ValueType) -> None:
    """The zone is set by the request, by the project, or by both, where the request's counts."""
    assert first(service, diary, time, preset=preset, time_zone=SHANGHAI) == "yesterday"
    assert first(service, diary, time, preset=preset, time_zone="+08:00") == "yesterday"
    live_in(service, diary, SHANGHAI)
    assert first(service, diary, time, preset=preset) == "yesterday"
    live_in(service, diary, "America/New_York")
    assert first(service, diary, time, preset=preset, time_zone=SHANGHAI) == "yesterday"


def test_the_receipt_says_which_day_was_meant(service: Stubs, diary: str) -> None:
    live_in(service, diary, SHANGHAI)
    answer = ask(service, diary, "我昨天做了什么？", as_of=at(MORNING))
    (told,) = answer.receipt.times
    assert told.start_time == at("2026-11-26T00:00+08:00")
    assert told.end_time == at("2026-11-27T00:00+08:00")
    assert "times.zone" in answer.receipt.project_settings


def test_a_search_and_a_rendering_follow_the_zone_too(service: Stubs, diary: str) -> None:
    """S4-31."""
    asked = "我昨天做了什么？"
    found = service.context.Search(project=diary, query_text=asked, as_of=at(MORNING), time_zone=SHANGHAI)
    assert found.results[0].memory_id == "yesterday"
    request = context.RenderRequest(
        project=diary,
        recall=recall.RecallRequest(query_text=asked, as_of=at(MORNING), time_zone=SHANGHAI),
        form=context.RENDER_FORM_MEMORIES,
    )
    assert "[2026-11-26 10:00]" in service.context.Render(request).text
    request.utc_offset_minutes = -60
    assert "[2026-11-26 01:00]" in service.context.Render(request).text
    request.ClearField("utc_offset_minutes")
    request.recall.ClearField("time_zone")
    assert "[2026-11-26 02:00]" in service.context.Render(request).text
    live_in(service, diary, SHANGHAI)
    assert "[2026-11-26 10:00]" in service.context.Render(request).text


@pytest.mark.parametrize("name", ["Asia/Nowhere", "../../etc/passwd", "UTC+8", "+25:00"])
def test_an_unknown_zone_is_refused_by_its_field(service: Stubs, diary: str, name: str) -> None:
    assert "time_zone" in failure(ask, service, diary, "昨天", time_zone=name).violations
    assert "settings.times.zone" in failure(live_in, service, diary, name).violations


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


def on(days: int) -> Timestamp:
    return stamp(MOVE + timedelta(days=days))


def keep_diary(service: Stubs, project: str) -> None:
    learn(service, project, *[note(text, id=f"d{day}", event_time=on(day)) for day, text in DAYS.items()])


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
    learn(service, project, note(DAYS[0], id="d0", event_time=on(4)))
    after = ask(service, project, question)
    assert not after.receipt.cached
    assert contents(after)[0] == DAYS[5]
