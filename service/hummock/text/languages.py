"""How much of a text is Chinese, and whether it is in a language that models of Chinese and English do not know."""

from __future__ import annotations

import re
from typing import Final

from hummock.text.normalise import is_han, known_share, words_by_script

MOSTLY: Final = 0.5
"""Share of Chinese in a text from which it counts as Chinese."""

_HAN: Final = frozenset({"han"})

MOST_READ: Final = 512
"""Characters of a text that are looked at."""

LEAST_WORDS: Final = 0.2
"""Share of a text's words from which function words of another language count: English borrows one at a time."""

_OTHER_SCRIPT: Final = re.compile(
    "[\u0370-\u03ff\u0400-\u052f\u0590-\u06ff\u0900-\u0dff\u0e00-\u0e7f\u1100-\u11ff\u3041-\u30fa\uac00-\ud7a3]"
)
"""Greek, Cyrillic, Hebrew and Arabic, Indian scripts, Thai, Hangul and Kana."""

_LEAST_LETTERS: Final = 2
_WORD: Final = re.compile(r"[^\W\d_]+")
_ENGLISH: Final = """
the a an is are was were be been of to and or in on at for from with without by as that this these those it its he she
we you they i my your our their his her what which who whom when where why how do does did can could should would will
not no yes if there here than then so but into over under about after before all any some has have had
"""
_GERMAN: Final = """
der das den dem des ein eine einen einem einer und oder nicht ist sind wird werden wurde mit für auf von zu zum zur bei
aus nach über wie wo wann warum wer welche welchem welcher welches ich wir ihr mein meine unser unsere kann muss darf im
vom um es sich auch noch nur
"""
_FRENCH: Final = """
le la les un une du de des et ou est sont dans sur pour par avec sans qui que quoi quel quelle quels quelles où quand
comment combien pourquoi ce cette ces il elle nous vous ils elles je mon ma mes notre nos votre au aux se ne pas plus à
"""
_SPANISH_PORTUGUESE_ITALIAN: Final = """
el los las unos unas del es son está están en con sin por para que qué cuál cuáles cuándo cuánto cuántas cuántos dónde
cómo quién este esta estos estas mi mis nuestro nuestra su sus al se no lo le não são uma os il gli della delle dei
degli nel nella alla dalla sono di che chi quando dove come perché
"""
_DUTCH_POLISH_TURKISH: Final = """
het een van naar voor niet zijn wordt waar wanneer hoe wie welke na się nie jest są jak gdzie kiedy dla przez ve bir bu
için nasıl nerede ne değil ile
"""
_ENGLISH_WORDS: Final = frozenset(_ENGLISH.split())
_OTHER_WORDS: Final = (
    frozenset(f"{_GERMAN} {_FRENCH} {_SPANISH_PORTUGUESE_ITALIAN} {_DUTCH_POLISH_TURKISH}".split()) - _ENGLISH_WORDS
)


def han_share(text: str) -> float:
    """Share of Chinese in a text, in [0, 1]; 0 in one of other scripts or none, as calibration takes it for Latin."""
    return known_share(words_by_script(text), _HAN) if is_han(text) else 0.0


def is_of_another(text: str) -> bool:
    """Whether a text is neither Chinese nor English; False if nothing in it tells.

    A script of another language tells from its second letter; Chinese characters without one tell Chinese. In Latin
    script function words tell: those of other languages are LEAST_WORDS of all words, and more than the English ones.
    """
    read = text[:MOST_READ]
    if not read.isascii() and len(_OTHER_SCRIPT.findall(read)) >= _LEAST_LETTERS:
        return True
    if is_han(read):
        return False
    words = _WORD.findall(read.lower())
    others = sum([word in _OTHER_WORDS for word in words])
    return others >= LEAST_WORDS * len(words) > 0 and others > sum([word in _ENGLISH_WORDS for word in words])
