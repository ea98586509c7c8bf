"""Chinese words for times. A row of the table is a form of words; longer forms stand before those they begin with."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final

from hummock.text import time_rules
from hummock.text.time_rules import Rule, Rules, Span, Unit, any_of

_DIGITS: Final = {character: value for value, character in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_TEN: Final = "十"
_UNITS: Final = {
    "小时": Unit.HOUR,
    "钟头": Unit.HOUR,
    "天": Unit.DAY,
    "日": Unit.DAY,
    "周": Unit.WEEK,
    "星期": Unit.WEEK,
    "礼拜": Unit.WEEK,
    "月": Unit.MONTH,
    "年": Unit.YEAR,
}
_DAYS: Final = {
    "大前": -3,
    "前": -2,
    "昨": -1,
    "今": 0,
    "明": 1,
    "后": 2,
    "大后": 3,
}
_HOURS: Final = {
    "凌晨": (0, 6),
    "清晨": (4, 9),
    "早晨": (4, 12),
    "早上": (4, 12),
    "上午": (6, 12),
    "中午": (11, 14),
    "下午": (12, 18),
    "傍晚": (16, 20),
    "晚上": (17, 24),
    "夜里": (18, 30),
    "早": (4, 12),
    "晚": (17, 24),
    "夜": (18, 30),
}
_OFFSETS: Final = {"上上": -2, "上": -1, "这": 0, "本": 0, "下": 1, "下下": 2}
_YEARS: Final = {"大前": -3, "前": -2, "去": -1, "今": 0, "明": 1, "后": 2}
_WEEKDAYS: Final = {character: value for value, character in enumerate("一二三四五六日")} | {"天": 6}


def _named_day(match: re.Match[str], now: datetime) -> Span:
    return _part_of(time_rules.unit_span(now, Unit.DAY, _DAYS[match["name"]]), match, now)


def _ago(match: re.Match[str], now: datetime) -> Span:
    unit = _UNITS[match["unit"]]
    fewest, most = _counted(match["count"])
    return time_rules.unit_span(now, unit, -most) if fewest == most else time_rules.some_ago(now, unit, fewest, most)


def _few_ago(match: re.Match[str], now: datetime) -> Span:
    return time_rules.few_ago(now, _UNITS[match["unit"]])


def _up_to_now(match: re.Match[str], now: datetime) -> Span:
    unit = _UNITS[match["unit"]]
    if match["count"] is None:
        return time_rules.rolling(now, unit, time_rules.FEW_UP_TO[unit], is_vague=True)
    fewest, most = _counted(match["count"])
    return time_rules.rolling(now, unit, most, is_vague=fewest < most)


def _weekday(match: re.Match[str], now: datetime) -> Span:
    weekday = _WEEKDAYS[match["weekday"]]
    which = match["which"]
    if not which:
        return _part_of(time_rules.last_weekday(now, weekday, or_today=True), match, now)
    return _part_of(time_rules.weekday_span(now, weekday, _OFFSETS[which]), match, now)


def _weekend(match: re.Match[str], now: datetime) -> Span:
    which = match["which"]
    return time_rules.last_weekend(now) if which is None else time_rules.weekend(now, _OFFSETS[which])


def _calendar_unit(match: re.Match[str], now: datetime) -> Span:
    return time_rules.unit_span(now, _UNITS[match["unit"]], _OFFSETS[match["which"]])


def _date(match: re.Match[str], now: datetime) -> Span | None:
    day = time_rules.day_span(now, _number(match["month"]), _number(match["day"]), _year(match, now))
    return None if day is None else _part_of(day, match, now)


def _day_of_month(match: re.Match[str], now: datetime) -> Span | None:
    month = time_rules.unit_span(now, Unit.MONTH, _OFFSETS[match["which"]]).start
    day = time_rules.day_span(now, month.month, _number(match["day"]), month.year)
    return None if day is None else _part_of(day, match, now)


def _month(match: re.Match[str], now: datetime) -> Span:
    return time_rules.month_span(now, _number(match["month"]), _year(match, now))


def _of_year(match: re.Match[str], now: datetime) -> Span | None:
    year = _year(match, now)
    return None if year is None else time_rules.year_span(now, year)


def _part_of(day: Span, match: re.Match[str], now: datetime) -> Span:
    part = match["part"]
    return time_rules.hours_of(day, *_HOURS[part], now) if part else day


def _year(match: re.Match[str], now: datetime) -> int | None:
    if match["year"]:
        return int("".join(str(_DIGITS.get(character, character)) for character in match["year"]))
    return now.year + _YEARS[match["of_year"]] if match["of_year"] else None


def _number(written: str) -> int:
    """A number below 1,000 in digits, or below 100 in characters. Raises: ValueError when it is none, or not one."""
    number, most = _counted(written)
    if number != most:
        raise ValueError(f"{written} is {number} to {most}")
    return number


def _counted(written: str) -> tuple[int, int]:
    """The fewest and the most that a count means: 三 is 3 and 3, 两三 2 and 3, 二三十 20 and 30, 十七八 17 and 18.

    Raises: ValueError when it is no count.
    """
    if written.isdecimal():
        return int(written), int(written)
    tens, ten, ones = written.rpartition(_TEN)
    fewest_tens, most_tens = _one_or_between(tens or "一") if ten else (0, 0)
    fewest, most = (0, 0) if ten and not ones else _one_or_between(ones)
    return 10 * fewest_tens + fewest, 10 * most_tens + most


def _one_or_between(numerals: str) -> tuple[int, int]:
    """A numeral twice, or two that mean "from one to the other" side by side. Raises: ValueError when neither."""
    match sorted(_DIGITS[numeral] for numeral in numerals) if _DIGITS.keys() >= set(numerals) else []:
        case [digit]:
            return digit, digit
        case [fewest, most] if most - fewest == 1 or numerals == "三五":
            return fewest, most
        case _:
            raise ValueError(f"{numerals} is no count")


_NUMERALS = "一二三四五六七八九十两"
_NUMERAL = "[一二三四五六七八九两]"
# Not the end of a longer number: 二十三天前 is not 三天前.
_A_COUNT = (
    rf"(?<![\d百千万零〇点几{_NUMERALS}])"
    rf"(?P<count>\d{{1,3}}|{_NUMERAL}?十{_NUMERAL}{{0,2}}|{_NUMERAL}{{1,2}}十?)"
)
_UNIT = "个?(?P<unit>小时|钟头|星期|礼拜|天|日|周|年|(?<=个)月)"
_PART = rf"(?:的?(?P<part>{any_of(_HOURS)}))?"
_WHICH = "(?P<which>上上|下下|上|这|本|下)一?个?"
_WEEK = "(?:周|星期|礼拜)"
_A_WEEKDAY = rf"{_WEEK}(?P<weekday>[一二三四五六日天])(?![次个人名])"
_A_MONTH = r"(?<![\d.])(?P<month>0?[1-9]|1[0-2]|十[一二]|[一二三四五六七八九十])月(?:份)?"
_A_DAY = r"(?P<day>3[01]|[12]\d|0?[1-9]|三十一?|二?十[一二三四五六七八九]?|[一二三四五六七八九])[日号]"
_YEAR = (
    r"(?:(?<!\d)(?P<year>(?:19|20)\d\d|[一二][零〇一二三四五六七八九]{3})|(?<!过)(?P<of_year>大前|前|去|今|明|后))年"
)
_MAYBE_YEAR = rf"(?:{_YEAR}的?)?"

# Every rule needs one of these. Single characters would be found in every other text: 日志, 前端, 说明.
_HINT = (
    r"[昨今]|[前去明后][天日年早晚夜]|前[几些两段阵不]|不久前|[时头期拜天日周年月][以之]?前|过去|最近"
    rf"|近[来期日的这几些\d{_NUMERALS}]|刚[才刚]|这[阵段几两]|[上下这本]一?个?[周星礼月]"
    rf"|[周期拜][一二三四五六日天末]|[\d{_NUMERALS}]月|[\d零〇{_NUMERALS}]年"
)

CHINESE: Final = Rules(
    [
        Rule(pattern=rf"(?<![当以之])(?P<name>{any_of(_DAYS)})[天日](?![天气空]){_PART}", resolve=_named_day),
        Rule(pattern=r"(?P<name>[昨今明])(?P<part>[早晚夜])", resolve=_named_day),
        Rule(pattern=rf"{_A_COUNT}{_UNIT}[以之]?前", resolve=_ago),
        Rule(pattern=rf"[几些]{_UNIT}[以之]?前", resolve=_few_ago),
        Rule(pattern=r"前[几些两]天|前段时间|前阵子|前不久|不久前", resolve=time_rules.few_days_ago),
        Rule(pattern=rf"(?:过去|最近|近)的?这?(?:{_A_COUNT}|[几些]){_UNIT}", resolve=_up_to_now),
        Rule(pattern=rf"{_WHICH}{_A_WEEKDAY}{_PART}", resolve=_weekday),
        Rule(pattern=rf"(?<![每\d{_NUMERALS}几])(?P<which>){_A_WEEKDAY}{_PART}", resolve=_weekday),
        Rule(pattern=rf"(?:{_WHICH})?(?<!每){_WEEK}末", resolve=_weekend),
        Rule(pattern=rf"{_WHICH}月(?:的|份)?{_A_DAY}{_PART}", resolve=_day_of_month),
        Rule(pattern=r"(?P<which>上上|下下|上|这|本|下)一?个?(?P<unit>周|星期|礼拜|月)", resolve=_calendar_unit),
        Rule(pattern=rf"{_MAYBE_YEAR}{_A_MONTH}的?{_A_DAY}{_PART}", resolve=_date),
        Rule(pattern=rf"{_MAYBE_YEAR}{_A_MONTH}(?!天)", resolve=_month),
        Rule(pattern=_YEAR, resolve=_of_year),
        Rule(pattern=r"最近|近来|近期|近日|这几天|这两天|这阵子|这段时间", resolve=time_rules.recently),
        Rule(pattern=r"刚才|刚刚", resolve=time_rules.just_now),
    ],
    hint=_HINT,
)
