"""Holidays as spans of a year: those of a fixed date, of a weekday of a month, Easter, and those of the lunar calendar.

A span is of the days that people mean by the name: the National Day of China is a week, Thanksgiving a long weekend.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Final

from hummock.text.time_rules import DAY, Span

Holiday = Callable[[int], Span]
"""The days of a year. Raises: LookupError where the year is in no table, ValueError where the calendar ends."""

_MONDAY, _THURSDAY, _SUNDAY = 0, 3, 6

_LUNAR: Final[Mapping[int, tuple[int, int, int, int, int]]] = {
    2015: (219, 620, 820, 927, 1021),
    2016: (208, 609, 809, 915, 1009),
    2017: (128, 530, 828, 1004, 1028),
    2018: (216, 618, 817, 924, 1017),
    2019: (205, 607, 807, 913, 1007),
    2020: (125, 625, 825, 1001, 1025),
    2021: (212, 614, 814, 921, 1014),
    2022: (201, 603, 804, 910, 1004),
    2023: (122, 622, 822, 929, 1023),
    2024: (210, 610, 810, 917, 1011),
    2025: (129, 531, 829, 1006, 1029),
    2026: (217, 619, 819, 925, 1018),
    2027: (206, 609, 808, 915, 1008),
    2028: (126, 528, 826, 1003, 1026),
    2029: (213, 616, 816, 922, 1016),
    2030: (203, 605, 805, 912, 1005),
    2031: (123, 624, 824, 1001, 1024),
    2032: (211, 612, 812, 919, 1012),
    2033: (131, 601, 801, 908, 1001),
    2034: (219, 620, 820, 927, 1020),
    2035: (208, 610, 810, 916, 1009),
}
"""Month and day (219 is February 19) of the lunar calendar's 1/1, 5/5, 7/7, 8/15 and 9/9, by year."""

_NEW_YEAR, _DRAGON_BOATS, _SEVENTH, _MID_AUTUMN, _NINTH = range(5)


def _from(first: datetime, days: int) -> Span:
    return Span(start=first, end=first + days * DAY)


def fixed(month: int, day: int, days: int = 1) -> Holiday:
    """So many days of every year."""
    return lambda year: _from(datetime(year, month, day, tzinfo=UTC), days)


def _weekday_of(month: int, weekday: int, number: int, days: int = 1, later_days: int = 0) -> Holiday:
    """From the so many'th weekday (0 is Monday) of a month on, or some days later."""

    def found(year: int) -> Span:
        first = datetime(year, month, 1, tzinfo=UTC)
        ahead = (weekday - first.weekday()) % 7 + 7 * (number - 1) + later_days
        return _from(first + ahead * DAY, days)

    return found


def _easter(year: int) -> Span:
    """Good Friday to Easter Monday. Source: Gregorian computus of Oudin (1940)."""
    century, golden = year // 100, year % 19
    moon = (century - century // 4 - (century - (century - 17) // 25) // 3 + 19 * golden + 15) % 30
    moon -= (moon // 28) * (1 - (29 // (moon + 1)) * ((21 - golden) // 11))
    weekday = (year + year // 4 + moon + 2 - century + century // 4) % 7
    sunday = datetime(year, 3, 1, tzinfo=UTC) + (moon - weekday + 27) * DAY
    return _from(sunday - 2 * DAY, 4)


def _lunar(which: int, days: int = 1, earlier_days: int = 0) -> Holiday:
    def found(year: int) -> Span:
        month, day = divmod(_LUNAR[year][which], 100)
        return _from(datetime(year, month, day, tzinfo=UTC) - earlier_days * DAY, days)

    return found


def _last_monday_of_may(year: int) -> Span:
    last = datetime(year, 5, 31, tzinfo=UTC)
    return _from(last - last.weekday() * DAY, 1)


def _named(table: Mapping[str, Holiday]) -> Mapping[str, Holiday]:
    return {name: holiday for names, holiday in table.items() for name in names.split("|")}


CHINESE_HOLIDAYS: Final = _named(
    {
        "元旦": fixed(1, 1),
        "除夕|大年三十": _lunar(_NEW_YEAR, earlier_days=1),
        "大年初一": _lunar(_NEW_YEAR),
        "春节|过年": _lunar(_NEW_YEAR, days=8, earlier_days=1),
        "元宵": lambda year: _from(_lunar(_NEW_YEAR)(year).start + 14 * DAY, 1),
        "情人节": fixed(2, 14),
        "妇女节": fixed(3, 8),
        "清明": fixed(4, 4, days=2),
        "五一|劳动节": fixed(5, 1, days=5),
        "青年节": fixed(5, 4),
        "母亲节": _weekday_of(5, _SUNDAY, 2),
        "儿童节": fixed(6, 1),
        "父亲节": _weekday_of(6, _SUNDAY, 3),
        "端午": _lunar(_DRAGON_BOATS),
        "七夕": _lunar(_SEVENTH),
        "教师节": fixed(9, 10),
        "中秋": _lunar(_MID_AUTUMN),
        "国庆|十一假期|十一长假": fixed(10, 1, days=7),
        "重阳": _lunar(_NINTH),
        "万圣节": fixed(10, 31),
        "双十一": fixed(11, 11),
        "感恩节": _weekday_of(11, _THURSDAY, 4, days=4),
        "双十二": fixed(12, 12),
        "平安夜": fixed(12, 24),
        "圣诞": fixed(12, 25),
        "跨年": fixed(12, 31, days=2),
        "复活节": _easter,
    }
)

ENGLISH_HOLIDAYS: Final = _named(
    {
        "christmas eve": fixed(12, 24),
        "christmas|xmas": fixed(12, 24, days=3),
        "boxing day": fixed(12, 26),
        "new year's eve|new years eve": fixed(12, 31),
        "new year's day|new years day": fixed(1, 1),
        "chinese new year|lunar new year|spring festival": _lunar(_NEW_YEAR, days=8, earlier_days=1),
        "new year's|new year": fixed(12, 31, days=2),
        "valentine's day|valentines day": fixed(2, 14),
        "st patrick's day|st. patrick's day": fixed(3, 17),
        "easter": _easter,
        "mother's day": _weekday_of(5, _SUNDAY, 2),
        "memorial day": _last_monday_of_may,
        "father's day": _weekday_of(6, _SUNDAY, 3),
        "dragon boat festival": _lunar(_DRAGON_BOATS),
        "fourth of july|4th of july|independence day": fixed(7, 4),
        "labor day": _weekday_of(9, _MONDAY, 1),
        "mid-autumn festival|mid-autumn|moon festival": _lunar(_MID_AUTUMN),
        "halloween": fixed(10, 31),
        "veterans day": fixed(11, 11),
        "thanksgiving": _weekday_of(11, _THURSDAY, 4, days=4),
        "black friday": _weekday_of(11, _THURSDAY, 4, later_days=1),
    }
)


def holiday_span(holiday: Holiday, now: datetime, year: int | None) -> Span:
    """The days of a holiday; without a year, the last one that has begun."""
    if year is not None:
        return holiday(year)
    for candidate in (now.year + 1, now.year):
        # The last days of a year may be those of the next one's feast.
        if (found := holiday(candidate)).start <= now:
            return found
    return holiday(now.year - 1)
