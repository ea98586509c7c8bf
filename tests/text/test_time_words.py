"""Times that a text speaks of."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hummock.core.errors import InvalidRequest
from hummock.core.time_zone import zone_of
from hummock.text.normalise import nfkc, simplified
from hummock.text.question import MAX_OPENING, Question, hints_of
from hummock.text.time_rules import Rules, any_of
from hummock.text.time_words import DIGITS, HINTS, time_intervals
from hummock.text.time_words_en import _MONTHS, ENGLISH
from hummock.text.time_words_zh import CHINESE

WEDNESDAY = datetime(2023, 5, 17, 10, 30, tzinfo=UTC)

MOMENTS = st.datetimes(min_value=datetime(1990, 1, 1), max_value=datetime(2090, 12, 31), timezones=st.just(UTC))

PAST = (
    "yesterday", "the day before yesterday", "last night", "yesterday evening", "last week", "last month", "last year",
    "last Monday", "last Sunday", "last weekend", "last May", "three days ago", "a week ago", "two months ago",
    "a few days ago", "an hour ago", "over the last three weeks", "in the past month", "recently", "the other day",
    "昨天", "昨晚", "前天晚上", "大前天", "上周", "上周日", "上周末", "上个月", "上个月1号", "去年", "前年三月",
    "三天前", "两个星期前", "几个月前", "最近", "最近三天", "过去两三个小时", "三五天前", "前几天", "刚才",
)  # fmt: skip


def spans(text: str, as_of: datetime = WEDNESDAY) -> list[tuple[datetime, datetime]]:
    return [
        (datetime.fromtimestamp(found.start, UTC), datetime.fromtimestamp(found.end, UTC))
        for found in time_intervals(Question(text), as_of.timestamp())
    ]


def only(text: str, as_of: datetime = WEDNESDAY) -> tuple[datetime, datetime]:
    (span,) = spans(text, as_of)
    return span


def day(written: str) -> datetime:
    return datetime.fromisoformat(written).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "first", "end"),
    [
        ("today", "2023-05-17", "2023-05-18"),
        ("What did I eat yesterday?", "2023-05-16", "2023-05-17"),
        ("tomorrow", "2023-05-18", "2023-05-19"),
        ("What happened last week", "2023-05-08", "2023-05-15"),
        ("two weeks ago", "2023-05-01", "2023-05-08"),
        ("a couple of weeks ago", "2023-05-01", "2023-05-08"),
        ("3 months ago", "2023-02-01", "2023-03-01"),
        ("last Monday", "2023-05-15", "2023-05-16"),
        ("last Wednesday", "2023-05-10", "2023-05-11"),
        ("on Friday", "2023-05-12", "2023-05-13"),
        ("next Monday", "2023-05-22", "2023-05-23"),
        ("the weekend", "2023-05-13", "2023-05-15"),
        ("in May 2023", "2023-05-01", "2023-06-01"),
        ("in june", "2022-06-01", "2022-07-01"),
        ("last May", "2022-05-01", "2022-06-01"),
        ("May of last year", "2022-05-01", "2022-06-01"),
        ("May 5", "2023-05-05", "2023-05-06"),
        ("on may 5th", "2023-05-05", "2023-05-06"),
        ("May 5, 2021", "2021-05-05", "2021-05-06"),
        ("on 2 May", "2023-05-02", "2023-05-03"),
        ("the 2nd of May 2020", "2020-05-02", "2020-05-03"),
        ("December 25", "2022-12-25", "2022-12-26"),
        ("in 2021", "2021-01-01", "2022-01-01"),
        ("since 2023-05-02, I think", "2023-05-02", "2023-05-03"),
        ("2023/5/2", "2023-05-02", "2023-05-03"),
        ("2023-05-02T10:30:00Z", "2023-05-02", "2023-05-03"),
        ("昨天吃了什么", "2023-05-16", "2023-05-17"),
        ("前天", "2023-05-15", "2023-05-16"),
        ("大前天", "2023-05-14", "2023-05-15"),
        ("上周说的那本书", "2023-05-08", "2023-05-15"),
        ("上上个星期", "2023-05-01", "2023-05-08"),
        ("上周三", "2023-05-10", "2023-05-11"),
        ("星期天", "2023-05-14", "2023-05-15"),
        ("上个月", "2023-04-01", "2023-05-01"),
        ("上个月5号", "2023-04-05", "2023-04-06"),
        ("去年", "2022-01-01", "2023-01-01"),
        ("去年五月", "2022-05-01", "2022-06-01"),
        ("三天前", "2023-05-14", "2023-05-15"),
        ("二十三天前", "2023-04-24", "2023-04-25"),
        ("两个星期前", "2023-05-01", "2023-05-08"),
        ("在5月2日这天", "2023-05-02", "2023-05-03"),
        ("2023年5月", "2023-05-01", "2023-06-01"),
        ("五月二号", "2023-05-02", "2023-05-03"),
        ("二〇二二年十二月三十一日", "2022-12-31", "2023-01-01"),
        ("２０２３年５月２日", "2023-05-02", "2023-05-03"),
    ],
)
def test_words_mean_spans_of_the_calendar(text: str, first: str, end: str) -> None:
    assert only(text) == (day(first), day(end))


@pytest.mark.parametrize(
    ("text", "first_hour", "end_hour"), [("this morning", 4, 12), ("今天下午", 12, 18), ("今晚", 17, 24)]
)
def test_a_part_of_a_day_is_some_of_its_hours(text: str, first_hour: int, end_hour: int) -> None:
    midnight = day("2023-05-17")
    assert only(text) == (midnight + timedelta(hours=first_hour), midnight + timedelta(hours=end_hour))


@pytest.mark.parametrize("text", ["recently", "a few days ago", "the other day", "最近", "前几天", "几个月前"])
def test_words_that_leave_open_how_long_ago_are_vague(text: str) -> None:
    (found,) = time_intervals(Question(text), WEDNESDAY.timestamp())
    assert found.is_vague
    assert found.phrase == text


@pytest.mark.parametrize(
    ("text", "first", "end"),
    [
        ("两三天前", "2023-05-14", "2023-05-16"), ("三两天前", "2023-05-14", "2023-05-16"),
        ("三五天前", "2023-05-12", "2023-05-15"), ("七八个月前", "2022-09-01", "2022-11-01"),
        ("三四年前", "2019-01-01", "2021-01-01"), ("十七八天前", "2023-04-29", "2023-05-01"),
        ("二十三四天前", "2023-04-23", "2023-04-25"), ("二三十天前", "2023-04-17", "2023-04-28"),
    ],
)  # fmt: skip
def test_numerals_side_by_side_are_the_least_and_the_most(text: str, first: str, end: str) -> None:
    (found,) = time_intervals(Question(text), WEDNESDAY.timestamp())
    assert only(text) == (day(first), day(end))
    assert found.is_vague


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("过去两三个小时改了什么", WEDNESDAY - timedelta(hours=3)),
        ("最近两三天", day("2023-05-14")),
        ("近三四周", day("2023-04-19")),
        ("过去二三十天", day("2023-04-17")),
    ],
)
def test_numerals_side_by_side_reach_back_as_far_as_they_may(text: str, first: datetime) -> None:
    (found,) = time_intervals(Question(text), WEDNESDAY.timestamp())
    assert only(text) == (first, WEDNESDAY)
    assert found.is_vague


@pytest.mark.parametrize("text", ["过去0小时", "过去00天", "五二天前", "一九年前", "过去四二个小时", "十十天前"])
def test_what_is_no_count_is_no_time(text: str) -> None:
    assert spans(text, day("2023-05-17")) == []


def test_a_mixed_sentence_names_all_its_times_once() -> None:
    text = "昨天 we met about the 2023-05-02 release, yesterday 也说过, 不是 last week"
    found = time_intervals(Question(text), WEDNESDAY.timestamp())
    assert {interval.phrase for interval in found} == {"2023-05-02", "yesterday", "last week"}


@pytest.mark.parametrize(
    "text",
    [
        "", "   ", "v5.2", "version 2023.5.2.1", "May I ask you something?", "it may rain", "2 may be enough",
        "March on!", "they march 5 miles", "will the battery last 3 days", "last_week", "yesterday.py",
        "getYesterday()", "logs/today.txt", "git log --since=1.2023-05-02", "port 2023", "Feb 30", "2月30日",
        "一天到晚", "每周三", "一周三次", "以前天天去", "五月天的演唱会", "过去年代", "当今天下", "说明天气", "5号楼",
        "5.2月", "三个月", "secondary", "\ud800昨", "what broke thıs week", "on frıday", "in Aprıl", "thİs mornİng",
        "Mıdnıght, a mınute ago",
    ],
)  # fmt: skip
def test_other_words_and_names_are_no_times(text: str) -> None:
    assert spans(text) == []


@pytest.mark.parametrize(
    ("text", "as_of", "first"),
    [
        ("Feb 29", day("2023-05-17"), "2020-02-29"),
        ("2月29日", day("2024-03-01"), "2024-02-29"),
        ("last year", day("2024-02-29"), "2023-01-01"),
        ("yesterday", day("2024-01-01"), "2023-12-31"),
        ("上个月", day("2024-01-31"), "2023-12-01"),
        ("last Monday", day("2024-01-01"), "2023-12-25"),
        ("昨天", day("2023-05-17") - timedelta(microseconds=1), "2023-05-15"),
        ("December 31", day("2024-01-01"), "2023-12-31"),
    ],
)
def test_ends_of_days_months_and_years_hold(text: str, as_of: datetime, first: str) -> None:
    assert only(text, as_of)[0] == day(first)


@pytest.mark.parametrize(
    "text", ["JUST NOW", "Lately", "over the past hour", "过去3小时", "这阵子", "这段时间", "刚刚", "礼拜三", "in 1999"]
)
def test_forms_that_are_seldom_are_found_too(text: str) -> None:
    assert spans(text)


@given(as_of=MOMENTS, text=st.sampled_from(PAST), hours=st.integers(-14, 14))
def test_words_mean_the_days_of_the_askers_zone(as_of: datetime, text: str, hours: int) -> None:
    """S4-31: whatever the words, they mean what they mean to a clock that is so many hours ahead."""
    ahead = timedelta(hours=hours)
    told = time_intervals(Question(text), as_of.timestamp(), zone_of(f"{hours:+03d}:00"))
    there = [(moment - ahead).timestamp() for span in spans(text, as_of + ahead) for moment in span]
    assert [moment for each in told for moment in (each.start, each.end)] == pytest.approx(there, abs=1e-4)


@pytest.mark.parametrize(
    ("as_of", "zone", "text", "starts", "ends"),
    [
        # 07:00 in Shanghai, while it is still yesterday in UTC.
        ("2026-11-26T23:00", "Asia/Shanghai", "我昨天做了什么？", "2026-11-25T16:00", "2026-11-26T16:00"),
        ("2026-11-26T23:00", "", "我昨天做了什么？", "2026-11-25T00:00", "2026-11-26T00:00"),
        ("2026-11-27T02:00", "America/New_York", "yesterday", "2026-11-25T05:00", "2026-11-26T05:00"),
        # Days of 23 and of 25 hours.
        ("2026-03-30T10:00", "Europe/Berlin", "yesterday", "2026-03-28T23:00", "2026-03-29T22:00"),
        ("2026-10-26T10:00", "Europe/Berlin", "昨天", "2026-10-24T22:00", "2026-10-25T23:00"),
        ("2026-11-27T02:00", "+05:45", "November 20", "2026-11-19T18:15", "2026-11-20T18:15"),
    ],
)
def test_a_day_begins_at_midnight_of_the_zone(as_of: str, zone: str, text: str, starts: str, ends: str) -> None:
    (told,) = time_intervals(Question(text), datetime.fromisoformat(f"{as_of}Z").timestamp(), zone_of(zone))
    assert [f"{datetime.fromtimestamp(each, UTC):%Y-%m-%dT%H:%M}" for each in (told.start, told.end)] == [starts, ends]


@pytest.mark.parametrize(
    "name", ["Asia/Nowhere", "../etc/passwd", "/etc/localtime", "Asia", "+8", "+99:00", "UTC+8", "\0", " "]
)
def test_what_is_no_zone_is_refused(name: str) -> None:
    with pytest.raises(InvalidRequest, match="Asia/Shanghai"):
        zone_of(name)


@given(as_of=MOMENTS, text=st.sampled_from(PAST))
def test_words_of_the_past_never_reach_into_the_future(as_of: datetime, text: str) -> None:
    start, end = only(text, as_of)
    assert start < end <= as_of + timedelta(microseconds=10)


@given(as_of=MOMENTS, days=st.integers(1, 60))
def test_days_ago_hold_that_moment(as_of: datetime, days: int) -> None:
    start, end = only(f"{days} days ago", as_of)
    assert start <= as_of - timedelta(days=days) < end
    assert only(f"{days}天前", as_of) == (start, end)


@given(as_of=MOMENTS)
def test_weeks_begin_on_monday_and_follow_one_another(as_of: datetime) -> None:
    last, this, following = (only(f"{which} week", as_of) for which in ("last", "this", "next"))
    assert last[1] == this[0] <= as_of < this[1] == following[0]
    assert {start.weekday() for start, _ in (last, this, following)} == {0}
    assert only("上周", as_of) == last


@given(as_of=MOMENTS, date=st.dates(min_value=datetime(1990, 1, 1).date(), max_value=datetime(2090, 12, 31).date()))
def test_a_date_without_a_year_is_the_last_one_that_has_come(as_of: datetime, date: datetime) -> None:
    start, _ = only(f"{date:%B} {date.day}", as_of)
    assert (start.month, start.day) == (date.month, date.day)
    assert timedelta(0) <= as_of - start <= timedelta(days=8 * 366)
    assert only(f"{date.month}月{date.day}日", as_of)[0] == start


@given(text=st.text(max_size=60), as_of=st.floats(-1e300, 1e300))
def test_no_text_and_no_moment_is_an_error(text: str, as_of: float) -> None:
    for found in time_intervals(Question(text), as_of):
        assert found.start < found.end


@given(as_of=st.floats(-62135596800, 253402300799), text=st.sampled_from(PAST))
def test_the_ends_of_the_calendar_are_no_error(as_of: float, text: str) -> None:
    time_intervals(Question(text), as_of)


ALIKE = {
    letter: [other for other in map(chr, range(0x250)) if re.fullmatch(letter, other, re.IGNORECASE)]
    for letter in "abcdefghijklmnopqrstuvwxyz"
}
PHRASES = (
    *PAST, "this week", "on Friday", "in April", "this morning", "within the last six months", "by next Friday evening",
    "6 April of this year", "April 5, 2021", "since early July last year", "earlier today",
)  # fmt: skip


@st.composite
def misspelt(draw: st.DrawFn) -> str:
    """A known phrase with letters that a search takes for them when it ignores case (ı and İ for i, ſ for s)."""
    phrase = draw(st.sampled_from(PHRASES))
    return "".join(draw(st.sampled_from(ALIKE.get(letter.lower(), [letter]))) for letter in phrase)


@given(text=misspelt(), as_of=MOMENTS)
def test_letters_that_look_alike_are_no_error(text: str, as_of: datetime) -> None:
    assert all(start < end for start, end in spans(text, as_of))


COUNTS = st.text(st.sampled_from("零一二两三五九十几012"), min_size=1, max_size=4)
COUNTED = st.builds(
    "".join,
    st.tuples(
        st.sampled_from(["", "过去", "最近", "近这"]),
        COUNTS,
        st.sampled_from(["小时", "个钟头", "天", "周", "个月", "年"]),
        st.sampled_from(["", "前", "以前"]),
    ),
)


@given(
    text=COUNTED, as_of=MOMENTS | MOMENTS.map(lambda moment: moment.replace(hour=0, minute=0, second=0, microsecond=0))
)
def test_no_count_is_an_error_at_any_moment(text: str, as_of: datetime) -> None:
    assert all(start < end <= as_of + timedelta(days=366) for start, end in spans(text, as_of))


def test_only_the_beginning_of_a_long_text_is_looked_at() -> None:
    assert spans("x" * MAX_OPENING + " yesterday") == []
    assert len(spans("yesterday " + "x" * MAX_OPENING)) == 1


TIME_CHARACTERS = (
    "上下这本一二三十几些两天日周月年前后去今明昨大近最刚才过星期礼拜末早晚夜以之的个号小时钟头份零久不段间阵子来205, "
)


def may_match(rules: Rules, text: str) -> bool:
    hints = hints_of(text)
    return not rules.hints.isdisjoint(hints) and not HINTS.isdisjoint(hints) and rules.may_match(text, hints)


@given(st.text(st.sampled_from(TIME_CHARACTERS), max_size=12))
def test_a_text_without_the_hint_speaks_of_no_time(text: str) -> None:
    for rules in (CHINESE, ENGLISH):
        if rules.compiled[0].search(text):
            assert may_match(rules, text)


@pytest.mark.parametrize(
    ("rules", "pattern"),
    [
        pytest.param(rules, pattern, id=f"{name}-{number}")
        for name, rules in (("digits", DIGITS), ("en", ENGLISH), ("zh", CHINESE))
        for number, pattern in enumerate(rules.compiled[1])
    ]
    + [
        # "may" is the only month that is no hint by itself, since most texts have the verb.
        pytest.param(ENGLISH, re.compile(pattern.pattern.replace(any_of(_MONTHS), "may")), id=f"may-{number}")
        for number, pattern in enumerate(ENGLISH.compiled[1])
        if any_of(_MONTHS) in pattern.pattern
    ],
)
@settings(max_examples=10)
@given(data=st.data())
def test_every_form_of_words_has_a_hint(data: st.DataObject, rules: Rules, pattern: re.Pattern[str]) -> None:
    anyhow = re.compile(pattern.pattern.replace("(?-i:(?=[A-Z]))", ""), re.IGNORECASE)
    text = simplified(nfkc(data.draw(st.from_regex(anyhow))))[:MAX_OPENING]
    # The Chinese hints leave out 日志, 前端 and 说明, which are no times, on purpose.
    if any(True for _ in rules.find(text, WEDNESDAY)) and (rules is not CHINESE or rules._hint.search(text.lower())):
        assert may_match(rules, text)


@pytest.mark.parametrize(
    "text", ["mid-2023", "late 2022", "frıday", "the end of the year", "2nd of May", "summertime 2021"]
)
def test_words_for_times_are_found_by_their_hints_however_they_are_joined(text: str) -> None:
    assert may_match(ENGLISH, text)


@pytest.mark.parametrize("text", ["国庆节前0天做了什么", "国庆节前00周"])
def test_none_of_a_unit_leans_on_nothing(text: str) -> None:
    (feast,) = time_intervals(Question(text), 1_700_000_000.0)
    assert feast.phrase == "国庆节"
