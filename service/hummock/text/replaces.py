"""Decides by words whether a sentence ends, or gives another value to, what an older one says.

A word of change and a likeness are not enough: "Lena started a pottery class" is about Lena as well. So a clause must
say what changes, in words that the older sentence has, all of them, and how: to another value, or that it has ended.
What is told in other words is not found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from functools import lru_cache
from typing import Final

from hummock.text.analyzer import first_terms
from hummock.text.normalise import CJK, is_han, nfkc, simplified
from hummock.text.questions import tells_change
from hummock.text.word_lists import NO_SUBJECT_WORDS

_CLAUSE: Final = re.compile(
    r"[，。；！？：、\n,;!?:]+|[.](?=\s|\Z)|\b(?:so|but|because)\b"
    r"|\band(?=\s+(?:the|we|it|its|he|she|they|is|was|are|got|has|don['’]t|now|from)\b)",
    re.IGNORECASE,
)
_WORD: Final = re.compile(rf"[{CJK}]|[^\W_{CJK}]+")

_NO_SUBJECT_ZH: Final = re.compile(
    "从[^从]{1,6}?(?:起|开始)|上个?周末?[一二三四五六日天]?|下个?周[一二三四五六日天]?|这个?周|上个?月|下个?月|这个?月|去年|今年"
    "|昨[天晚]|今[天早晚]|明天|前天|刚刚|最近|后来|现在|如今|目前|以后|今后|已经|终于|全部|全都|一律|统一|正式|其实"
    "|因为|所以|为了|由于|于是|早上|上午|中午|下午|晚上|每[天周月年]|第.{1,3}[章节回]里?|门槛|标准|时间|方式"
    "|[我你您他她它们咱的把将被给让都也又就已在里中期值那这个了和跟与是]"
)

_NUMBER: Final = (
    r"(?:\d+(?:[.:,]\d+)*|(?<![周期第])(?![百千万零](?![一二两三四五六七八九十百千万零]))[一二两三四五六七八九十百千万零]+"
    r"|(?<![a-z])(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
    r"|\w+teen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|a hundred)(?![a-z]))"
)
_NUMBERS: Final = re.compile(rf"{_NUMBER}\s*(?P<unit>[{CJK}]|[a-z]+)?", re.IGNORECASE)
_ORDINAL: Final = (
    r"\b(?:first|second|third|(?:four|fif|six|seven|eigh|nin|ten|eleven|twelf|twentie|thirtie|\w+teen)th)\b"
)
_BARE: Final = "bare"
_KINDS: Final = {
    "weekday": re.compile(
        r"周[一二三四五六日天末]|星期|\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b", re.IGNORECASE
    ),
    "clock": re.compile(
        rf"{_NUMBER}\s*(?:点|[ap]m\b|o['’]clock)|\b(?:half|quarter) (?:past|to)\b|\d:\d\d|\bat (?:one\b|{_NUMBER})"
        "|凌晨|[早晚]上|[上中下]午|夜里|\\b(?:morning|noon|afternoon|evening|night|midnight)s?\\b",
        re.IGNORECASE,
    ),
    "date": re.compile(rf"{_NUMBER}\s*[月号]|{_ORDINAL}", re.IGNORECASE),
    "day": re.compile(
        rf"周[一二三四五六日天末]|星期|{_NUMBER}\s*[月号]|[这下]个?[周月]|明天|后天|{_ORDINAL}|\b\d+(?:st|nd|rd|th)\b"
        r"|\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|\bweekends?\b|\b(?:this|next) (?:week|month|year)\b"
        r"|\btomorrow\b|\b(?:january|february|march|april|may|june|july|august|september|october|november|december)\b",
        re.IGNORECASE,
    ),
    "percent": re.compile(rf"百分之|{_NUMBER}\s*(?:%|percent\b)", re.IGNORECASE),
    "duration": re.compile(
        rf"{_NUMBER}\s*(?:个?(?:[秒分天周年]|小时|钟头|月)|(?:millisecond|second|minute|hour|day|week|month|year)s?\b)",
        re.IGNORECASE,
    ),
}
"""Kinds of values. A number without a unit is of any."""

_ROLE: Final = (
    r"负责|主管|接口|组长|经理|老板|同事|教|上班|工作|任职"
    r"|\b(?:owns?|leads?|maintains?|manages?|responsible|teach(?:es)?|works?|runs?|boss)\b"
)
_LASTING: Final = (
    r"^(?!.*(?:会(?!议)|喜欢|爱|怕|擅长|最好"
    r"|\b(?:likes?|loves?|afraid|favou?rite|good at|the best|can play|plays (?:a|the))\b))"
)
"""No taste and no skill, which outlast the thing."""


@dataclass(frozen=True, slots=True)
class _Telling:
    """A way to tell a change.

    `pattern` finds it in a clause: groups that begin with `s` are what changes, with `v` the new value. `needs` is what
    the older sentence must hold as well. With `is_move` the value is a place or a time.
    """

    pattern: re.Pattern[str]
    needs: re.Pattern[str] | None = None
    is_move: bool = False


def _telling(pattern: str, needs: str = "", *, is_move: bool = False) -> _Telling:
    must_hold = re.compile(needs, re.IGNORECASE) if needs else None
    return _Telling(re.compile(pattern, re.IGNORECASE), must_hold, is_move)


_UNTIL: Final = r"(?=\s+(?:in|on|at|to|for|with|by|from|last|this|next|yesterday|today|when|again)\b|\s*\Z)"
_PLACE: Final = r"\b(?:in|at|on|to|under|near)\b|[在住放发到位]"
_NAME: Final = r"\b(?:is|are|called|named)\b|[叫名是]"
_SOME_NUMBER: Final = rf"{_NUMBER}|周[一二三四五六日天末]|day\b|weekend\b|(?:week|month)\b|{_ORDINAL}"
_TO: Final = r"(?:\s(?:up|back|forward))?(?P<s2>.*?)\s(?:to|into|by|with|for|until|till)\s+(?P<v>.+)$"
_AT_ZH: Final = "[到在至]了?(?P<v>.+)$"
_TO_ZH: Final = "(?:成|到|为|至|走|用|去|在)了?(?P<v>.+)$"
_FROM_NOW: Final = r"(?:now|nowadays|these days|instead(?: of .+)?|from (?:now|today|this|next)\b.*|as of .+)$"
_OF_DAYS: Final = "(?:周|星期)[一二三四五六日天末]"
_TELLINGS: Final = (
    # One value for another.
    _telling(rf"^(?P<s>.*?)\bmoved?{_TO}", rf"{_PLACE}|{_SOME_NUMBER}", is_move=True),
    _telling(rf"^(?P<s>.*?)\brenamed{_TO}", _NAME),
    _telling(
        r"^(?P<s>.*?)\b(?:upgraded|downgraded|raised|lowered|reduced|increased|extended|shortened|cut|postponed|rescheduled"
        rf"|delayed|deferred|shifted|bumped|pushed|brought forward|put (?:up|off)){_TO}",
        _SOME_NUMBER,
    ),
    _telling(rf"^(?P<s>.*?)\b(?:changed|switched|migrated|converted|swapped|replaced){_TO}"),
    _telling(rf"^(?P<s>.*?)(?:挪|迁|搬|转){_TO_ZH}", rf"{_PLACE}|用|{_SOME_NUMBER}", is_move=True),
    _telling(rf"^(?P<s>.*?)更名{_TO_ZH}", _NAME),
    _telling(
        "^(?P<s>.*?)(?:升级|降级|推迟?|延期|顺延|提前|提(?=[到至] ?[0-9一二三四五六七八九十两百千万])|延长|缩短"
        "|提高|降低|放宽|收紧|涨|降|加|减|调(?!查|研|试))"
        rf"{_TO_ZH}",
        _SOME_NUMBER,
    ),
    _telling(rf"^(?P<s>.*?)(?:改约?|换){_AT_ZH}", _PLACE, is_move=True),
    _telling(rf"^(?P<s>.*?)(?:改(?!善|进)[约签]?|换|变|替换){_TO_ZH}"),
    _telling(rf"^(?P<s>.*?)改(?P<v>{_OF_DAYS}|{_NUMBER}点半?)(?P<s2>.*)$", _SOME_NUMBER),
    _telling(rf"^(?P<s>.*?)(?:现在|如今)[是要]?(?P<v>(?:{_OF_DAYS}|{_NUMBER}).*)$", _SOME_NUMBER),
    _telling("^(?P<s>.*?)(?:盘|卖|转|交|移交|让)给(?P<v>.+)$"),
    _telling(r"^(?P<s>.*?)\b(?:becomes?|became|turned into|goes (?:up|down) to|went (?:up|down) to)\s+(?P<v>.+)$"),
    _telling(r"^(?P<s>.*?)\b(?:is|are)\s+now\s+(?P<v>.+)$", _SOME_NUMBER),
    _telling(r"^(?P<s>.*?)\bnow\s+(?P<s2>(?!(?:called|named|at|in|on|by|for|from|to)\b)\w+)\s+(?P<v>.+)$"),
    _telling(rf"^(?P<s>.*?)\s(?:at|on|in|for)\s+(?P<v>.+?)\s+{_FROM_NOW}", f"{_SOME_NUMBER}|{_PLACE}", is_move=True),
    _telling(rf"^(?P<s>.*?)\s(?:is|are)\s+(?P<v>{_NUMBER}.*?)\s+{_FROM_NOW}", _SOME_NUMBER),
    _telling(r"^(?P<s>.*?)\b(?:is|are)\s+now\s+(?:called|named)\s+(?P<v>.+)$", r"\b(?:called|named)\b"),
    _telling(r"^(?P<s3>.*?)\b(?:goes|go|runs?)\s+(?P<v3>.+)\s+instead$"),
    _telling(r"^(?P<s>.*?)\b(?:belongs?|goes|go)\s+to\s+(?P<v>.+?)\s+(?:now|from (?:now|today|this|next).*)$"),
    _telling(r"^(?P<s>.*?)\b(?:got|has|have)\s+an?\s+new\s+(?P<s2>number|address|phone|job|name|boss)\b(?P<v>)"),
    _telling(r"^(?P<s>.*?)换(?P<s2>号|工作|手机号|公司|地址|名字)了(?P<v>)$"),
    # The end of one.
    _telling(
        r"^(?P<s>.*?)\b(?:died|passed away|sank|collapsed|broke up"
        r"|(?:was|were|got|has been) (?:sold|stolen|destroyed|demolished|decommissioned|shut down|retired))\b",
        _LASTING,
    ),
    _telling(
        "^(?P<s>.*?)(?:去世|走了|死了|断了|没了|沉了|垮了|塌了|毁了|被毁|分手|离婚|退租|卖掉|卖了|报废|倒闭|停用|下线|废弃|停产)",
        _LASTING,
    ),
    _telling(
        r"^(?P<s>.*?)\b(?:resigned|retired|left (?:the|our) (?:company|team|firm|project)|was (?:fired|let go))\b",
        _ROLE,
    ),
    _telling(rf"\b(?:sold|quit|gave up|got rid of|replaced)\s+(?P<s>\S.*?){_UNTIL}"),
    _telling(rf"\bleft\s+(?P<s>(?!early|late|for|behind|on|out|me|him|her|a\b)\S.*?){_UNTIL}"),
    _telling(r"\bno longer\s+(?P<s>\S.*)$|\b(?:don['’]t|doesn['’]t|do not|does not)\s+(?P<s2>\S.*?)\s+any ?more\b"),
    _telling("^(?P<s>.*?)(?:离职|辞职|退休|被开除)", _ROLE),
    _telling("(?:冲垮|冲走|烧毁|拆|毁|戒|辞掉)了?(?P<s>.{2,})$|戒(?P<s2>.{2,})$"),
    _telling("不再(?P<s>.{2,})$|(?:^|[我他她们就也])不(?P<s2>[^再是会能想太].{1,3})了$"),
)

_WRONG_ZH: Final = "(?:其实|更正|纠正|[说记搞弄写]错|不对)[^。！？!?\\n]{0,20}?"
_WRONG: Final = r"\b(?:actually|correction|turns out|sorry|my mistake|i was wrong|i misspoke)\b[^.!?\n]{0,40}?"
_IT_IS: Final = r"(?:it['’]s|it is|they['’]re|they are)"
_CORRECTIONS: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        f"{_WRONG_ZH}(?:不是|并非)(?P<s>[^，,。；;是]{{2,16}}?)[，,；;]?\\s*(?:而是|应该是|是)(?P<v>[^，,。；;！!\\n]+)",
        f"{_WRONG_ZH}(?:应该)?是(?P<v>[^，,。；;]{{1,20}}?)[，,；;]\\s*而?(?:不是|并非)(?P<s>[^，,。；;！!\\n]{{2,16}})",
        rf"{_WRONG}\bnot\s+(?P<s>[^,.;]{{1,40}}?)[,;]?\s+(?:but|{_IT_IS})\s+(?P<v>[^,.;!\n]+)",
        rf"{_WRONG}\b(?:{_IT_IS}|is|are)\s+(?P<v>[^,.;]{{1,40}}?),\s*not\s+(?P<s>[^,.;!\n]+)",
    )
)
"""How a sentence takes back what was said: "actually it is not peanuts, it's cashews", 其实不是花生，是腰果."""

_IS_AT: Final = re.compile(
    r"[在放住]|\b(?:(?:is|are)(?: held)?|lives?|stays?|takes? place|happens?|meets?) (?:at|in|on)\b", re.IGNORECASE
)

_ADDS: Final = re.compile(
    r"\b(?:also|as well|in addition|additionally)\b|\btoo(?=\s*(?:[.,;!]|\Z))"
    "|(?<!再)也(?!许|就是|不)|还[有会]|另外|再加上",
    re.IGNORECASE,
)
"""Words for what comes beside the rest: "has started the drums as well"."""

_A_WORD: Final = 2
"""Weight of a word; a Chinese character has half of it."""

_TWO_WORDS: Final = 2 * _A_WORD

_TEXTS_KEPT: Final = 1024
"""Texts of which the changes that they tell are kept: recalls of one subject meet the same few."""

MAX_OLDER_CHARACTERS: Final = 512
"""A longer text says more than one sentence can end."""


def replaced_by_words(newer: str, older: str) -> str:
    """Return the clause of `newer` that ends what `older` says or gives it another value; empty if none does.

    Args:
        newer: A sentence or a few.
        older: What was said before.
    """
    if len(older) > MAX_OLDER_CHARACTERS:
        return ""
    older = _folded(older)
    said = frozenset(_units(older))
    is_event, earlier = tells_change(older), _told(older)
    for told in _told(_folded(newer)):
        if not said.issuperset(told.subject) or not (told.needs is None or told.needs.search(older)):
            continue
        if told.value and not _can_stand_for(told, older, said):
            continue
        # What tells a change itself is no lasting fact, but for the value that it gives to the same thing.
        if not is_event or (told.value and any(one.value and one.subject == told.subject for one in earlier)):
            return told.clause
    return ""


class Bearing(Enum):
    """How the change that a newer sentence tells bears on an older one."""

    MAY_REPLACE = auto()
    """Its words end what the older one says or give it another value, or say not what changes: "we moved"."""
    SAME_THING = auto()
    """It names a thing that the older one names as well, and says what cannot replace that."""
    ANOTHER_THING = auto()
    """It names another thing, or adds to the rest: "plays the drums as well"."""


def bearing_of(newer: str, older: str) -> Bearing:
    """How the change that `newer` tells bears on `older`: that the swimming class moved says nothing of piano."""
    folded = _folded(newer)
    told, adds = _told(folded), _ADDS.search(folded) is not None
    if not (told or adds) or replaced_by_words(newer, older):
        return Bearing.MAY_REPLACE
    said = frozenset(_units(_folded(older[:MAX_OLDER_CHARACTERS])))
    names_it = not adds and any(said.issuperset(one.subject) for one in told)
    return Bearing.SAME_THING if names_it else Bearing.ANOTHER_THING


@dataclass(frozen=True, slots=True)
class _Told:
    """A change that a clause tells: units of what changes, at least a word, and the new value, empty if it ended.

    What a correction takes back is what changes.
    """

    clause: str
    subject: frozenset[str]
    value: str
    needs: re.Pattern[str] | None = None
    is_move: bool = False
    is_correction: bool = False


@lru_cache(_TEXTS_KEPT)
def _told(text: str) -> tuple[_Told, ...]:
    """The changes that a folded text tells."""
    told: list[_Told] = []
    for correction in _CORRECTIONS:
        if found := correction.search(text):
            subject = frozenset(_content(found["s"]) or _units(found["s"]))
            if _weight(subject) >= _A_WORD:
                told.append(_Told(found[0].strip(), subject, found["v"].strip(), is_correction=True))
    for clause in _clauses(text):
        for telling in _TELLINGS:
            if found := telling.pattern.search(clause):
                groups = found.groupdict(default="")
                subject = frozenset(_content(" ".join(part for name, part in groups.items() if name[0] == "s")))
                value = "".join(part for name, part in groups.items() if name[0] == "v").strip()
                if _weight(subject) >= _A_WORD:
                    told.append(_Told(clause, subject, value, telling.needs, telling.is_move))
    return tuple(told)


def _can_stand_for(told: _Told, older: str, said: frozenset[str]) -> bool:
    """Whether a new value is another one than the older text has, and of one kind with it.

    A value that is no number says little about what it is a value of, so the subject must say more.
    """
    if said.issuperset(_units(told.value)):
        return False
    if told.is_correction:
        return True
    kinds, known = _kinds(told.value), _kinds(older)
    if told.is_move and _BARE in kinds:
        # "Moved to ten" names a time.
        kinds = kinds - {_BARE} | {"clock"}
    if not known and told.is_move and _is_at_a_place(told, older):
        return True
    if not kinds and not known:
        return _weight(told.subject) >= _TWO_WORDS
    if kinds and known and not kinds.isdisjoint(known):
        return True
    return (bool(known) and kinds == {_BARE}) or (known == {_BARE} and kinds.isdisjoint(_KINDS) and bool(kinds))


def _is_at_a_place(told: _Told, older: str) -> bool:
    """Whether the older text says where just that is which has moved."""
    found = _IS_AT.search(older)
    return found is not None and frozenset(_content(older[: found.start()])) == told.subject


def _kinds(text: str) -> set[str]:
    """The kinds of the numbers and times in a text, units of numbers included."""
    found = {kind for kind, pattern in _KINDS.items() if pattern.search(text)}
    for number in _NUMBERS.finditer(text):
        unit = (number["unit"] or "").casefold()
        says_nothing = not unit or unit in NO_SUBJECT_WORDS or _NO_SUBJECT_ZH.fullmatch(unit)
        found.add(_BARE if says_nothing else _stems([unit])[0])
    return found


def _weight(subject: frozenset[str]) -> int:
    """Weight of the words of a subject."""
    return sum(1 if is_han(unit) else _A_WORD for unit in subject)


def _folded(text: str) -> str:
    return simplified(nfkc(text))


def _clauses(text: str) -> Iterator[str]:
    return (clause for part in _CLAUSE.split(text) if (clause := part.strip()))


def _content(text: str) -> list[str]:
    """Units of a text without those that do not say what changes."""
    left = _NO_SUBJECT_ZH.sub(" ", text)
    return _stems([word for word in _WORD.findall(left) if word.casefold() not in NO_SUBJECT_WORDS])


def _units(text: str) -> list[str]:
    return _stems(_WORD.findall(text))


def _stems(words: list[str]) -> list[str]:
    """Stems of words, and Chinese characters as they are."""
    return first_terms([word.casefold() for word in words])
