"""What a reader should know about a memory: that it is old, that nobody vouches for it, that it gives orders."""

from __future__ import annotations

import re
from typing import Final

from hummock.core.memory import Memory, Origin
from hummock.core.render import MemoryMark
from hummock.render.fence import clean
from hummock.render.markers import inert, speaks

_STALE_DAYS: Final = 90
_VERIFIED_TRUST: Final = 0.5
_SECONDS_A_DAY: Final = 86_400.0

UNVERIFIED: Final = "[Unverified]"
_SHOWN: Final = {MemoryMark.STALE: "(Warning: Old)", MemoryMark.UNVERIFIED: UNVERIFIED}

# Orders to a model rather than facts. No list is complete: the mark is a hint, what protects is that the text is data.
_ORDER = re.compile(
    r"\b(?:ignore|disregard|forget|override|bypass)\b.{0,40}\b(?:instructions?|prompts?|rules|guidelines|above|previous)\b"
    r"|\byou (?:are now|must now|will now)\b|\b(?:system|developer) prompt\b|\bnew instructions?\b"
    r"|\b(?:do not|don't|never) (?:tell|inform|mention (?:this )?to) the user\b"
    r"|\b(?:call|use|run|execute|invoke) the (?:following )?(?:tool|command|function)\b"
    r"|(?:忽略|无视|忘记|忘掉|不要理会|绕过).{0,20}(?:指令|指示|提示词?|规则|要求|设定)|你现在是|从现在(?:开始|起).{0,6}你"
    r"|系统提示词?|(?:不要|别|不得)(?:告诉|告知|透露给?)用户|(?:执行|调用|运行)(?:以下|下面的?)(?:命令|工具|函数)",
    re.IGNORECASE,
)
# Looked for first, in lower case: no order is without one of them, and most texts are.
_TRIGGERS: Final = (
    *("ignore", "disregard", "forget", "override", "bypass", "you are now", "you must now", "you will now"),
    *("prompt", "new instruction", "the user", "the following", "the tool", "the command", "the function"),
    *(
        "忽略",
        "无视",
        "忘记",
        "忘掉",
        "不要",
        "绕过",
        "你现在是",
        "从现在",
        "系统提示",
        "别",
        "不得",
        "执行",
        "调用",
        "运行",
    ),
)


def marks_of(memory: Memory, as_of: float) -> tuple[MemoryMark, ...]:
    """What its record says about it; `as_of` is the "now" in Unix seconds."""
    marks = []
    # What the indexer keeps is as new as its file.
    if memory.origin is not Origin.INDEXER and as_of - memory.update_time > _STALE_DAYS * _SECONDS_A_DAY:
        marks.append(MemoryMark.STALE)
    if is_unverified(memory):
        marks.append(MemoryMark.UNVERIFIED)
    return tuple(marks)


def is_unverified(memory: Memory) -> bool:
    """Whether nobody vouches for it."""
    return memory.trust < _VERIFIED_TRUST


def shown(memory: Memory, as_of: float) -> str:
    """The marks as they stand in a text, each behind a space; empty for none."""
    return "".join(f" {_SHOWN[mark]}" for mark in marks_of(memory, as_of))


def reads_as_order(text: str, *, is_code: bool = False) -> bool:
    """Whether the text tells a model what to do, or imitates the markers of a chat; no line of code is a speaker's."""
    cleaned = clean(text)
    lowered = cleaned.lower()
    if any(map(lowered.__contains__, _TRIGGERS)) and _ORDER.search(cleaned):
        return True
    return (not is_code and speaks(cleaned)) or inert(cleaned) != cleaned
