"""Holidays, seasons, parts of months and years, and what lies so long before or after a time."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummock.text.question import Question
from hummock.text.time_holidays import CHINESE_HOLIDAYS, ENGLISH_HOLIDAYS
from hummock.text.time_words import time_intervals

WEDNESDAY = datetime(2023, 5, 17, 10, 30, tzinfo=UTC)


def days(text: str, as_of: datetime = WEDNESDAY) -> list[tuple[str, str]]:
    """First and last day of each span."""
    return [
        (
            datetime.fromtimestamp(each.start, UTC).date().isoformat(),
            (datetime.fromtimestamp(each.end, UTC) - timedelta(seconds=1)).date().isoformat(),
        )
        for each in time_intervals(Question(text), as_of.timestamp())
    ]


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("国庆节我们去了哪里", "2022-10-01", "2022-10-07"),
        ("去年国庆假期", "2022-10-01", "2022-10-07"),
        ("五一去爬山了吗", "2023-05-01", "2023-05-05"),
        ("2021年五一", "2021-05-01", "2021-05-05"),
        ("春节和谁一起过的", "2023-01-21", "2023-01-28"),
        ("除夕夜吃了什么", "2023-01-21", "2023-01-21"),
        ("元宵节", "2023-02-05", "2023-02-05"),
        ("2024年中秋节", "2024-09-17", "2024-09-17"),
        ("端午节的粽子", "2022-06-03", "2022-06-03"),
        ("元旦那天", "2023-01-01", "2023-01-01"),
        ("平安夜", "2022-12-24", "2022-12-24"),
        ("what did we do at Christmas?", "2022-12-24", "2022-12-26"),
        ("Christmas 2020", "2020-12-24", "2020-12-26"),
        ("last Thanksgiving", "2022-11-24", "2022-11-27"),
        ("this Thanksgiving", "2023-11-23", "2023-11-26"),
        ("New Year’s Eve", "2022-12-31", "2022-12-31"),
        ("New Year", "2022-12-31", "2023-01-01"),
        ("Easter of 2021", "2021-04-02", "2021-04-05"),
        ("the Fourth of July", "2022-07-04", "2022-07-04"),
        ("Memorial Day 2022", "2022-05-30", "2022-05-30"),
        ("Mother's Day", "2023-05-14", "2023-05-14"),
        ("Chinese New Year 2022", "2022-01-31", "2022-02-07"),
        # Parts of months and years, and seasons.
        ("月初", "2023-05-01", "2023-05-10"),
        ("这个月中旬", "2023-05-11", "2023-05-20"),
        ("月底", "2023-04-24", "2023-04-30"),
        ("上个月底", "2023-04-24", "2023-04-30"),
        ("两个月前的月初", "2023-03-01", "2023-03-10"),
        ("5月中旬", "2023-05-11", "2023-05-20"),
        ("去年12月下旬", "2022-12-21", "2022-12-31"),
        ("年初", "2023-01-01", "2023-02-28"),
        ("去年年底", "2022-11-01", "2022-12-31"),
        ("2021年上半年", "2021-01-01", "2021-06-30"),
        ("去年夏天", "2022-06-01", "2022-08-31"),
        ("2021年冬天", "2021-12-01", "2022-02-28"),
        ("early May", "2023-05-01", "2023-05-10"),
        ("in mid-April", "2023-04-11", "2023-04-20"),
        ("at the end of last month", "2023-04-24", "2023-04-30"),
        ("in the first week of June last year", "2022-06-01", "2022-06-07"),
        ("late 2021", "2021-11-01", "2021-12-31"),
        ("at the beginning of the year", "2023-01-01", "2023-02-28"),
        ("summer 2021", "2021-06-01", "2021-08-31"),
        ("in the fall of last year", "2022-09-01", "2022-11-30"),
        ("last summer", "2022-06-01", "2022-08-31"),
        ("last spring", "2022-03-01", "2022-05-31"),
        ("in 2010", "2010-01-01", "2010-12-31"),
        ("2010年的旅行", "2010-01-01", "2010-12-31"),
        ("上上周", "2023-05-01", "2023-05-07"),
        ("the week before last", "2023-05-01", "2023-05-07"),
        # Weeks of a month. It is Wednesday, May 17th.
        ("in the 2nd week of April", "2023-04-08", "2023-04-14"),
        ("in the fourth week of March last year", "2022-03-22", "2022-03-28"),
        ("the final week in June", "2022-06-24", "2022-06-30"),
        ("in the first week of last month", "2023-04-01", "2023-04-07"),
        ("the last week of this month", "2023-05-25", "2023-05-31"),
        ("三月第二周", "2023-03-08", "2023-03-14"),
        ("三月的第3个星期", "2023-03-15", "2023-03-21"),
        ("去年11月第四周", "2022-11-22", "2022-11-28"),
        ("四月最后一周", "2023-04-24", "2023-04-30"),
        ("上个月第一周", "2023-04-01", "2023-04-07"),
        ("这个月的最后一个礼拜", "2023-05-25", "2023-05-31"),
        ("三月最後一週", "2023-03-25", "2023-03-31"),
        # Weeks of a day.
        ("in the week of March 23rd", "2023-03-20", "2023-03-26"),
        ("the week of 20 January 2021", "2021-01-18", "2021-01-24"),
        ("the week starting on March 23rd", "2023-03-23", "2023-03-29"),
        ("the week of Easter", "2023-04-03", "2023-04-09"),
        ("1月20日那一周", "2023-01-16", "2023-01-22"),
        ("3月25号那个星期", "2023-03-20", "2023-03-26"),
        ("清明节那周", "2023-04-03", "2023-04-09"),
        ("端午节当周", "2022-05-30", "2022-06-05"),
        # What counts from a time.
        ("春节后那一周", "2023-01-29", "2023-02-04"),
        ("五一假期前那个星期", "2023-04-24", "2023-04-30"),
        ("国庆节后那个月", "2022-10-08", "2022-11-07"),
        ("the week before Christmas", "2022-12-17", "2022-12-23"),
        ("in the two weeks before May 2nd", "2023-04-18", "2023-05-01"),
        ("two weeks before May 2nd", "2023-04-15", "2023-04-21"),
        ("three days after Christmas Eve", "2022-12-27", "2022-12-27"),
        ("the day after yesterday", "2023-05-17", "2023-05-17"),
        ("国庆节前两天", "2022-09-29", "2022-09-30"),
        ("5月2日前两周", "2023-04-18", "2023-05-01"),
        ("春节后三天", "2023-01-29", "2023-01-31"),
        ("国庆两周前", "2022-09-14", "2022-09-20"),
        ("中秋节前后", "2022-09-07", "2022-09-13"),
    ],
)
def test_feasts_parts_and_seasons_are_spans_of_the_last_year_that_had_them(text: str, first: str, last: str) -> None:
    assert days(text) == [(first, last)]


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("半个月前", date(2023, 5, 2), date(2023, 5, 12)),
        ("半年前", date(2022, 11, 17), date(2023, 3, 1)),
        ("一个多月前", date(2023, 4, 5), date(2023, 5, 1)),
        ("两周多前", date(2023, 5, 1), date(2023, 5, 10)),
        ("一个半月前", date(2023, 4, 2), date(2023, 5, 5)),
        ("三年多前", date(2019, 12, 1), date(2022, 1, 1)),
        ("十多天前", date(2023, 5, 4), date(2023, 5, 12)),
        ("a fortnight ago", date(2023, 5, 3), date(2023, 5, 12)),
        ("half a year ago", date(2022, 11, 17), date(2023, 3, 1)),
        ("more than two months ago", date(2023, 3, 1), date(2023, 4, 1)),
        ("over a year ago", date(2021, 9, 1), date(2022, 9, 1)),
    ],
)
def test_a_count_and_a_bit_leaves_open_how_long_ago(text: str, inside: date, outside: date) -> None:
    (found,) = time_intervals(Question(text), WEDNESDAY.timestamp())
    ((first, last),) = days(text)
    assert found.is_vague
    assert first <= inside.isoformat() <= last
    assert not first <= outside.isoformat() <= last


@pytest.mark.parametrize(
    "text",
    [
        "圣诞树放在哪里", "五一路怎么走", "find the Easter egg in the code", "春天的故事", "月中国际会议",
        "三年级的时候", "the end of the file", "early return", "half a dozen eggs", "双十", "in mid_april.py",
    ],
)  # fmt: skip
def test_what_only_looks_like_it_is_no_time(text: str) -> None:
    assert days(text) == []


@given(
    holiday=st.sampled_from([*CHINESE_HOLIDAYS, *ENGLISH_HOLIDAYS]),
    as_of=st.datetimes(datetime(1990, 1, 1), datetime(2090, 1, 1), timezones=st.just(UTC)),
)
def test_a_holiday_without_a_year_has_begun_or_is_in_no_table(holiday: str, as_of: datetime) -> None:
    for each in time_intervals(Question(holiday), as_of.timestamp()):
        assert each.start <= as_of.timestamp()
        assert as_of.timestamp() - each.start <= 400 * 86_400


def test_the_lunar_calendar_is_known_from_2015_to_2035() -> None:
    assert all(days(f"{year}年春节") and days(f"{year}年中秋") for year in range(2015, 2036))
    assert days("2014年春节") == [("2014-01-01", "2014-12-31")] or days("2014年春节") == []
