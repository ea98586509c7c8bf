"""Finds the fragments of code that a query names: by places of a stack trace, or by asking what a class does.

A place is `Bar.java:123` or `File "x/y.py", line 12`; the fragment of a class is the one with its documentation.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from pathlib import PurePosixPath
from typing import Final, NamedTuple

import numpy as np
from msgspec.structs import replace

from hummock.core.candidates import Candidates, FoundBy, Gathered
from hummock.core.memory import CodeFragment, Memory
from hummock.ports.store import Snapshot

MOST_FRAMES: Final = 32
"""Places of a trace that are looked up; those that are deeper are seldom the reason."""

_MOST_MENTIONS: Final = 256

_PLACE: Final = re.compile(
    r"""(?<![\w./\\@+-])(?P<path>[\w/\\@+-][\w./\\@+-]{0,250}\.[A-Za-z]\w{0,7})["']?(?::(?:line\ )?|,\ line\ )"""
    r"(?P<line>\d{1,6})\b",
    re.ASCII,
)
_METHOD: Final = re.compile(r"([\w$.]+)\.[\w$]+\.[\w$<>]+\(\Z", re.ASCII)
"""The package, the class and the method, which traces of Java write before the file."""

_LONGEST_METHOD: Final = 250

_KIND: Final = "(?:class|interface|struct|enum|trait|object|record|protocol|type|component)"
_KIND_ZH: Final = "(?:数据类|类型|类|接口|结构体|枚举|对象|单例|组件)"
_CLASS: Final = (
    r"[`'\"「“]?(?<![A-Za-z0-9_$.])((?:[a-z_$][A-Za-z0-9_$]{0,60}\.){0,8}[A-Z][A-Za-z0-9_$.]{0,120})[`'\"」”]?"
)
WHAT_A_CLASS_DOES: Final = re.compile(
    rf"(?i:\bwhat(?: does| is|['’]s)(?: the (?:purpose|role|job) of)?(?: the| this| our)?(?: {_KIND})?) {_CLASS}"
    rf"(?i:(?: {_KIND})?(?: do| represent| for| used for)?[\s?？.]*\Z)"
    rf"|{_CLASS}\s*(?:[这那]个|的)?\s*{_KIND_ZH}?(?:到底|究竟|主要|是|用来|负责|有|起)*"
    r"(?:[做干](?:什么|嘛|啥)|[什啥]么?用|什么作用|(?:作用|职责|用途)是什么)[的用呢呀啊\s?？。]*\Z"
)
"""Matches the end of a question what a class does, and the class; names of classes begin with a capital."""

LONGEST_QUESTION: Final = 300

_MOST_CLASSES: Final = 3
"""With more classes of one name it says too little about which is meant."""


class Frame(NamedTuple):
    """A place in a file.

    Attributes:
        path: As a trace writes it, with `/` between its parts.
        line: Counted from 1.
        package: Folders that the file should lie in; empty if the trace names none.
    """

    path: PurePosixPath
    line: int
    package: tuple[str, ...] = ()


def frames_in(text: str) -> tuple[Frame, ...]:
    """The places that a text names, each once, in order; at most MOST_FRAMES."""
    found = []
    for place in islice(_PLACE.finditer(text), _MOST_MENTIONS):
        method = _METHOD.search(text[max(0, place.start() - _LONGEST_METHOD) : place.start()])
        package = tuple(method[1].split(".")) if method else ()
        path = PurePosixPath(place["path"].replace("\\", "/").lstrip("/"))
        found.append(Frame(path, int(place["line"]), package))
    return tuple(dict.fromkeys(frame for frame in found if frame.line))[:MOST_FRAMES]


def class_in(text: str) -> str:
    """Return the class, with the classes around it if the text says them, of a question what it does; else empty."""
    found = WHAT_A_CLASS_DOES.search(text[-LONGEST_QUESTION:])
    return next(filter(None, found.groups())).rstrip(".") if found else ""


def with_named_code(gathered: Gathered, text: str, project: Snapshot) -> Gathered:
    """The candidates, of which code that the text names is as good as found by its name; unchanged without any."""
    frames, class_name = frames_in(text), class_in(text)
    if not frames and not class_name:
        return gathered
    return replace(gathered, groups=tuple(_marked(found, frames, class_name, project) for found in gathered.groups))


def _marked(found: Candidates, frames: Sequence[Frame], class_name: str, project: Snapshot) -> Candidates:
    is_code = np.flatnonzero(found.rows["file"])
    memories = project.load(found.rows["doc"][is_code].tolist(), full=True) if len(is_code) else []
    codes = {row: code for row, memory in zip(is_code.tolist(), memories, strict=True) if (code := _code(memory))}
    named = {row for frame in frames for row in _named(frame, codes)}
    if class_name:
        named.update(_heads(class_name, codes))
    if not named:
        return found
    found_by = found.found_by.copy()
    found_by[sorted(named)] |= np.uint8(FoundBy.HOLDER)
    return replace(found, found_by=found_by)


def _code(memory: Memory | None) -> CodeFragment | None:
    detail = memory.payload.detail if memory and memory.payload else None
    return detail if isinstance(detail, CodeFragment) and detail.start_line else None


def _named(frame: Frame, codes: Mapping[int, CodeFragment]) -> list[int]:
    """The fragments that hold the place; if any lie in the folders of its package, those alone."""
    holders = {
        row: PurePosixPath(code.path)
        for row, code in codes.items()
        if code.start_line <= frame.line <= (code.end_line or code.start_line)
    }
    same = {row: path.parent.parts for row, path in holders.items() if _ends_alike(frame.path.parts, path.parts)}
    in_package = [row for row, folders in same.items() if frame.package and _ends_alike(frame.package, folders)]
    return in_package or list(same)


def _heads(class_name: str, codes: Mapping[int, CodeFragment]) -> Collection[int]:
    """The first fragment of each class of that name, where its documentation is; empty if there are too many."""
    wanted = class_name.split(".")
    first: dict[tuple[str, str], int] = {}
    for row, code in codes.items():
        parts = code.symbol.split(".")
        # A constructor that is called like its class lies within it.
        if parts[-len(wanted) :] != wanted or parts[-2:-1] == wanted[-1:]:
            continue
        other = first.setdefault((code.path, code.symbol), row)
        if code.start_line < codes[other].start_line:
            first[code.path, code.symbol] = row
    return first.values() if len(first) <= _MOST_CLASSES else ()


def _ends_alike(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether the shorter of two paths is the end of the longer one."""
    shared = min(len(one), len(other))
    return tuple(one[-shared:]) == tuple(other[-shared:]) if shared else False
