"""Tells by words whether a sentence speaks of a change, and whether a question asks how things were.

"We moved to Bristol", 测试库升级成 8.0 了; "where did I live before?", 升级之前是哪个版本？

Such a sentence may replace an older one about the same thing, without naming it. The words only say that it may: what
it is about must be compared by other means.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Final

from hummock.text.normalise import nfkc, simplified
from hummock.text.question import Question

MAX_BYTES: Final = 280
"""A longer text is a document, which speaks of changes that replace nothing. 93 Chinese characters say as much."""

_ENGLISH: Final = (
    # From when on.
    "now|nowadays|these days|no longer|any ?more|from (?:now|today|tomorrow|this|next|then)|as of|since (?:then|last)",
    # One thing for another.
    "instead|moved|relocated|switch(?:ed|es)|swapp?ed|chang(?:ed|es)|replac(?:ed|es)|bec(?:ame|omes?)|turned into",
    "renamed|upgraded|downgraded|updated|migrated|converted|rewr(?:ote|itten)|rewrite|took over|taken over|handed over",
    # The end of one, the beginning of another.
    "quit|gave up|given up|gave in|stopped|started|starts?|dropped|removed|deprecated|retired|decommissioned|deleted",
    "shut down|left|resigned|handed in|joined|hired|fired|promoted|sold|bought|picked up|adopted|got rid of|got an?",
    "new (?:number|phone|address|job|name|version|default|office|owner|home|house|flat|car|boss|team|bar|deadline)",
    "broke up|divorced|engaged|married|died|passed away|sank|destroyed|collapsed|cancell?ed|called off|again",
    # More or less of it, sooner or later.
    "raised|lowered|reduced|increased|extended|shortened|doubled|halved|cut to|(?:goes|went) (?:up|down)",
    "put (?:it )?up|postponed|rescheduled|pushed (?:back|to)|brought forward",
)
_CHINESE: Final = (
    "现在|如今|目前|从(?:今|明|下|这|本|上|[0-9一二三四五六七八九十])[^，。,.]{0,6}(?:起|开始)|以后|今后|已经",
    "改(?![善进天革动])|换|搬|不再|迁|转(?:到|成|为|去|给|用|入|投)|调(?:到|成|为|整|高|低)|挪|变成|变为|成了|替换|代替|取代",
    "顶替|接手|接替|交给|升级|降级|升(?:任|为|到|成|上)|晋升|更名|重命名|重写|废弃|弃用|下线|停用|停止|停了|取消|放弃|删了|退租",
    "退(?:出|役|休)|戒|辞|离职|跳槽|入职|卖掉|卖了|买了|提了|盘给|分手|离婚|结婚|复合|领养|去世|走了|死了|断了|垮|毁|治好|痊愈",
    "不[^，。,.]{1,3}了|推迟|延期|提前|延长|缩短|(?:提高|降低|涨|降|加|减)(?:到|至|了)|新(?:号|版|家|任|尾|公司|地址|工作)",
)
_CHANGE: Final = re.compile(rf"\b(?:{'|'.join(_ENGLISH)})\b|{'|'.join(_CHINESE)}", re.IGNORECASE)


def tells_change(text: str) -> bool:
    """Whether a text of a sentence or a few says that something has changed, or changes."""
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        return False
    return _CHANGE.search(simplified(nfkc(text))) is not None


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
