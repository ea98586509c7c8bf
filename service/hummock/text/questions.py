"""Detects the kind of answer that a question wants (a time, an earlier answer), and whether a text asks or answers.

Also whether a text tells a change ("we moved to Bristol", 测试库升级成 8.0 了), and of which time a question asks.

By tables of words, one per language, as for times: words not understood change nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum, IntFlag
from typing import Final

from hummock.core.recall import Wanted
from hummock.text.likeness import without_faces
from hummock.text.normalise import CJK, is_han, nfkc, simplified
from hummock.text.question import Question, lowered
from hummock.text.signs import has_sign
from hummock.text.time_words import speaks_of_a_time
from hummock.text.word_lists import ENGLISH_STOP_WORDS

_AUXILIARY = r"(?:did|do|does|is|are|was|were|will|would|has|have|had|can|could|should|shall|might)(?:n['’]t)?"
_SAID = (
    "recommend(?:ed)?|suggest(?:ed)?|sa(?:y|id)|tell|told|mention(?:ed)?|advised?|g[ai]ve|given|explain(?:ed)?|teach|"
    "taught|wr[io]te|written|proposed?|shared?|list(?:ed)?|answer(?:ed)?|repl(?:y|ied)|describe[d]?|offer(?:ed)?|promised?"
)
_ENGLISH: Final = {
    Wanted.WHEN: (
        rf"\bwhen(?:['’]s\b| {_AUXILIARY}\b)|\bsince when\b|\bhow long (?:ago|since|has|have|had)\b"
        r"|\b(?:what|which) (?:\w+ )?(?:date|day|time|year|month|week|weekday|season)\b"
        r"|\b(?:what|which) (?:was|is|were) (?:the )?(?:\w+ )?(?:date|day|time|year|month)\b"
    ),
    Wanted.FROM_ASSISTANT: (
        rf"\b(?:did|have|had|were|was) you (?:\w+ ){{0,2}}(?:{_SAID}|recommending|suggesting|saying|telling)\b"
        rf"|\byou(?:['’](?:ve|d))? (?:have |had )?(?:once |previously |already |just |earlier |ever |also )*"
        r"(?:recommended|suggested|said|told|mentioned|advised|gave|given|explained|taught|wrote|written|proposed|shared|"
        r"listed|answered|replied|described|offered|promised)\b"
        r"|\byour (?:\w+ )?(?:recommendations?|suggestions?|advice|answers?|explanations?|repl(?:y|ies)|tips?)\b"
    ),
}
_ZH_SAID = (
    "推荐|建议|说|告诉|提到|提过|提出|讲|回答|回复|介绍|分享|教|给|列|提议|提供|解释|写|安利|答应|描述|提醒|答|夸|问"
)
_CHINESE: Final = {
    Wanted.WHEN: (
        r"什么时[候间]|何时|啥时候?|几时|哪一?[天年月周]|哪一?个(?:月|星期|周|季节|年)|几[月号点]|[多几][久天年]以?[之]?前|星期几|周几"
        r"|多少号|(?:日期|时间|日子)(?:是|在|为)?(?:什么|哪|几|多|[?？]|$)|什么(?:日期|日子|年份|月份)|多久(?:没|之前|以前)"
    ),
    Wanted.FROM_ASSISTANT: (
        rf"(?<![和跟向给对与同教诉])你们?(?!能|可|会|觉|认|知|帮|请|再|应|想|最|喜|是|叫|有没有|怎么)[^，。？！,?!你]{{0,8}}?(?:{_ZH_SAID})(?:[^，。？！,?!]{{0,3}}?)(?:过|了|的)"
        rf"|(?<![和跟向给对与同教诉])你(?:曾经?|之前|上次|以前|刚才|当时|那时|先前|昨天|前天|上周)[^，。？！,?!]{{0,10}}?(?:{_ZH_SAID})"
        rf"|(?:上次|之前|以前|刚才|当时|那次|昨天|前天|上周)你[^，。？！,?!]{{0,8}}?(?:{_ZH_SAID})"
        r"|你的(?:建议|推荐|回答|意见|解释|答复|看法|方案)"
    ),
}


_HINTS: Final = {
    Wanted.WHEN: frozenset(("when", "what", "which", "long", *"时几多日份天年月周星季")),
    Wanted.FROM_ASSISTANT: frozenset(("you", "your", "你")),
}
"""No pattern matches a text that has none of them among its `hints_of`, and most questions have none."""

PATTERNS: Final = tuple(
    (wanted, _HINTS[wanted], re.compile(pattern, re.IGNORECASE))
    for table in (_ENGLISH, _CHINESE)
    for wanted, pattern in table.items()
)
"""What a question may want, the hints of which one is there if it does, and the words that say so."""


def wanted_by(question: Question) -> Wanted:
    """Return the kinds of answers that a question wants, by the words of its opening."""
    found = Wanted.NOTHING
    for wanted, hints, pattern in PATTERNS:
        if not hints.isdisjoint(question.hints) and not wanted & found and pattern.search(question.simple_opening):
            found |= wanted
    return found


MOST_SMALL_TALK_CHARACTERS: Final = 40

SMALL_TALK: Final = (
    r"a+h+|alright|all|and|awesome|bye+|byebye|cool|continue|exactly|fine|for|go|going|good|goodbye|got|great|ha(?:ha)*h?|"
    r"hello+|hey+|hi+|hm+|it|k|keep|later|lo+l|lot|morning|afternoon|evening|night|much|more|nice|no+|nope|np|now|oh+|"
    r"ok+|okay|okey|on|perfect|please|pls|see|so|sorry|sure|thanks?|that|then|there|thx|tks|ty|understood|very|"
    r"welcome|well|what|wow|ye+s+|yeah|yep|yup|you|your|u|a|i|is|s|re"
)
_SMALL_TALK: Final = re.compile(SMALL_TALK)
SMALL_TALK_ZH: Final = (
    "继续|接着|往下|下去|然后|后来|还有|所以|谢谢|多谢|感谢|好|嗯|哦|噢|喔|啊|哈|呵|嘿|嗨|行|可以|没问题|没事|没有|没关系|知道|"
    "明白|懂|了解|收到|对|是|不用|不必|不要|不是|不客气|不|早上|上午|中午|下午|晚上|早安|午安|晚安|早|您|你|我|大家|再见|拜拜|"
    "回头见|明天见|辛苦|太棒|棒|厉害|不错|请|说|讲|随便|都|也|就|那|这样|这么|真|太|很|的|了|呢|吧|呀|啦|哟|嘛|吗|哇|一下|"
    "对不起|抱歉|没|先|再|去"
)
_SMALL_TALK_ZH: Final = re.compile(f"(?:{SMALL_TALK_ZH})+")


_NAMES: Final = re.compile(
    r"""["#$%&*+/<=>@\[\\\]^_`{|}]|\w\(|\w(?:[.]|::?)[a-z]|[a-z][A-Z]"""
    r"|^\W*(?i:go|a|i|s|u|re|for|is|all)\W*$|(?i:\bwhat(?: is|['’]s) (?!(?:it|that|you|there|on|going|next|more)\b)\w)"
)
"""A sign, a word of code, a name of a language or a keyword by itself, a word that is asked about."""


