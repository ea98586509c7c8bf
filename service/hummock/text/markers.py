"""Markers of chats in stored text: found also where compatibility forms disguise them, and disarmed."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from importlib import resources
from typing import Final

import msgspec
from msgspec import Struct

from hummock.text.normalise import BEYOND, matches, ranges_of, replaced, substituted


class Template(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The markers of a family of models; `markers.toml` says what each field means."""

    family: str
    source: str
    tags: tuple[str, ...] = ()
    starts: tuple[str, ...] = ()
    brackets: tuple[str, ...] = ()
    indexes: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    blocks: tuple[str, ...] = ()
    speakers: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    letters: tuple[str, ...] = ()
    headings: tuple[str, ...] = ()


TEMPLATES: Final = msgspec.toml.decode(
    resources.files("hummock.text").joinpath("markers.toml").read_bytes(), type=dict[str, tuple[Template, ...]]
)["templates"]


def _of(column: Callable[[Template], Iterable[str]]) -> str:
    """An alternation of all that a column of the table holds; the longest first."""
    found = {marker for template in TEMPLATES for marker in column(template)}
    ordered = sorted(found, key=lambda marker: (-len(marker), marker))
    return "|".join(re.escape(marker).replace(r"\#", r"\d").replace(r"\ ", r"\s") for marker in ordered)


# Our own: what delimits memories.
_OURS: Final = "(?i:recalled_memor(?:ies|y)|memory_index)"
_TOKENS: Final = f"(?:{_of(lambda row: row.tags)})>|{_of(lambda row: row.starts)}"
# What models read as a role, a call or its result. Types are called so too: behind a word "<" does not open a tag.
_CONVENTIONS: Final = (
    r"(?i:user(?:_\w{1,32})?\s{0,8}>|(?:(?:tool|function|start_of|end_of|reserved)_\w{1,32}|invoke|parameter"
    r"|(?:system|assistant|human)(?:[-:][\w-]{1,32})?)(?:\s{0,8}>|\s{1,8}\w{1,32}[=>]))"
)
# "<|…|>" of most templates, its full-width cousin, and "<name|>"; no operators.
_PIPES: Final = r"[|｜][^\s|>]|\w{1,32}\|>"

# The bounds keep the time linear, whatever stands behind a "<" or a "[".
_LESS: Final = "(?:<|&(?:amp;)*(?:lt|#65308|#65124);)"
_SLASH: Final = r"\s{0,8}/\s{0,8}"
_TAG = re.compile(
    rf"{_LESS}(?:(?={_PIPES}|/?(?:{_TOKENS})|\s{{0,8}}{_OURS}|{_SLASH}(?:{_OURS}|{_CONVENTIONS}))"
    rf"|(?P<type>)(?=\s{{0,8}}{_CONVENTIONS}))"
)
_OTHERS: Final = sorted({other for template in TEMPLATES for other in template.others})


def _behind(sign: str) -> str:
    """An alternation of what follows the sign in the markers with brackets of their own."""
    return "|".join(re.escape(other[1:]) for other in _OTHERS if other[0] == sign)


_BRACKET = re.compile(
    rf"(?:\[|&(?:amp;)*#(?:91|65339|65095);)(?:(?=/?(?:{_of(lambda row: row.brackets)})\]|{_behind('[')})"
    rf"|(?P<index>)(?=(?:{_of(lambda row: row.indexes)})\]))"
    rf"|(?:\]|&(?:amp;)*#(?:93|65341|65096);)(?={_behind(']')})"
)
# What stands in front of a generic's types and of an index. A look-behind in the patterns would make them slow.
_IN_CODE: Final = {"type": re.compile(r"[0-9A-Za-z_]\Z|::\Z"), "index": re.compile(r"[0-9A-Za-z_\])]\Z")}
# A run is taken whole whatever follows: begun at again at each of its characters it would take quadratic time.
_BLOCK = re.compile(rf"(?:`{{3,}}+|~{{3,}}+)(?:[^\S\n]{{0,8}}\\*(?={_of(lambda row: row.blocks)})(?P<called>))?")

# Characters of compatibility that stand for one of ASCII: full width, mathematical and circled letters, small forms.
_COMPATIBLE_RANGES: Final = (
    *((0xA0, 0x100), (0x17F, 0x180), (0x2B0, 0x2E0), (0x1D2C, 0x1DC0), (0x2070, 0x20A0), (0x2100, 0x2190)),
    *((0x2460, 0x2500), (0x2C7C, 0x2C7E), (0xFE30, 0xFE70), (0xFF01, 0xFF5F), (0x1D400, 0x1D800), (0x1F130, 0x1F16A)),
)
_LAST_ASCII: Final = 0x7E


def _folds() -> dict[int, str]:
    pairs = {}
    for first, end in _COMPATIBLE_RANGES:
        for code in range(first, end):
            folded = unicodedata.normalize("NFKC", chr(code))
            # An ampersand is left: what it begins is undone as it is written.
            if len(folded) == 1 and "!" <= folded <= chr(_LAST_ASCII) and folded != "&":
                pairs[code] = folded
    # White letters in circles and squares have no compatible form.
    for first in (0x1F150, 0x1F170):
        pairs.update({first + place: chr(ord("A") + place) for place in range(26)})
    return pairs


_FOLDS: Final = _folds()


# A full-width colon or comma disguises no tag, and Chinese is full of them.
_DISGUISING: Final = sorted(code for code, folded in _FOLDS.items() if folded.isalnum() or folded in "<>[]|/_=~`")
_DISGUISE = re.compile(f"[{ranges_of(_DISGUISING)}]")
# Most texts have none of them that is near, and none that is far, which takes a tenth of the time to see.
_MAY_DISGUISE = re.compile(f"[{ranges_of(code for code in _DISGUISING if code < 0x10000)}{BEYOND}]")

