"""The name that versions of one thing share, if a memory has one.

Two texts that differ by little may be versions of one thing, of which a reader wants the best, or siblings, of which it
wants all: four environments' addresses, the rows of a table, functions of one family. Their vectors do not tell which;
a name does.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Final

from hummock.core.memory import CodeFragment, LearningRecord, Memory
from hummock.text.normalise import prose

LONGER_THAN_A_ROW: Final = 160
"""Characters. What is shorter and stands on one line may be a row under a title that all of its table share."""

_MARK = re.compile(
    r"(?i:[\s_.\-]*(?:\((?:v|version\s*)?\d+(?:\.\d+)*\)|(?<![a-z])(?:v|version[\s_\-]?)\d+(?:\.\d+)*)(?![a-z0-9]))"
    r"|(?<=[a-z])V\d+(?![A-Za-z0-9])|[_.\-](?:old|new|legacy|copy|backup|bak|orig|draft|final)(?![A-Za-z0-9])"
    r"|\s*第[\d一二三四五六七八九十]+版",
    re.ASCII,
)


def name_of(memory: Memory) -> str:
    """The name, normalised, without marks of version (`_v2`, "(3)", 第二版); empty for what has none.

    It is the path and the symbol of code, the question of a learning record, else the title that the caller gave,
    unless the text is so short that it may be a row of a table. What has neither is called as its file or its id is, if
    that bears a mark.
    """
    payload = memory.payload
    if payload is None:
        return ""
    match payload.detail:
        case CodeFragment(path=path, symbol=symbol) if symbol.strip():
            # Of one symbol in two files both may be wanted: the blocking and the asynchronous form of a call.
            return f"{prose(_MARK.sub('', path))} {_unmarked(symbol)}"
        case CodeFragment(path=path):
            return _if_marked(path)
        case LearningRecord(question=question):
            return prose(question)
        case _:
            title = memory.index.title
            if title and _is_own(title, payload.content) and _says_enough(payload.content):
                return _unmarked(title)
            return _if_marked(memory.id)


def _is_own(title: str, content: str) -> bool:
    """Whether a title was given, and not taken from the first line of the text."""
    return not " ".join(content.split()).startswith(title.removesuffix("…"))


def _says_enough(content: str) -> bool:
    text = content.strip()
    return len(text) > LONGER_THAN_A_ROW or "\n" in text


def _unmarked(name: str) -> str:
    return prose(_MARK.sub("", name)) or prose(name)


def _if_marked(path: str) -> str:
    """The last part of a path without its marks; empty where it has none, or is one."""
    last = PurePosixPath(path).name
    return prose(_MARK.sub("", last)) if _MARK.search(last) else ""
