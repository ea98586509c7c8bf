"""Times told by what happened then: the words of the event, and how the time lies to its day."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummock.text import event_reference
from hummock.text.event_reference import parse_event_reference
from hummock.text.normalise import nfkc, simplified
from hummock.text.question import Question, hints_of
from tests.sure import sure

DAY = date(2025, 2, 26)
HAPPENED_S = datetime(2025, 2, 26, 13, tzinfo=UTC).timestamp()

# The text, what happened, and the first and the last day that are meant.
TOLD = [
    ("马拉松前两周我做了什么", "马拉松", "2025-02-12", "2025-02-25"),
    ("馬拉松前兩週我做了什麼", "马拉松", "2025-02-12", "2025-02-25"),
    ("马拉松之后的一周里发生了哪些事？", "马拉松", "2025-02-27", "2025-03-05"),
    ("我搬家的前一天在忙些什么", "我搬家", "2025-02-25", "2025-02-25"),
    ("表妹的婚礼第二天过得怎么样", "表妹的婚礼", "2025-02-27", "2025-02-27"),
    ("好的，搬家那天吃了什么", "搬家", "2025-02-26", "2025-02-26"),
    ("拔智齿后三天", "拔智齿", "2025-02-27", "2025-03-01"),
    ("搬家三天后见了谁", "搬家", "2025-03-01", "2025-03-01"),
    ("产品发布会那周在忙什么", "产品发布会", "2025-02-24", "2025-03-02"),
    ("产品发布会前后", "产品发布会", "2025-02-23", "2025-03-01"),
    ("What did I do in the two weeks before the marathon?", "the marathon", "2025-02-12", "2025-02-25"),
    ("what was I up to on the day after my cousin's wedding", "my cousin's wedding", "2025-02-27", "2025-02-27"),
    ("What happened in the week after the move?", "the move", "2025-02-27", "2025-03-05"),
    ("two days after we moved in", "we moved in", "2025-02-28", "2025-02-28"),
    ("the month of the move", "the move", "2025-02-01", "2025-02-28"),
    ("the year following the move", "the move", "2025-02-27", "2026-02-26"),
]


@pytest.mark.parametrize(("text", "event", "first", "last"), TOLD, ids=[row[0] for row in TOLD])
def test_an_event_and_the_days_beside_it(text: str, event: str, first: str, last: str) -> None:
    """S4-31: times of questions."""
    told = sure(parse_event_reference(Question(text)))
    assert told.event == event
    interval = sure(told.interval(HAPPENED_S))
    assert interval.phrase in text
    days = [datetime.fromtimestamp(moment, UTC) for moment in (interval.start, interval.end)]
    assert [str(days[0].date()), str((days[1] - timedelta(days=1)).date())] == [first, last]
    assert all(moment.time().isoformat() == "00:00:00" for moment in days)


NOT_TOLD = [
    "那天我做了什么", "我前三天做了什么", "我马拉松前两三天做了什么", "前后端分离怎么做", "当前目录下有几个文件",
    "这是第三次部署",
    "the day before that", "which day of the week is it", "fix the crash after release",
    "parse the date before the request",
    "马拉松", "",
]  # fmt: skip


@pytest.mark.parametrize("text", NOT_TOLD)
def test_of_others_no_event_is_told(text: str) -> None:
    assert parse_event_reference(Question(text)) is None


@pytest.mark.parametrize("text", ["搬家前0天做了什么", "搬家前00个月", "搬家后99年", "the 99 years following the move"])
def test_no_days_at_all_and_what_lies_beyond_the_calendar_are_no_time(text: str) -> None:
    told = sure(parse_event_reference(Question(text)))
    moments = [HAPPENED_S] if "0" in text else [datetime(9990, 1, 1, tzinfo=UTC).timestamp(), 1e300]
    assert [told.interval(moment) for moment in moments] == [None] * len(moments)


@given(st.from_regex(event_reference._BEHIND_AN_EVENT) | st.from_regex(event_reference._BEFORE_AN_EVENT))
def test_words_for_a_time_beside_an_event_have_a_hint(text: str) -> None:
    written = simplified(nfkc(text))
    if event_reference._BEHIND_AN_EVENT.search(written) or event_reference._BEFORE_AN_EVENT.search(written):
        assert not event_reference._HINTS.isdisjoint(hints_of(written))