def is_small_talk(question: Question) -> bool:
    """Whether a text greets, thanks, agrees or asks to go on, and names nothing: "ok", 继续, "and then?", 谢谢."""
    if len(question.text) > MOST_SMALL_TALK_CHARACTERS:
        return False
    run = _CJK_RUN.search(question.simplified)
    if run is not None and not _SMALL_TALK_ZH.fullmatch(run[0]):
        # Faces and marks are no part of a run: the units below have it as well.
        return False
    said = without_faces(question.text)
    if has_sign(said) or _NAMES.search(said):
        return False
    units = _RUN.findall(simplified(nfkc(said)).casefold())
    return bool(units) and all((_SMALL_TALK_ZH if is_han(unit) else _SMALL_TALK).fullmatch(unit) for unit in units)


_SAY_LITTLE: Final = ENGLISH_STOP_WORDS | frozenset(
    _word
    for _line in (
        "did done doing happen happened happening went go going gone remember remind recall tell told say said talk",
        "talked talking about discuss discussed then day days date time times diary journal diaries journals entry",
        "entries note notes noted record records recorded plan plans planned been there any topic topics anything",
        "something everything else some all during around us me am thing things up get got spend spent busy keep kept",
        "write wrote written look looking see show find give back over events event life like much so just he she him",
        "her his let know s d ll re ve m",
    )
    for _word in _line.split()
)
_SAY_LITTLE_ZH: Final = re.compile(
    "聊天|天(?!气)|话题|内容|日记|日志|记录|日程|安排|计划|活动|情况|时候|期间|印象|生活"
    "|[我你您他她它们的地得了着过在是有没去来做干搞忙些啥都记忆回想看说聊谈提到讲吗呢吧啊呀么什怎样如何哪里儿这那个一下请帮让给和跟与"
    "日当时发生事情经历还又曾能可以会要翻查找出告诉知道谁]"
)
_HAN_OR_WORD: Final = re.compile(rf"[{CJK}]|[^\W_{CJK}]+")
_RUN: Final = re.compile(rf"[{CJK}]+|[^\W_{CJK}]+")
_CJK_RUN: Final = re.compile(f"[{CJK}]+")
_FIRST_CJK: Final = "\u1100"
_LEAST_CHINESE: Final = 2
"""Characters that make a word."""


