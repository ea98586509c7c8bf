"""Finds instructions to a model in stored text. No list is complete: people check findings, and all text stays data.

`families_in` checks learnt text by the table in `attacks.toml`; `reading_as_orders` checks rendered text by a short
list.
"""

from __future__ import annotations

import binascii
import re
import unicodedata
from base64 import b64decode
from collections.abc import Iterable, Iterator, Sequence
from importlib import resources
from typing import Annotated, Final, NamedTuple

import msgspec
from msgspec import Meta, Struct

from hummock.text.hint_words import HintWords
from hummock.text.markers import has_marker, may_hold_marker, speaks
from hummock.text.normalise import clean, holds_any, matches, simplified, with_plain_marks

ENCODED: Final = "encoded"
"""Reported with the family of an instruction found in Base64."""


class Family(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Instructions of one purpose; `attacks.toml` says what each field means."""

    name: Annotated[str, Meta(pattern="^[a-z]+(-[a-z]+)*$")]
    source: str
    patterns: tuple[tuple[str, str], ...]
    joined: tuple[str, ...] = ()
    may_be_wish: bool = False


class _Table(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    fragments: dict[str, str]
    families: tuple[Family, ...]


class Phrasing(NamedTuple):
    """One way to word the instructions of a family: a text with none of the words does not match the pattern."""

    family: str
    words: tuple[str, ...]
    pattern: re.Pattern[str]


def _phrasings(table: _Table) -> Iterator[Phrasing]:
    for family in table.families:
        for words, pattern in family.patterns:
            whole = _FRAGMENT.sub(lambda name: table.fragments[name[1]], pattern)
            yield Phrasing(family.name, tuple(words.split(", ")), re.compile(whole, re.DOTALL))


_FRAGMENT: Final = re.compile("%([a-z_]+)%")
_TABLE: Final = msgspec.toml.decode(resources.files("hummock.text").joinpath("attacks.toml").read_bytes(), type=_Table)
FAMILIES: Final = _TABLE.families
PHRASINGS: Final = tuple(_phrasings(_TABLE))
_WORDS: Final = HintWords(word for phrasing in PHRASINGS for word in phrasing.words)


def families_in(texts: Iterable[str]) -> tuple[str, ...]:
    """The names of the families that any of the texts holds, in the order of their table.

    One look over all texts, joined, says which phrasings can be there: of most texts none.
    """
    several = list(texts)
    joined = "\n".join(several)
    seen = as_seen(joined)
    words = _WORDS.within(seen)
    likely = [phrasing for phrasing in PHRASINGS if not words.isdisjoint(phrasing.words)] if words else []
    if not likely and next(spaced_out(seen), None) is None and next(encoded(joined), None) is None:
        return ()
    found: set[str] = set()
    for text in several:
        found |= _in_text(text, likely)
        for said in encoded(text):
            inner = _in_text(said, PHRASINGS)
            if inner:
                found |= inner | {ENCODED}
    return tuple(name for name in (*(family.name for family in FAMILIES), ENCODED) if name in found)


def _in_text(text: str, likely: Sequence[Phrasing]) -> set[str]:
    seen = as_seen(text)
    found = _said_in(seen, likely)
    for words in spaced_out(seen):
        letters = words.replace(" ", "")
        found |= _said_in(words, PHRASINGS) | {
            family.name for family in FAMILIES if any(phrase in letters for phrase in family.joined)
        }
    return found


def _said_in(seen: str, likely: Sequence[Phrasing]) -> set[str]:
    return {one.family for one in likely if next(matches(one.pattern, seen), None) is not None}


_HAN: Final = "\u3400-\u9fff"
# Two "#" and more head a section, and are a marker of some chats.
_COMMENT_SIGNS = re.compile(
    r"(?m)^[ \t]{0,64}(?://+!?|/\*+|\*+/?(?!\*)|#(?!#)!?|--(?!-)|;+|<!--|>+|\"{3}|'{3})[ \t]{0,8}"
)
# Each begins with what is changed, so that the search skips ahead.
_BETWEEN_HAN = re.compile(rf"[ \t\u3000·._|*~-](?<=[{_HAN}].)[ \t\u3000·._|*~-]{{0,2}}(?=[{_HAN}])")
_BROKEN_HAN = re.compile(rf"\n(?<=[{_HAN}]\n)[ \t]{{0,16}}(?=[{_HAN}])")
_BROKEN_LINE = re.compile(r"\n(?<=[a-z,]\n)[ \t]{0,16}(?=[a-z])")
_SINGLE_LETTERS = re.compile(r"[ ._*|·~/-][a-z][ ._*|·~/-]{1,3}[a-z][ ._*|·~/-]")
_SPACED_OUT = re.compile(r"(?<![a-z0-9])[a-z](?:[ ._*|·~/-]{1,3}[a-z]){7,400}(?![a-z0-9])")
_WIDE_GAP = re.compile(r"[ ._*|·~/-]{2,3}")
_GAP = re.compile(r"[ ._*|·~/-]")
_QUOTES: Final = (("\u2018", "'"), ("\u2019", "'"), ("\u201c", '"'), ("\u201d", '"'))

_ENCODED = re.compile(r"[A-Za-z0-9+/_-](?<![\w+/=-].)[A-Za-z0-9+/_-]{23,4095}={0,2}(?![\w+/=-])")
_MOST_ENCODED = 16
"""Runs of a text that are decoded."""


def as_seen(text: str) -> str:
    """The text for patterns: cleaned, folded, in small letters and simplified characters, without signs of comments.

    A sentence that a line's end breaks in two is whole again; other lines stay lines.
    """
    plain = clean(text)
    if not plain.isascii():
        plain = with_plain_marks(plain)
        for curly, straight in _QUOTES:
            plain = plain.replace(curly, straight)
    folded = unicodedata.normalize("NFKC", plain).lower()
    lines = _COMMENT_SIGNS.sub("", folded)
    if lines.isascii():
        return _BROKEN_LINE.sub(" ", lines)
    return _BETWEEN_HAN.sub("", _BROKEN_HAN.sub("", _BROKEN_LINE.sub(" ", simplified(lines))))


def spaced_out(seen: str) -> Iterator[str]:
    """Runs of single letters with something between them, as `as_seen` gives them; a wider gap is one between words."""
    for run in _SPACED_OUT.finditer(seen) if _SINGLE_LETTERS.search(seen) else ():
        yield " ".join(_GAP.sub("", word) for word in _WIDE_GAP.split(run[0]))


def encoded(text: str) -> Iterator[str]:
    """Decode the first runs of Base64 in a text, if they contain text."""
    for place, run in enumerate(_ENCODED.finditer(text)):
        if place == _MOST_ENCODED:
            return
        body = run[0].rstrip("=").replace("-", "+").replace("_", "/")
        try:
            said = b64decode(body + "=" * (-len(body) % 4), validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            continue
        if all(character.isprintable() or character in "\n\t" for character in said):
            yield said


_Order = tuple[tuple[str, ...], re.Pattern[str]]
"""Finds an order to a model: a text with none of the triggers, in lower case, does not match the pattern."""


def _order(triggers: str, pattern: str) -> _Order:
    return tuple(triggers.split("|")), re.compile(pattern, re.IGNORECASE)


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
    """Whether each text gives a model orders or imitates chat markers; lines of code never count as a speaker's."""
    joined = "\n".join(texts)
    cleaned = clean(joined)
    if cleaned != joined:
        texts = [clean(text) for text in texts]
    # Searching a trigger is fast, and most texts have none.
    lowered = cleaned.lower()
    orders = [order for order in _ORDERS if holds_any(order[0], lowered)]
    may_be_marked = may_hold_marker(cleaned)
    return [
        _gives(text, orders) or (not is_code and speaks(text)) or (may_be_marked and has_marker(text))
        for text, is_code in zip(texts, are_code, strict=True)
    ]


def _gives(text: str, orders: Sequence[_Order]) -> bool:
    return any(holds_any(triggers, text.lower()) and pattern.search(text) for triggers, pattern in orders)
