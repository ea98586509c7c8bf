"""Terms of texts for the keyword index.

Runs of Chinese, Japanese, Korean and of scripts without spaces (Thai) become characters and overlapping pairs,
traditional characters in their simplified forms; identifiers become themselves and their parts, words become English
stems, signs and emoji stay as they are. Memories and queries are analysed by the same rules.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Callable, Sequence
from typing import Final

import Stemmer

from hummock.text.normalise import nfkc, simplified
from hummock.text.signs import MARKS, PAIRED, SIGN, plain, without_skin_tones
from hummock_kernels.analyzer import MAX_NAME_CHARACTERS, MAX_STEM_CHARACTERS, MIN_NAME_CHARACTERS, MIN_STEM_CHARACTERS

ANALYZER_VERSION: Final = 7
"""Increased when the same memory gets other terms, names, traits, days or files: `store/write/reanalyse.py` computes
those of earlier versions again."""

MAX_TERM_CHARACTERS: Final = 64

_DIGEST_BYTES = 8

_LETTERS = rf"[^\W_{PAIRED}]+(?:[{MARKS}]+[^\W_{PAIRED}]*)*"

# A word may be an identifier: parts joined by underscores or single hyphens. An apostrophe belongs to a contraction
# only, as code is full of quotes.
TOKEN: Final = re.compile(
    rf"(?P<cjk>[{PAIRED}]+)|(?P<sign>{SIGN})"
    rf"|(?P<word>{_LETTERS}(?:(?:_+|-){_LETTERS})*)(?:['’](?P<tail>(?i:s|t|re|ve|ll|d|m))(?![^\W{PAIRED}]|[{MARKS}]))?"
)
"""Finds words, signs and runs in a text from `signs.plain`."""

_IDENTIFIER: Final = re.compile(r"[A-Za-z0-9]+(?:(?:_+|-)[A-Za-z0-9]+)*")
_ASCII_TOKEN: Final = re.compile(
    r"(?P<cjk>(?!))|(?P<sign>(?<!\w)(?:[A-Za-z]#|[Cc]\+\+)(?![A-Za-z_+#]))"
    rf"|(?P<word>{_IDENTIFIER.pattern})(?:'(?P<tail>(?i:s|t|re|ve|ll|d|m))(?!\w))?"
)
"""The matches of TOKEN in a text of ASCII characters, without looking through its wide classes."""

_NAME = re.compile(r"[A-Za-z0-9_]+")
_TELLING = re.compile(r"[A-Z_]")
_LETTER_OR_DIGIT = re.compile(r"[A-Za-z0-9]")
# An acronym's plural (IDs) is one part.
_ASCII_PART = re.compile(r"[A-Z]{2,}+s(?![A-Za-z])|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_JOINTS = ("", "_", "-")
_BEFORE_NUMBER = re.compile(r"[_-](?=[0-9])")
_PLAIN_WORD = re.compile(rf"[A-Z]?[a-z]{{{MIN_STEM_CHARACTERS},{MAX_STEM_CHARACTERS - 1}}}")
"""An ASCII word that has a single part and is stemmed."""
_BARE_WORD = re.compile(rf"[a-z]{{1,{MIN_STEM_CHARACTERS - 1}}}|[0-9]{{1,{MAX_TERM_CHARACTERS}}}")
"""A word that is a term as it stands."""
_PLAIN_WORDS = re.compile(rf"(?:{_PLAIN_WORD.pattern}\n)*")

# Over the shape of a word: u upper case, l lower case, d digit, x other letters, m a mark of the letter before it.
_SHAPE_PART = re.compile(r"(?:um*+)+(?!l)|(?:um*)?(?:lm*)+|(?:dm*)+|(?:xm*)+")


def document_terms(text: str) -> list[str]:
    """The terms of a stored text, in its order, repeats included: every CJK character and every pair of neighbours."""
    normal = plain(text)
    return [term for term, _ in words_of(normal, simplified(normal), _characters_and_pairs)]


def query_terms(text: str) -> list[str]:
    """Return the terms to search, in order, with repeats: CJK pairs, a character only if it has no neighbour."""
    return [term for term, _ in query_words(text)]


def query_words(text: str) -> list[tuple[str, str]]:
    """The terms of `query_terms`, each with the word it was made of, in NFKC: "pars" with "parsing"."""
    normal = plain(text)
    return words_of(normal, simplified(normal))


def first_terms(words: Sequence[str]) -> list[str]:
    """The first of the `query_terms` of each word, in order; fast for many plain words in one call.

    Raises: IndexError: A word has no term.
    """
    stems: list[str] = _local.stemmer.stemWords([word.lower() for word in words])
    if _PLAIN_WORDS.fullmatch("".join([f"{word}\n" for word in words])):
        return stems
    return [stem if _PLAIN_WORD.fullmatch(word) else _first_term(word) for word, stem in zip(words, stems, strict=True)]


def _first_term(word: str) -> str:
    if _IDENTIFIER.fullmatch(word) and len(_ASCII_PART.findall(word)) > 1:
        return bounded(word.lower())
    return query_terms(word)[0]


def other_spellings(word: str) -> list[str]:
    """Return the terms of a name in camel case, snake case and kebab case, without its own.

    A number is a part of its own, or belongs to the part before it. Of one part, which is stemmed, it is the word as it
    stands: so is a name in camel case of these letters. Only names in ASCII have other spellings.
    """
    if not _IDENTIFIER.fullmatch(word):
        return []
    parts = [part.lower() for part in _ASCII_PART.findall(word)]
    if len(parts) == 1:
        own, joined = stem(parts[0]), [parts[0]]
    else:
        own = bounded(word.lower())
        joined = [joint.join(parts) for joint in _JOINTS]
        joined += [_BEFORE_NUMBER.sub("", name) for name in joined[1:]]
    return [term for term in dict.fromkeys(map(bounded, joined)) if term != own]


def exact_names(text: str) -> list[str]:
    """Return the names of code in a text as written, in order, repeats included.

    A name is a run of 2 to 64 ASCII letters, digits and underscores with a capital or an underscore, which its terms do
    not preserve.
    """
    return [word for word in _NAME.findall(text) if _is_name(word)]


def _is_name(word: str) -> bool:
    is_long_enough = MIN_NAME_CHARACTERS <= len(word) <= MAX_NAME_CHARACTERS
    return is_long_enough and _TELLING.search(word) is not None and _LETTER_OR_DIGIT.search(word) is not None


def _characters_and_pairs(run: str) -> list[str]:
    return [run[at : at + size] for at in range(len(run)) for size in (1, 2) if at + size <= len(run)]


def pairs(run: str) -> list[str]:
    """The `query_terms` of a run of simplified CJK characters: pairs of neighbours, or a lone character."""
    return [run[at : at + 2] for at in range(len(run) - 1)] if len(run) > 1 else [run] * len(run)


def words_of(normal: str, simple: str, split_cjk: Callable[[str], list[str]] = pairs) -> list[tuple[str, str]]:
    """The `query_words` of a text from `signs.plain`, given as it is and in simplified characters.

    `split_cjk` gives the terms of a run of CJK characters.
    """
    stems, stem_of = _Stems(), _local.stemmer.stemWord
    terms: list[tuple[str, str]] = []
    for token in (_ASCII_TOKEN if normal.isascii() else TOKEN).finditer(normal):
        cjk, sign, word, tail = token.groups()
        if cjk:
            written = split_cjk(cjk)
            run = simple[token.start() : token.end()]
            terms += zip(written if run == cjk else split_cjk(run), written, strict=True)
        elif sign:
            terms += _sign_terms(sign)
        elif not tail and _PLAIN_WORD.fullmatch(word):
            terms.append((stem_of(word.lower()), word))
        elif not tail and _BARE_WORD.fullmatch(word):
            terms.append((word, word))
        else:
            terms += _word_terms(word, tail, stems)
    return terms


def _sign_terms(sign: str) -> list[tuple[str, str]]:
    """The sign, and without its skin tone if it has one."""
    toneless = without_skin_tones(sign)
    forms = [_fold(sign)] if toneless in ("", sign) else [_fold(sign), toneless]
    return [(bounded(form), sign) for form in forms]


def _word_terms(word: str, tail: str | None, stems: _Stems) -> list[tuple[str, str]]:
    parts = _parts(word)
    if len(parts) > 1:
        return [(bounded(_fold(word)), word), *[(stems[part], part) for part in parts]]
    if tail:
        parts = [f"{word}'{tail}"]
    return [(stems[part], part) for part in parts]


def _parts(word: str) -> list[str]:
    """The words and numbers that an identifier is made of."""
    if word.isascii():
        return _ASCII_PART.findall(word)
    shape = "".join(map(_shape, word))
    return [word[part.start() : part.end()] for part in _SHAPE_PART.finditer(shape)]


def _shape(character: str) -> str:
    if character in "_-":
        return "-"
    if character.isdecimal():
        return "d"
    if not character.isalnum():
        return "m"
    return "u" if character.isupper() else "l" if character.islower() else "x"


def _fold(word: str) -> str:
    return word.lower() if word.isascii() else nfkc(word.casefold())


def stem(word: str) -> str:
    """The English stem of a folded word of ASCII characters."""
    stemmed: str = _local.stemmer.stemWord(word)
    return stemmed


def bounded(term: str) -> str:
    """Return the term, or its beginning and a digest if it is too long."""
    if len(term) <= MAX_TERM_CHARACTERS:
        return term
    digest = hashlib.blake2b(term.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).hexdigest()
    return f"{term[: MAX_TERM_CHARACTERS - len(digest) - 1]}~{digest}"


class _Stems(dict[str, str]):
    """Term of each word or number of one text, made on first use."""

    def __missing__(self, part: str) -> str:
        folded = _fold(part)
        if folded.isascii() and not folded.isdecimal() and MIN_STEM_CHARACTERS <= len(folded) <= MAX_STEM_CHARACTERS:
            folded = stem(folded)
        self[part] = term = bounded(folded)
        return term


class _Local(threading.local):
    """A stemmer for each thread: it keeps a cache of its own and is not safe to share."""

    def __init__(self) -> None:
        self.stemmer = Stemmer.Stemmer("english")


_local = _Local()
