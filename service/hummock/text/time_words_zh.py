"""Chinese words for times. A row of the table is a form of words; longer forms stand before those they begin with."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final

from hummock.text import time_parts, time_rules
from hummock.text.time_holidays import CHINESE_HOLIDAYS, holiday_span
from hummock.text.time_parts import Part, Season
from hummock.text.time_rules import Rule, Rules, Span, TimeMatch, Unit, any_of

_DIGITS: Final = {character: value for value, character in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_TEN: Final = "十"
_UNIT_NAMES: Final = "小时 钟头|天 日|周 星期 礼拜|月|年"
UNITS: Final = {name: unit for unit, names in zip(Unit, _UNIT_NAMES.split("|"), strict=True) for name in names.split()}
_DAYS: Final = {"大前": -3, "前": -2, "昨": -1, "今": 0, "明": 1, "后": 2, "大后": 3}
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
_PARTS: Final = {
    "初": Part.EARLY,
    "上旬": Part.EARLY,
    "中旬": Part.MIDDLE,
    "中": Part.MIDDLE,
    "下旬": Part.LATE,
    "底": Part.END,
    "末": Part.END,
    "上半月": Part.FIRST_HALF,
    "下半月": Part.SECOND_HALF,
}
_PARTS_OF_YEAR: Final = {
    "年初": Part.EARLY,
    "年中": Part.MIDDLE,
    "年底": Part.LATE,
    "年末": Part.LATE,
    "上半年": Part.FIRST_HALF,
    "下半年": Part.SECOND_HALF,
}
_SEASONS: Final = {"春": Season.SPRING, "夏": Season.SUMMER, "秋": Season.AUTUMN, "冬": Season.WINTER}
_WEEKDAYS: Final = {character: value for value, character in enumerate("一二三四五六日")} | {"天": 6}


def _named_day(match: re.Match[str], now: datetime) -> Span:
    return _part_of(time_rules.unit_span(now, Unit.DAY, _DAYS[match["name"]]), match, now)


def _ago(match: re.Match[str], now: datetime) -> Span:
    unit = UNITS[match["unit"]]
    fewest, most = _counted(match["count"])
    return time_rules.unit_span(now, unit, -most) if fewest == most else time_rules.some_ago(now, unit, fewest, most)


def _up_to_now(match: re.Match[str], now: datetime) -> Span:
    unit = UNITS[match["unit"]]
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


def _date(match: re.Match[str], now: datetime) -> Span | None:
    day = time_rules.day_span(now, numeral(match["month"]), numeral(match["day"]), _year(match, now))
    return None if day is None else _part_of(day, match, now)


def _day_of_month(match: re.Match[str], now: datetime) -> Span | None:
    month = time_rules.unit_span(now, Unit.MONTH, _OFFSETS[match["which"]]).start
    day = time_rules.day_span(now, month.month, numeral(match["day"]), month.year)
    return None if day is None else _part_of(day, match, now)


def _month(match: re.Match[str], now: datetime) -> Span:
    return time_rules.month_span(now, numeral(match["month"]), _year(match, now))


def _of_year(match: re.Match[str], now: datetime) -> Span | None:
    year = _year(match, now)
    return None if year is None else time_rules.year_span(now, year)


def _more_than_ago(match: re.Match[str], now: datetime) -> Span:
    unit, count = UNITS[match["unit"]], numeral(match["count"])
    # 十多天 is ten to twenty.
    if match["count"].endswith(_TEN):
        return time_rules.some_ago(now, unit, count, count + 9)
    return time_parts.more_than_ago(now, unit, count)


def _part_of_a_month(match: re.Match[str], now: datetime) -> Span:
    return time_parts.part_of_month(_month(match, now), _PARTS[match["which_part"]])


def _part_of_this_month(match: re.Match[str], now: datetime) -> Span:
    whole = time_rules.unit_span(now, Unit.MONTH, _OFFSETS[match["which"] or "这"])
    part = time_parts.part_of_month(whole, _PARTS[match["which_part"]])
    if match["which"] or part.start <= now:
        return part
    return time_parts.part_of_month(time_rules.unit_span(now, Unit.MONTH, -1), _PARTS[match["which_part"]])


def _week_of_a_month(match: re.Match[str], now: datetime) -> Span:
    return time_parts.week_of_month(_month(match, now), _week_number(match))


def _week_of_this_month(match: re.Match[str], now: datetime) -> Span:
    month = time_rules.unit_span(now, Unit.MONTH, _OFFSETS[match["which"]])
    return time_parts.week_of_month(month, _week_number(match))


def _week_number(match: re.Match[str]) -> int:
    return numeral(match["number"]) - 1 if match["number"] else -1


def _part_of_a_month_ago(match: re.Match[str], now: datetime) -> Span:
    whole = time_rules.unit_span(now, Unit.MONTH, -numeral(match["count"]))
    return time_parts.part_of_month(whole, _PARTS[match["which_part"]])


def _part_of_a_year(match: re.Match[str], now: datetime) -> Span:
    year, part = _year(match, now), _PARTS_OF_YEAR[match["which_part"]]
    span = time_parts.part_of_year(time_rules.year_span(now, now.year if year is None else year), part)
    if year is not None or span.start <= now:
        return span
    return time_parts.part_of_year(time_rules.unit_span(now, Unit.YEAR, -1), part)


def _leaning(text: str, said: TimeMatch) -> TimeMatch:
    """With 前两周, 后那一周, 两周前, 那一周, 前后 and the like, where it stands behind the words."""
    found = _BESIDE.match(text, said.end)
    if found is None:
        return said
    try:
        span = _beside(said.span, found)
    except (LookupError, OverflowError, ValueError):
        return said
    return TimeMatch(said.start, found.end(), span)


def _beside(span: Span, found: re.Match[str]) -> Span:
    if found["around"]:
        days = _DAYS_AROUND
        return Span(start=span.start - days, end=span.end if found["around"] == "前夕" else span.end + days)
    if found["week"]:
        return time_parts.week_of(span)
    is_before = (found["side"] or found["side_behind"]) == "前"
    if found["side"]:
        unit, count = UNITS[found["unit"]], numeral(found["count"] or "一")
        return time_parts.beside(span, unit, count, is_before=is_before)
    unit, count = UNITS[found["unit_before"]], numeral(found["count_before"])
    return time_parts.away(span, unit, count, is_before=is_before)


def _part_of(day: Span, match: re.Match[str], now: datetime) -> Span:
    part = match["part"]
    return time_rules.hours_of(day, *_HOURS[part], now) if part else day


def _year(match: re.Match[str], now: datetime) -> int | None:
    if match["year"]:
        return int("".join(str(_DIGITS.get(character, character)) for character in match["year"]))
    return now.year + _YEARS[match["of_year"]] if match["of_year"] else None


def numeral(written: str) -> int:
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
_NO_WEEKDAY = "(?![一二三四五六日天末])"
_A_WEEKDAY = rf"{_WEEK}(?P<weekday>[一二三四五六日天])(?![次个人名])"
_A_MONTH = r"(?<![\d.])(?P<month>0?[1-9]|1[0-2]|十[一二]|[一二三四五六七八九十])月(?:份)?"
_A_DAY = r"(?P<day>3[01]|[12]\d|0?[1-9]|三十一?|二?十[一二三四五六七八九]?|[一二三四五六七八九])[日号]"
_YEAR = (
    r"(?:(?<!\d)(?P<year>(?:19|20)\d\d|[一二][零〇一二三四五六七八九]{3})|(?<!过)(?P<of_year>大前|前|去|今|明|后))年"
)
_MAYBE_YEAR = rf"(?:{_YEAR}的?)?"
_YEAR_STEM = _YEAR.removesuffix("年")
_MAYBE_WHICH = rf"(?<![\d{_NUMERALS}])(?:{_WHICH})?"
_NO_OTHER_WORD = "(?![央间国文学层])"

_A_WEEK_OF = rf"的?(?:第(?P<number>[{_NUMERALS}1-5])个?|最后一?个?){_WEEK}{_NO_WEEKDAY}"
_A_SEASON = "(?P<season>[春夏秋冬])[天季]"
_A_HOLIDAY = rf"(?P<holiday>{any_of(CHINESE_HOLIDAYS)})节?(?![路街村树帽老广大山])"
_HOLIDAY_TIME = "(?:(?:小?长)?假期?|期间|那天|当天)?"
_DAYS_AROUND: Final = 3 * time_rules.DAY
A_FEW_CHARACTERS: Final = rf"\d{{1,2}}|[{_NUMERALS}]{{1,2}}"
_BESIDE: Final = re.compile(
    rf"的?[之以]?(?P<side>[前后])的?(?:那?(?P<count>{A_FEW_CHARACTERS})|那)个?(?P<unit>{any_of(UNITS)})(?!前|后)"
    rf"|的?(?P<count_before>{A_FEW_CHARACTERS})个?(?P<unit_before>{any_of(UNITS)})[之以]?(?P<side_behind>[前后])"
    rf"|的?(?P<week>[那当这]一?个?{_WEEK}){_NO_WEEKDAY}"
    r"|的?(?P<around>前后|前夕)"
)

# Every rule needs one of these. Single characters would be found in every other text: 日志, 前端, 说明.
_HINT = (
    rf"{'|'.join(sorted({name[:2] for name in CHINESE_HOLIDAYS} - {'十一', '大年', '过年'}))}"
    rf"|大年[三初]|过年|十一[假长]|[春夏秋冬][天季]|月[初中底末]|[上中下]旬|[上下]半[年月]|年[初中底末]|半个?[小钟天月年前]|多个?[小钟天月年周星礼前]"
    r"|[昨今]|[前去明后][天日年早晚夜]|前[几些两段阵不]|不久前|[时头期拜天日周年月][以之]?前|过去|最近"
    rf"|近[来期日的这几些\d{_NUMERALS}]|刚[才刚]|这[阵段几两]|[上下这本]一?个?[周星礼月]"
    rf"|[周期拜][一二三四五六日天末]|[\d{_NUMERALS}]月|[\d零〇{_NUMERALS}]年"
)

_HINT_CHARACTERS = "前去近今昨天日月年周星期礼拜晚夜早节段阵多几两半旬季刚" + "".join(
    {name[1] for name in CHINESE_HOLIDAYS}
)

CHINESE: Final = Rules(
    [
        Rule(rf"(?<![当以之])(?P<name>{any_of(_DAYS)})[天日](?![天气空]){_PART}", _named_day),
        Rule(r"(?P<name>[昨今明])(?P<part>[早晚夜])", _named_day),
        Rule(
            r"(?<!个)半个?多?(?P<unit>小时|钟头|天|月|年)[以之]?前",
            lambda match, now: time_parts.half_ago(now, UNITS[match["unit"]]),
        ),
        Rule(
            rf"{_A_COUNT}个月[以之]?前的?(?:那个月)?月?(?P<which_part>{any_of(_PARTS)}){_NO_OTHER_WORD}",
            _part_of_a_month_ago,
        ),
        Rule(rf"{_A_COUNT}(?:个?多个?|个半)(?P<unit>{any_of(UNITS)})[以之]?前", _more_than_ago),
        Rule(rf"{_A_COUNT}{_UNIT}[多半][以之]?前", _more_than_ago),
        Rule(rf"{_A_COUNT}{_UNIT}[以之]?前", _ago),
        Rule(rf"[几些]{_UNIT}[以之]?前", lambda match, now: time_rules.few_ago(now, UNITS[match["unit"]])),
        Rule(r"前[几些两]天|前段时间|前阵子|前不久|不久前", time_rules.few_days_ago),
        Rule(rf"(?:过去|最近|近)的?这?(?:{_A_COUNT}|[几些]){_UNIT}", _up_to_now),
        Rule(rf"{_WHICH}{_A_WEEKDAY}{_PART}", _weekday),
        Rule(rf"(?<![每\d{_NUMERALS}几])(?P<which>){_A_WEEKDAY}{_PART}", _weekday),
        Rule(rf"(?:{_WHICH})?(?<!每){_WEEK}末", _weekend),
        Rule(
            rf"{_MAYBE_YEAR}{_A_HOLIDAY}{_HOLIDAY_TIME}",
            lambda match, now: holiday_span(CHINESE_HOLIDAYS[match["holiday"]], now, _year(match, now)),
        ),
        Rule(rf"{_MAYBE_WHICH}月份?的?(?P<which_part>{any_of(_PARTS)}){_NO_OTHER_WORD}", _part_of_this_month),
        Rule(rf"{_MAYBE_YEAR}{_A_MONTH}的?(?P<which_part>{any_of(_PARTS)}){_NO_OTHER_WORD}", _part_of_a_month),
        Rule(rf"(?:{_YEAR}的?)?(?P<which_part>{any_of(_PARTS_OF_YEAR)})(?![级学])", _part_of_a_year),
        Rule(rf"{_YEAR_STEM}(?P<which_part>年[初中底末])(?![级学])", _part_of_a_year),
        Rule(
            rf"{_YEAR}的?{_A_SEASON}",
            lambda match, now: time_parts.season_span(now, _SEASONS[match["season"]], _year(match, now)),
        ),
        Rule(rf"{_WHICH}月(?:的|份)?{_A_DAY}{_PART}", _day_of_month),
        Rule(rf"{_WHICH}月份?{_A_WEEK_OF}", _week_of_this_month),
        Rule(
            r"(?P<which>上上|下下|上|这|本|下)一?个?(?P<unit>周|星期|礼拜|月)",
            lambda match, now: time_rules.unit_span(now, UNITS[match["unit"]], _OFFSETS[match["which"]]),
        ),
        Rule(rf"{_MAYBE_YEAR}{_A_MONTH}的?{_A_DAY}{_PART}", _date),
        Rule(rf"{_MAYBE_YEAR}{_A_MONTH}{_A_WEEK_OF}", _week_of_a_month),
        Rule(rf"{_MAYBE_YEAR}{_A_MONTH}(?!天)", _month),
        Rule(_YEAR, _of_year),
        Rule(r"最近|近来|近期|近日|这几天|这两天|这阵子|这段时间", time_rules.recently),
        Rule(r"刚才|刚刚", time_rules.just_now),
    ],
    hint=_HINT,
    hint_parts=_HINT_CHARACTERS,
    lean=_leaning,
)
