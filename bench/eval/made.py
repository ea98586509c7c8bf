"""Questions that are made by rule out of the texts of a set, and which half of a set a question is in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b
from typing import TypeVar

MOST_HOLDERS = 3
"""A name or word that more memories hold says too little about which one is meant."""

_HAN = r"\u3400-\u4dbf\u4e00-\u9fff"
_TWO_HAN = re.compile(f"[{_HAN}]{{2}}")
_SET_APART = re.compile(f"(?<=[、《“「『‘])[{_HAN}]{{2}}(?=[、》”」』’])")
_FUNCTION = re.compile(r"\bdef\s+([A-Za-z_]\w*)\s*\(", re.ASCII)
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_SHORTEST_NAME = 3


class Half(StrEnum):
    """Half of the questions that a figure covers."""

    TUNE = "tune"
    REPORT = "report"
    ALL = "all"


def draw(text: str) -> int:
    """A number in [0, 2**64) that depends on the text alone."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


def half_of(question_id: str) -> Half:
    """TUNE where the lowest bit of the id's BLAKE2b (8 bytes, little-endian) is 0. Parallel questions go together."""
    return Half.REPORT if draw(question_id) & 1 else Half.TUNE


def drawn(ids: Iterable[str], most: int | None) -> frozenset[str]:
    """At most so many of the ids, always the same ones: those with the smallest hashes. None takes all."""
    return frozenset(sorted(ids, key=lambda each: (draw(f"drawn:{each}"), each))[:most])


Choice = TypeVar("Choice")


@dataclass(slots=True, kw_only=True)
class Draws:
    """Draws one after the other: the same ones for the same name, whatever the version of Python."""

    name: str
    count: int = 0

    def one(self, choices: Sequence[Choice]) -> Choice:
        """One of them; there is at least one."""
        self.count += 1
        return choices[draw(f"{self.name} {self.count}") % len(choices)]

    def happens(self, share: float) -> bool:
        """True in that share of the draws."""
        self.count += 1
        return draw(f"{self.name} {self.count}") < share * 2**64


def function_names(codes: Mapping[str, str], most: int) -> dict[str, frozenset[str]]:
    """Names of functions, and the ids of all codes that hold each: at most `most` names, always the same ones.

    A name is that of a code's first function, of 3 characters or more, and at most MOST_HOLDERS codes hold it as a
    whole name in its own case.

    Args:
        codes: Source code by id.
        most: Upper bound on the names.
    """
    holders: dict[str, set[str]] = {}
    for code_id, code in codes.items():
        for name in set(_NAME.findall(code)):
            holders.setdefault(name, set()).add(code_id)
    first = (found[1] for code in codes.values() if (found := _FUNCTION.search(code)))
    rare = {name for name in first if len(name) >= _SHORTEST_NAME and len(holders[name]) <= MOST_HOLDERS}
    return {name: frozenset(holders[name]) for name in sorted(drawn(rare, most))}


def two_character_words(texts: Mapping[str, str], answers: Iterable[str], most: int) -> dict[str, frozenset[str]]:
    """Chinese words of two characters, and the ids of all texts that hold each: at most `most`, always the same.

    What is certainly a word without a dictionary: an answer of two characters, or two characters that marks of
    quotation or enumeration set apart on both sides. At most MOST_HOLDERS texts hold it.

    Args:
        texts: Chinese texts by id.
        answers: Answers to the questions of the set.
        most: Upper bound on the words.
    """
    words = {answer for answer in answers if _TWO_HAN.fullmatch(answer)}
    words |= {word for text in texts.values() for word in _SET_APART.findall(text)}
    holders = {word: frozenset(each for each, text in texts.items() if word in text) for word in words}
    rare = {word for word, ids in holders.items() if 1 <= len(ids) <= MOST_HOLDERS}
    return {word: holders[word] for word in sorted(drawn(rare, most))}


def mixed_sentence(chinese: str, english: str) -> str:
    """The first half of the characters of one, and the second half of the words of the other."""
    words = english.split()
    return f"{chinese[: (len(chinese) + 1) // 2]} {' '.join(words[len(words) // 2 :])}"


def is_chinese_of_two(text_id: str) -> bool:
    """True if the Chinese version of a parallel text is stored; that is every other id, drawn by its hash."""
    return draw(f"language:{text_id}") & 1 == 0