def is_only_of_times(question: Question, phrases: Iterable[str]) -> bool:
    """Whether a question names times and nothing else to look for: "what did I do on May 2nd", 11月19日我做了什么.

    `phrases` are the words in it that name the times; none of an interval that the caller gave.
    """
    left = question.nfkc
    named = False
    for phrase in phrases:
        named |= bool(phrase)
        left = left.replace(phrase, " ") if phrase else left
    return named and names_nothing(left)


def names_nothing(text: str) -> bool:
    """Whether a text has only words that say little: nothing to look for."""
    units = _HAN_OR_WORD.findall(_SAY_LITTLE_ZH.sub("", simplified(text)))
    characters = sum(unit[0] >= _FIRST_CJK for unit in units)
    return characters < _LEAST_CHINESE and all(
        unit[0] >= _FIRST_CJK or unit.casefold() in _SAY_LITTLE for unit in units
    )


_END = re.compile(r"[?？][\s\"'”’」』)）]*\Z")
_END_CHARACTERS = 16
_WITHIN = re.compile(r"(?<=\w)(?:？|\?(?![A-Za-z0-9_=.:/&-]))")
"""A question mark of prose: behind a word, and not in the midst of a name, an address or a pattern."""


MAX_CHANGE_BYTES: Final = 280
"""A longer text is a document, which speaks of changes that replace nothing. 93 Chinese characters say as much."""

_ENGLISH_CHANGES: Final = (
    # From when on.
    "now|nowadays|these days|no longer|any ?more|from (?:now|today|tomorrow|this|next|then)|as of|since (?:then|last)",
    # One thing for another.
    "instead|moved|relocated|switch(?:ed|es)|swapp?ed|chang(?:ed|es)|replac(?:ed|es)|bec(?:ame|omes?)|turned into",
    "renamed|upgraded|downgraded|updated|migrated|converted|rewr(?:ote|itten)|rewrite|took over|taken over|handed over",
    # The end of one, the beginning of another.
    "quit|gave up|given up|gave in|stopped|started|starts?(?! at)|dropped|removed|deprecated|retired|decommissioned",
    "deleted|shut down|left|resigned|handed in|joined|hired|fired|promoted|sold|bought|picked up|adopted|got rid of",
    "got an?",
    "new (?:number|phone|address|job|name|version|default|office|owner|home|house|flat|car|boss|team|bar|deadline)",
    "broke up|divorced|engaged|married|died|passed away|sank|destroyed|collapsed|cancell?ed|called off|again",
    # More or less of it, sooner or later.
    "raised|lowered|reduced|increased|extended|shortened|doubled|halved|cut to|(?:goes|went) (?:up|down)",
    "put (?:it )?up|postponed|rescheduled|pushed (?:back|to)|brought forward|delayed|deferred|shifted|bumped|put off",
    # What was said wrong.
    r"(?:actually|correction|turns out|sorry|my mistake|i was wrong|i misspoke)\b[^.!?\n]{0,60}\bnot",
)
_CHINESE_CHANGES: Final = (
    "现在|如今|目前|从(?:今|明|下|这|本|上|[0-9一二三四五六七八九十])[^，。,.]{0,6}(?:起|开始)|以后|今后|已经",
    "改(?![善进天革动])|换|搬|不再|迁|转(?:到|成|为|去|给|用|入|投)|调(?:到|成|为|整|高|低)|挪|变成|变为|成了|替换|代替|取代",
    "顶替|接手|接替|交给|升级|降级|升(?:任|为|到|成|上)|晋升|更名|重命名|重写|废弃|弃用|下线|停用|停止|停了|取消|放弃|删了|退租",
    "退(?:出|役|休)|戒|辞|离职|跳槽|入职|卖掉|卖了|买了|提了|盘给|分手|离婚|结婚|复合|领养|去世|走了|死了|断了|垮|毁|治好|痊愈",
    "不[^，。,.]{1,3}了|推迟|推[到至]|延期|顺延|提前|延长|缩短|放宽|收紧|(?:提高|降低|涨|降|加|减)(?:到|至|了)"
    "|提[到至](?= ?[0-9一二三四五六七八九十两百千万])|新(?:号|版|家|任|尾|公司|地址|工作)",
    "(?:其实|更正|纠正|[说记搞弄写]错|不对)[^。！？!?\\n]{0,40}(?:不是|并非)",
)
_ENGLISH_CHANGE: Final = re.compile(rf"\b(?:{'|'.join(_ENGLISH_CHANGES)})\b")
_CHINESE_CHANGE: Final = re.compile("|".join(_CHINESE_CHANGES))


