"""The day that a text says something happened on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest

from hummock.text.questions import Trait
from hummock.text.told_days import MOST_CHARACTERS, event_time_of, when_said

SAID = datetime(2026, 11, 25, 9, 30, tzinfo=UTC)  # a Wednesday


def day_of(text: str, said: datetime = SAID) -> str | None:
    read = event_time_of(text, said.timestamp())
    return None if read is None else f"{datetime.fromtimestamp(read, UTC):%Y-%m-%d}"


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("Yesterday we swam in the lake.", "2026-11-24"),
        ("The day before yesterday Ann called", "2026-11-23"),
        ("I quit 3 days ago", "2026-11-22"),
        ("I quit three days ago", "2026-11-22"),
        ("Last night the pager rang", "2026-11-24"),
        ("This morning I ran 5 km", "2026-11-25"),
        ("We went hiking last Wednesday", "2026-11-18"),
        ("Tomorrow I fly to Rome", "2026-11-26"),
        ("On May 2nd, 2024 we moved", "2024-05-02"),
        ("On May 2nd last year we moved", "2025-05-02"),
        ("On November 2nd we moved", "2026-11-02"),
        ("2024-05-02: released 3.4", "2024-05-02"),
        ("昨天我们去了动物园。", "2026-11-24"),
        ("前天晚上吃了火锅", "2026-11-23"),
        ("大前天下雨", "2026-11-22"),
        ("三天前买了车", "2026-11-22"),
        ("昨晚没睡好", "2026-11-24"),
        ("今早跑了五公里", "2026-11-25"),
        ("上周三我们搬了家。", "2026-11-18"),
        ("上個星期天爬山", "2026-11-22"),
        ("这周一开会了", "2026-11-23"),
        ("下周三考试", "2026-12-02"),
        ("去年五月二日上线", "2025-05-02"),
        ("2024年5月2日上线", "2024-05-02"),
        ("11月2日我们结婚", "2026-11-02"),
        ("昨天 deploy 了 v2.1", "2026-11-24"),
        ("上周五 release 了 3.4，roll back 过一次", "2026-11-20"),
        ("Yesterday we deployed, 昨天晚上 rollback 了", "2026-11-24"),
    ],
)
def test_one_day_is_read(text: str, day: str) -> None:
    assert day_of(text) == day


@pytest.mark.parametrize(
    "text",
    [
        "",
        "We swam in the lake.",
        # Which week, which year, which day of it?
        "On Friday we deploy",
        "Next Friday we leave",
        "周五部署",
        "On May 2nd we marry",
        "5月2日结婚",
        "Last week we hiked",
        "上周很忙",
        "two weeks ago we met",
        "in May 2024 we met",
        "recently I swim a lot",
        "最近很累",
        "几天前买了车",
        "a few days ago I quit",
        "last weekend we hiked",
        "Christmas was quiet",
        # Several days, or a habit.
        "Yesterday we decided to move on Friday",
        "昨天和前天都下雨",
        "every Wednesday we meet",
        "每周三开会",
        # A question tells nothing.
        "What did we do yesterday?",
        "昨天做了什么？",
        "Did you sleep last night? I did.",
        # A document.
        f"Yesterday we swam. {'The lake was cold. ' * 20}",
        # No such day.
        "2024-02-30 we met",
    ],
)
def test_what_leaves_the_day_open_gives_none(text: str) -> None:
    assert day_of(text) is None


@pytest.mark.parametrize("text", ["Yesterday we swam.", "昨天我们游泳了", "三天前游泳", "Two days ago we swam."])
@pytest.mark.parametrize("hours", [-11, -5, 0, 8, 13])
@pytest.mark.parametrize("hour", [0, 7, 15, 23])
def test_words_that_count_days_are_right_in_every_zone_that_keeps_its_clocks(text: str, hours: int, hour: int) -> None:
    zone = timezone(timedelta(hours=hours))
    said = datetime(2026, 11, 25, hour, 30, tzinfo=zone)
    days = 1 if text in ("Yesterday we swam.", "昨天我们游泳了") else 3 if "三" in text else 2
    read = event_time_of(text, said.timestamp())
    assert read is not None
    assert datetime.fromtimestamp(read, zone).date() == said.date() - timedelta(days=days)


def test_the_ends_of_the_calendar_give_none() -> None:
    for said in (-1e12, 1e12, datetime(1, 1, 1, 12, tzinfo=UTC).timestamp()):
        assert event_time_of("Yesterday we swam.", said) is None


def test_the_longest_text_is_read() -> None:
    text = "Yesterday we swam."
    assert event_time_of(text.ljust(MOST_CHARACTERS, "!"), SAID.timestamp()) is not None
    assert event_time_of(text.ljust(MOST_CHARACTERS + 1, "!"), SAID.timestamp()) is None


def test_a_day_read_from_a_text_is_not_when_it_was_said() -> None:
    event, create = np.array([np.nan, 5.0, 5.0]), np.array([9.0, 9.0, 9.0])
    traits = np.array([0, 0, Trait.DATED], np.uint8)
    assert when_said(event, create, traits).tolist() == [9.0, 5.0, 9.0]
    assert when_said(event[:0], create[:0], traits[:0]).tolist() == []
