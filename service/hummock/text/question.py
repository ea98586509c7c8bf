"""A question, folded once for everything that reads it."""

from __future__ import annotations

import re
from functools import cached_property, lru_cache
from typing import Final

from hummock.text.analyzer import words_of
from hummock.text.normalise import nfkc, simplified, words_by_script
from hummock.text.signs import has_sign, without_ignored

MAX_OPENING: Final = 512
"""Characters at the start of a text that are searched for times and for what it asks for."""

_HINT: Final = re.compile(r"[a-z]+|[^\W_]")
_KEPT: Final = 32
_LONGEST_KEPT: Final = 1024


class Question:
    """The text of a query in the forms that a recall reads. Immutable to its callers.

    Attributes:
        text: As written.
        nfkc: In NFKC.
        simplified: `nfkc` in simplified characters, of the same length.
        opening: `nfkc` of the first MAX_OPENING characters of the text.
        simple_opening: `opening` in simplified characters.
        hints: Those of `simple_opening`, as `hints_of` gives them.
        scripts: Number of words in each script, as `words_by_script` counts.
        is_han: Whether the text has a Chinese character.
        han_share: Share of words in Chinese characters, in [0, 1].
        has_sign: Whether it has a symbol beyond ASCII, an emoji or a keycap.
    """

    def __init__(self, text: str) -> None:
        self.text = self.nfkc = self.simplified = text
        self.has_sign = False
        if not text.isascii():
            self.nfkc = nfkc(text)
            self.simplified = simplified(self.nfkc)
            self.has_sign = has_sign(text)
        self.opening, self.simple_opening = self.nfkc, self.simplified
        if len(text) > MAX_OPENING:
            self.opening = nfkc(text[:MAX_OPENING])
            self.simple_opening = simplified(self.opening)
        self.hints = hints_of(self.simple_opening)
        self.scripts = words_by_script(text)
        han, latin = self.scripts["han"], self.scripts["latin"]
        self.is_han = han > 0
        self.han_share = han / (han + latin) if self.is_han else 0.0

    @cached_property
    def is_of_signs(self) -> bool:
        """Whether the text has terms, and each has a sign."""
        if self.text.isascii() or not self.words:
            return False
        return all(map(has_sign, [term for term, _ in self.words]))

    @cached_property
    def words(self) -> tuple[tuple[str, str], ...]:
        """The terms of the text, each with its word, as `analyzer.query_words` gives them."""
        bare = self.text if self.text.isascii() else without_ignored(self.text)
        if bare == self.text:
            return tuple(words_of(self.nfkc, self.simplified))
        normal = nfkc(bare)
        return tuple(words_of(normal, simplified(normal)))


def hints_of(text: str) -> frozenset[str]:
    """The English words of a text in small letters, and each other letter and digit.

    Tables of words need one of some of them: two sets tell soon that a text has none.
    """
    return frozenset(_HINT.findall(lowered(text)))


def lowered(text: str) -> str:
    """The text in small letters, with an i for all that `re.IGNORECASE` takes for one.

    A pattern of small letters searches it several times as fast as one that ignores case searches the text.
    """
    small = text.lower()
    return small if small.isascii() else small.replace("ı", "i").replace("i\u0307", "i")


def question_of(text: str) -> Question:
    """The question of a text; one of usual length is kept, for the stages and threads that read it next."""
    return _kept(text) if len(text) <= _LONGEST_KEPT else Question(text)


@lru_cache(_KEPT)
def _kept(text: str) -> Question:
    return Question(text)