_SIGNS: Final = ("<", "&", "[", "]~", "```", "~~~")
"""Every marker that is not disguised holds one of these."""

_LINE_BEGINNING: Final = 96
"""Characters of a line in which a speaker's name is looked for."""
COLONS: Final = ":：﹕︓∶꞉ː"
"""The colon, its forms of compatibility and what looks like it."""

_COLON: Final = "[:∶꞉ː]"
_HAS_COLON = re.compile(f"[{COLONS}]")
_CODE_INDENT: Final = r"(?! {0,3}\t| {4})"
"""A line that is indented by a tab or four spaces is code: no chat is written so, and keys and parameters are."""


def _spoken(names: str) -> re.Pattern[str]:
    return re.compile(
        rf"{_CODE_INDENT}[^\S\n]*\\*(?:[*_#>]{{0,4}}[^\S\n]{{0,2}}[\[【「『〔(]?[^\S\n]{{0,2}}(?:{names})"
        rf"[^\S\n]{{0,2}}[\]】」』〕)]?|#{{2,4}}[^\S\n]{{0,2}}(?i:{_of(lambda row: row.headings)}))"
        rf"[^\S\n]{{0,2}}[*_]{{0,4}}[^\S\n]{{0,2}}{_COLON}"
    )


_SPEAKERS: Final = f"(?i:{_of(lambda row: row.speakers)})"
_SPEAKER = _spoken(_SPEAKERS)
_SPOKEN = _spoken(f"(?i:{_of(lambda row: (*row.speakers, *row.labels))})|{_of(lambda row: row.letters)}")
_KEY = re.compile(r"[^\S\n]*[a-z]+(?:[_-][a-z]+)*:(?:\s|$)")
_WHITE = re.compile(r"[^\S\n]*")


def inert(text: str) -> str:
    """The text with markers disarmed that work anywhere in a line; what is disarmed already is so once more."""
    if _is_disguised(text):
        text = _disarmed_as_folded(_TAG, text)
        return _BLOCK.sub(_uncalled, _disarmed_as_folded(_BRACKET, text))
    has_entity = "&" in text
    if has_entity or "<" in text:
        text = substituted(_TAG, lambda found: _entity(found, found[0]), text)
    if has_entity or "[" in text or "]~" in text:
        text = substituted(_BRACKET, lambda found: _entity(found, found[0]), text)
    return _BLOCK.sub(_uncalled, text) if "```" in text or "~~~" in text else text


def _is_disguised(text: str) -> bool:
    if text.isascii() or not _MAY_DISGUISE.search(text):
        return False
    # Piece by piece: one search of 256 KiB takes some 30 ms.
    return next(matches(_DISGUISE, text, 0), None) is not None


def may_hold_marker(text: str) -> bool:
    """False if neither the text nor any part of it holds a marker; costs less than `has_marker` of each part."""
    return any(sign in text for sign in _SIGNS) or _is_disguised(text)


def _uncalled(fence: re.Match[str]) -> str:
    """The beginning of a block of code; with a backslash more where a program would run it by its name."""
    return fence[0] if fence["called"] is None else f"{fence[0]}\\"


def _disarmed_as_folded(pattern: re.Pattern[str], text: str) -> str:
    """The text, disarmed where the pattern finds a marker once characters of compatibility are what they stand for."""
    found = matches(pattern, text.translate(_FOLDS))
    return replaced(found, lambda one: _entity(one, text[one.start() : one.end()]), text)


def _entity(found: re.Match[str], written: str) -> str:
    """What stands for the sign that was found, of which the text has `written`."""
    start = found.start()
    if found.lastgroup and _IN_CODE[found.lastgroup].search(found.string[max(start - 2, 0) : start]):
        return written
    if written[0] == "&" and not written.isascii():
        return written  # no reader takes it for an entity
    if len(written) == 1:
        return "&lt;" if written == "<" else f"&#{ord(written)};"
    return "&amp;" + written[1:]


def has_marker(text: str) -> bool:
    """Whether the text holds a marker that works anywhere in a line."""
    return inert(text) != text


def speaks(text: str) -> bool:
    """Whether a line of the text begins as a speaker's. A label such as "Q:" or "Model:" is nobody."""
    lines = text.split("\n") if _HAS_COLON.search(text) else ()
    return any(_SPEAKER.match(_folded_beginning(line)) for line in lines if _HAS_COLON.search(line))


def is_spoken(line: str, *, keeps_keys: bool = False) -> bool:
    """Whether a line begins as a speaker's, backslashes included; `keeps_keys` leaves out the keys of settings."""
    if not _HAS_COLON.search(line) or not _SPOKEN.match(_folded_beginning(line)):
        return False
    return not (keeps_keys and _KEY.match(line))


def _folded_beginning(line: str) -> str:
    return line if line.isascii() else unicodedata.normalize("NFKC", line[:_LINE_BEGINNING])


def with_backslash(line: str) -> str:
    """The line with one backslash more behind the white space that it begins with."""
    white = _WHITE.match(line)
    end = white.end() if white else 0
    return f"{line[:end]}\\{line[end:]}"


def unspoken(text: str, *, keeps_keys: bool = False) -> str:
    """The text with a backslash before each line that begins as a speaker's."""
    if not _HAS_COLON.search(text):
        return text
    # Most lines hold no colon, and to look for one takes a fiftieth of the pattern's time.
    lines = text.split("\n")
    return "\n".join([with_backslash(line) if is_spoken(line, keeps_keys=keeps_keys) else line for line in lines])