def tells_change(text: str) -> bool:
    """Whether a text of a sentence or a few says that something has changed, or changes."""
    if len(text.encode("utf-8", "surrogatepass")) > MAX_CHANGE_BYTES:
        return False
    small = lowered(simplified(nfkc(text)))
    return bool(_ENGLISH_CHANGE.search(small) or (not small.isascii() and _CHINESE_CHANGE.search(small)))


class Tense(Enum):
    """What a question asks for: how things are, how they were before a change, or what happened at some time."""

    NOW = 1
    FORMER = 2
    PAST = 3


_FORMER: Final = re.compile(
    r"\b(?:used to|before|previous(?:ly)?|former(?:ly)?|earlier|original(?:ly)?|initially|(?:at )?first|back then)\b"
    "|(?<![目眼当提面])前(?![端面台缀提往任辈天年几])|原[来先本定]|本来|最初|最早|最开始|一开始|起初|旧的|老的|前任|上一?任",
    re.IGNORECASE,
)
_PAST: Final = re.compile(
    r"\b(?:was|were|did|had|ago|once|yesterday|in the past"
    r"|last (?:year|month|week|time|night|spring|summer|autumn|winter))\b"
    "|前[天年几]|曾|当时|那时|那会|过去|上一?[次个回]|昨|去年|掉的是"
    # Verbs have no tense: before one, a word for when mostly asks for what has happened.
    r"|(?:什么时[候间]|何时|啥时候?|哪一?[天日]|几[点号月])(?!\W*\Z)",
    re.IGNORECASE,
)


def tense_of(question: Question) -> Tense:
    """The tense of a question, by words of the past; without one it asks how things are."""
    if _FORMER.search(question.simple_opening):
        return Tense.FORMER
    return Tense.PAST if _PAST.search(question.simple_opening) else Tense.NOW


class Trait(IntFlag):
    """Traits of a text.

    ASKS ends in a question, ASKS_WITHIN has one in its last line, TELLS_TIME tells a time, TELLS_CHANGE that something
    is no longer as it was, DATED names the one day on which it happened, which counts as its event time.
    """

    ASKS = 1
    ASKS_WITHIN = 2
    TELLS_TIME = 4
    TELLS_CHANGE = 8
    DATED = 16


def asks(text: str) -> bool:
    """Whether a text ends in a question, so that the next turn probably answers it."""
    return _END.search(text, max(0, len(text) - _END_CHARACTERS)) is not None


def traits_of(text: str) -> Trait:
    """The traits of a text of a conversation."""
    found = Trait.ASKS if asks(text) else Trait(0)
    last_line = text.rstrip().rpartition("\n")[2]
    if _WITHIN.search(last_line):
        found |= Trait.ASKS_WITHIN
    if tells_change(text):
        found |= Trait.TELLS_CHANGE
    return found | Trait.TELLS_TIME if speaks_of_a_time(text) else found
