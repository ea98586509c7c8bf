"""Orders to a model in stored text. No list is complete: what protects is that the text is data."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from hummock.text.clean import clean
from hummock.text.markers import has_marker, speaks


class _Order(NamedTuple):
    """An order to a model: `pattern` finds it, and a text with none of `triggers`, in lower case, holds none."""

    triggers: tuple[str, ...]
    pattern: re.Pattern[str]


def _order(triggers: str, pattern: str) -> _Order:
    return _Order(tuple(triggers.split("|")), re.compile(pattern, re.IGNORECASE))


# Orders to a model rather than facts. No list is complete: the mark is a hint, what protects is that the text is data.
_ORDERS: Final = (
    _order(
        "ignore|disregard|forget|override|bypass",
        r"\b(?:ignore|disregard|forget|override|bypass)\b.{0,40}"
        r"\b(?:instructions?|prompts?|rules|guidelines|above|previous)\b",
    ),
    _order(" now", r"\byou (?:are|must|will) now\b"),
    _order("prompt", r"\b(?:system|developer) prompt\b"),
    _order("new instruction", r"\bnew instructions?\b"),
    _order("the user", r"\b(?:do not|don't|never) (?:tell|inform|mention (?:this )?to) the user\b"),
    _order(
        "the following|the tool|the command|the function",
        r"\b(?:call|use|run|execute|invoke) the (?:following )?(?:tool|command|function)\b",
    ),
    _order(
        "忽略|无视|忘记|忘掉|不要理会|绕过",
        "(?:忽略|无视|忘记|忘掉|不要理会|绕过).{0,20}(?:指令|指示|提示词?|规则|要求|设定)",
    ),
    _order("你现在是|系统提示", "你现在是|系统提示"),
    _order("从现在", "从现在(?:开始|起).{0,6}你"),
    _order("告诉用户|告知用户|透露", "(?:不要|别|不得)(?:告诉|告知|透露给?)用户"),
    _order("以下|下面", "(?:执行|调用|运行)(?:以下|下面的?)(?:命令|工具|函数)"),
)


def reading_as_orders(texts: Sequence[str], are_code: Sequence[bool]) -> list[bool]:
    """Whether each text tells a model what to do, or imitates the markers of a chat; no line of code is a speaker's."""
    joined = "\n".join(texts)
    cleaned = clean(joined)
    if cleaned != joined:
        texts = [clean(text) for text in texts]
    # To look for a trigger is quick, and most are nowhere.
    lowered = cleaned.lower()
    orders = [order for order in _ORDERS if _has_trigger(lowered, order)]
    return [
        _gives(text, orders) or (not is_code and speaks(text)) or has_marker(text)
        for text, is_code in zip(texts, are_code, strict=True)
    ]


def _gives(text: str, orders: Sequence[_Order]) -> bool:
    return any(_has_trigger(text.lower(), order) and order.pattern.search(text) for order in orders)


def _has_trigger(lowered: str, order: _Order) -> bool:
    # One character is found five to fifty times as fast as two.
    return any(one[0] in lowered and one in lowered for one in order.triggers)
