"""Phrases of time as people ask with them, and the days that each means: the set `diary`'s calendar."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta

from bench.eval.made import Draws

_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Meaning of a phrase: the days from the first to the last, both inclusive."""

    phrase: str
    first: date
    last: date

    @property
    def is_a_day(self) -> bool:
        """True if it is a single day."""
        return self.first == self.last


def days(language: str, day: date, draws: Draws) -> Span:
    """A day by its date, in one of the ways in which people write one."""
    if language == "zh":
        forms = [f"{day.month}月{day.day}日", f"{day.month}月{day.day}号", f"{day.year}年{day.month}月{day.day}日"]
    else:
        month = _MONTHS[day.month - 1]
        forms = [f"on {month} {day.day}", f"on the {_ordinal(day.day)} of {month}", f"on {day.day} {month} {day.year}"]
    return Span(phrase=draws.one(forms), first=day, last=day)


def spans(language: str, asked: date) -> list[Span]:
    """Days and spans that are asked for on that day, as calendars and people have them."""
    return list(_zh(asked) if language == "zh" else _en(asked))


def events(language: str, name: str, day: date) -> Iterator[Span]:
    """Times that are told by something that happened on that day."""
    if language == "zh":
        yield _ago(f"{name}前两周", day, 14, 1)
        yield _ago(f"{name}第二天", day, -1)
        yield _ago(f"{name}的前一天", day, 1)
        yield _ago(f"{name}之后的一周里", day, -1, -7)
    else:
        yield _ago(f"in the two weeks before {name}", day, 14, 1)
        yield _ago(f"on the day after {name}", day, -1)
        yield _ago(f"the day before {name}", day, 1)
        yield _ago(f"in the week after {name}", day, -1, -7)


def _zh(asked: date) -> Iterator[Span]:
    monday = asked - timedelta(days=asked.weekday())
    yield _ago("昨天", asked, 1)
    yield _ago("前天", asked, 2)
    yield _ago("大前天", asked, 3)
    yield _ago("五天前", asked, 5)
    yield _ago("十天前", asked, 10)
    yield _week("上周", monday, 1)
    yield _week("上上个星期", monday, 2)
    yield _day_of_week("上周五", monday, 1, 4)
    yield _day_of_week("上个星期二", monday, 1, 1)
    yield Span(phrase="上个周末", first=monday - timedelta(days=2), last=monday - timedelta(days=1))
    yield _ago("半个月前", asked, 17, 13)
    yield _ago("一个多月前", asked, 45, 31)
    yield _ago("最近三天", asked, 3, 0)
    month_before = _month(asked, -1)
    yield _part("上个月初", month_before, 1, 10)
    yield _part("上个月中旬", month_before, 11, 20)
    yield _part("上个月底", month_before, 25, 31)
    yield _part("上个月", month_before, 1, 31)
    yield _part("两个月前的月初", _month(asked, -2), 1, 10)
    for number in (3, 4, 5, 9, 10, 11):
        month = _last_month(asked, number)
        yield _part(f"{number}月初", month, 1, 10)
        yield _part(f"{number}月中旬", month, 11, 20)
        yield _part(f"{number}月底", month, 25, 31)
    year = asked.year - 1
    yield _part("去年八月", date(year, 8, 1), 1, 31)
    yield Span(phrase="去年夏天", first=date(year, 6, 1), last=date(year, 8, 31))
    yield Span(phrase="去年秋天", first=date(year, 9, 1), last=date(year, 11, 30))
    yield Span(phrase="国庆节", first=date(year, 10, 1), last=date(year, 10, 7))
    yield Span(phrase="去年国庆假期", first=date(year, 10, 1), last=date(year, 10, 7))
    yield Span(phrase="五一假期", first=_last(asked, 5, 1), last=_last(asked, 5, 1) + timedelta(days=4))
    yield Span(phrase="情人节那天", first=_last(asked, 2, 14), last=_last(asked, 2, 14))
    yield Span(phrase="圣诞节", first=_last(asked, 12, 25), last=_last(asked, 12, 25))
    yield Span(phrase="元旦", first=_last(asked, 1, 1), last=_last(asked, 1, 1))
    yield Span(phrase="儿童节", first=_last(asked, 6, 1), last=_last(asked, 6, 1))


