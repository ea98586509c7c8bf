"""Finds the fragments of code that the places of a stack trace lie in: `Bar.java:123`, `File "x/y.py", line 12`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
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


def with_frames(gathered: Gathered, text: str, project: Snapshot) -> Gathered:
    """The candidates, of which those that a trace names are as good as found by their names; unchanged without any."""
    frames = frames_in(text)
    if not frames:
        return gathered
    return replace(gathered, groups=tuple(_marked(found, frames, project) for found in gathered.groups))


def _marked(found: Candidates, frames: Sequence[Frame], project: Snapshot) -> Candidates:
    is_code = np.flatnonzero(found.rows["file"])
    memories = project.load(found.rows["doc"][is_code].tolist(), full=True) if len(is_code) else []
    codes = {row: code for row, memory in zip(is_code.tolist(), memories, strict=True) if (code := _code(memory))}
    named = {row for frame in frames for row in _named(frame, codes)}
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


def _ends_alike(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether the shorter of two paths is the end of the longer one."""
    shared = min(len(one), len(other))
    return tuple(one[-shared:]) == tuple(other[-shared:]) if shared else False