def _en(asked: date) -> Iterator[Span]:
    monday = asked - timedelta(days=asked.weekday())
    yield _ago("yesterday", asked, 1)
    yield _ago("the day before yesterday", asked, 2)
    yield _ago("three days ago", asked, 3)
    yield _ago("ten days ago", asked, 10)
    yield _week("last week", monday, 1)
    yield _week("the week before last", monday, 2)
    yield _day_of_week("last Friday", monday, 1, 4)
    yield _day_of_week("on Tuesday of last week", monday, 1, 1)
    yield Span(phrase="last weekend", first=monday - timedelta(days=2), last=monday - timedelta(days=1))
    yield _ago("a fortnight ago", asked, 16, 12)
    yield _ago("about a month ago", asked, 37, 24)
    yield _ago("in the last three days", asked, 3, 0)
    month_before = _month(asked, -1)
    yield _part("at the beginning of last month", month_before, 1, 10)
    yield _part("in the middle of last month", month_before, 11, 20)
    yield _part("at the end of last month", month_before, 25, 31)
    yield _part("last month", month_before, 1, 31)
    for number in (3, 4, 5, 9, 10, 11):
        month, name = _last_month(asked, number), _MONTHS[number - 1]
        yield _part(f"in early {name}", month, 1, 10)
        yield _part(f"in mid-{name}", month, 11, 20)
        yield _part(f"at the end of {name}", month, 25, 31)
    yield _part("in the first week of June", _last_month(asked, 6), 1, 7)
    year = asked.year - 1
    yield _part("in August last year", date(year, 8, 1), 1, 31)
    yield Span(phrase="last summer", first=date(year, 6, 1), last=date(year, 8, 31))
    yield Span(phrase=f"in summer {year}", first=date(year, 6, 1), last=date(year, 8, 31))
    yield Span(phrase="in autumn last year", first=date(year, 9, 1), last=date(year, 11, 30))
    yield Span(phrase="over Christmas", first=_last(asked, 12, 24), last=_last(asked, 12, 24) + timedelta(days=2))
    yield Span(phrase="on New Year's Day", first=_last(asked, 1, 1), last=_last(asked, 1, 1))
    yield Span(phrase="on Halloween", first=_last(asked, 10, 31), last=_last(asked, 10, 31))
    yield Span(phrase="on Valentine's Day", first=_last(asked, 2, 14), last=_last(asked, 2, 14))


def _ago(phrase: str, day: date, first: int, last: int | None = None) -> Span:
    """Span from so many days before a day to so many before it; negative numbers are days after it."""
    until = first if last is None else last
    return Span(phrase=phrase, first=day - timedelta(days=first), last=day - timedelta(days=until))


def _week(phrase: str, monday: date, weeks: int) -> Span:
    first = monday - timedelta(weeks=weeks)
    return Span(phrase=phrase, first=first, last=first + timedelta(days=6))


def _day_of_week(phrase: str, monday: date, weeks: int, weekday: int) -> Span:
    day = monday - timedelta(weeks=weeks) + timedelta(days=weekday)
    return Span(phrase=phrase, first=day, last=day)


def _month(asked: date, ahead: int) -> date:
    """The first day of the month that is so many months ahead."""
    months = asked.year * 12 + asked.month - 1 + ahead
    return date(months // 12, months % 12 + 1, 1)


def _last_month(asked: date, number: int) -> date:
    """The first day of the last such month that is over."""
    return date(asked.year if number < asked.month else asked.year - 1, number, 1)


def _part(phrase: str, month: date, first: int, last: int) -> Span:
    longest = monthrange(month.year, month.month)[1]
    return Span(phrase=phrase, first=month.replace(day=first), last=month.replace(day=min(last, longest)))


def _last(asked: date, month: int, day: int) -> date:
    """The last such day that is over."""
    found = date(asked.year, month, day)
    return found if found < asked else date(asked.year - 1, month, day)


def _ordinal(number: int) -> str:
    ending = "th" if 10 < number < 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
