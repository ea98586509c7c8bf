"""Counting the tokens of a text for a language model's budget."""

from __future__ import annotations

import re
from base64 import b64decode
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Final, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from tokenizers import Regex, Tokenizer, models, pre_tokenizers

from hummock.text.normalise import CJK, LAST_IDEOGRAPH
from hummock_kernels.tokens import (
    DIGITS,
    IDEOGRAPHS,
    IN_LONG_WORD,
    KINDS,
    LETTER,
    LETTERS,
    NEWLINE,
    OTHER,
    PUNCTUATION,
    SPACE,
    WIDE,
    WORD,
    token_estimates,
)

_CACHED_TEXTS: Final = 4096
_CACHED_CHARACTERS: Final = 4096

# Tokens of the o200k vocabulary by least squares over Chinese and English prose, Markdown and code; docs/tokens.md says
# how far they are off. The last two were not in the fit, and are chosen high, so that a budget holds.
_WEIGHTS: Final = np.zeros(len(KINDS), np.int64)
"""Thousandths of a token, as `token_estimates` takes them."""
_WEIGHTS[WORD] = 1050
_WEIGHTS[IN_LONG_WORD] = 200
_WEIGHTS[SPACE] = 860
_WEIGHTS[NEWLINE] = 660
_WEIGHTS[PUNCTUATION] = 400
_WEIGHTS[DIGITS] = 1830
_WEIGHTS[IDEOGRAPHS] = 758
_WEIGHTS[WIDE] = 1698
_WEIGHTS[LETTERS] = 750
_WEIGHTS[OTHER] = 2000

_MILLI = 1000
_CHARACTERS: Final = {
    OTHER: r"\S",
    LETTERS: r"[^\W\d_]",
    WIDE: "[\u2010-\u2027\u2030-\u205e\u3000-\u3004\u3008-\u303f\u30fb\uff01-\uff65\uffe0-\uffee]",
    IDEOGRAPHS: f"[{CJK}]",
    DIGITS: "[0-9]",
    PUNCTUATION: r"[!-/:-@\[-`{-~]",
    NEWLINE: r"[\r\n]",
    SPACE: r"[ \t]",
    WORD: "[A-Za-z]",
}
"""What belongs to each kind; a character of several belongs to the last one."""

_CONTRACTION: Final = r"'(?i:[sdmt]|ll|ve|re)"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_BEFORE_LETTERS: Final = r"[^\r\n\p{L}\p{N}]?"
_SPACES: Final = r"\s*[\r\n]+|\s+(?!\S)|\s+"
# The file holds ranks only; how a text is cut into pieces belongs to the vocabulary of its name.
_PIECES: Final[Mapping[str, str]] = {
    "cl100k_base": rf"{_CONTRACTION}|{_BEFORE_LETTERS}\p{{L}}+|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_SPACES}",
    "o200k_base": (
        rf"{_BEFORE_LETTERS}{_UPPER}*{_LOWER}+(?:{_CONTRACTION})?|{_BEFORE_LETTERS}{_UPPER}+{_LOWER}*(?:{_CONTRACTION})?"
        rf"|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_SPACES}"
    ),
}
VOCABULARIES: Final = tuple(_PIECES)
"""The names that a file may have, without its ending."""


class TokenCounter(Protocol):
    """Says how many tokens a language model makes of a text. Safe to call from several threads."""

    @property
    def name(self) -> str:
        """Name of the counter, for people: "estimate" or the name of a file."""

    @property
    def is_stored(self) -> bool:
        """Whether the counts that memories were stored with are its own."""

    def count(self, text: str) -> int:
        """The number of tokens, 0 for the empty text."""

    def counts(self, texts: Sequence[str]) -> list[int]:
        """The number of tokens of each text, in order; sooner than one by one."""


def counter_of(file: Path | None) -> TokenCounter:
    """The counter of a vocabulary's file; the estimate where there is none.

    Raises: what `TokenizerTokens.from_file` raises.
    """
    return EstimatedTokens() if file is None else CountedOnce(TokenizerTokens.from_file(file))


class EstimatedTokens:
    """Estimates from the classes of characters: no file needed, linear time; allow a reserve of a tenth."""

    name = "estimate"
    is_stored = True

    def count(self, text: str) -> int:
        """The estimate, rounded up."""
        return self.counts([text])[0]

    def counts(self, texts: Sequence[str]) -> list[int]:
        """The estimate of each text, rounded up."""
        codes = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), "<u4")
        ends = np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)))
        return [-(-estimate // _MILLI) for estimate in token_estimates(codes, ends, _kinds(), _WEIGHTS).tolist()]


@cache
def _kinds() -> NDArray[np.uint8]:
    """The kind of each character; beyond the ideographs all are OTHER."""
    every = "".join(map(chr, range(LAST_IDEOGRAPH + 1)))
    kinds = np.zeros(len(every), np.uint8)
    for kind, characters in _CHARACTERS.items():
        for run in re.finditer(f"{characters}+", every):
            kinds[run.start() : run.end()] = kind
    for run in re.finditer(f"{_CHARACTERS[LETTERS]}+", every):
        kinds[run.start() : run.end()] |= LETTER
    return kinds


class CountedOnce:
    """Caches the counts of recent texts: the memories of one turn are mostly those of the turn before."""

    def __init__(self, counter: TokenCounter) -> None:
        self.name = counter.name
        self.is_stored = counter.is_stored
        self._counter = counter
        self._counts: OrderedDict[str, int] = OrderedDict()
        self._lock = Lock()

    def count(self, text: str) -> int:
        """Number of tokens in the text."""
        return self.counts([text])[0]

    def counts(self, texts: Sequence[str]) -> list[int]:
        """Number of tokens in each text."""
        with self._lock:
            known = {text: count for text in texts if (count := self._counts.get(text)) is not None}
        missing = [text for text in dict.fromkeys(texts) if text not in known]
        known.update(zip(missing, self._counter.counts(missing), strict=True))
        self._put({text: count for text, count in known.items() if len(text) <= _CACHED_CHARACTERS})
        return [known[text] for text in texts]

    def _put(self, known: Mapping[str, int]) -> None:
        with self._lock:
            for text, count in known.items():
                self._counts[text] = count
                self._counts.move_to_end(text)
            while len(self._counts) > _CACHED_TEXTS:
                self._counts.popitem(last=False)


class TokenizerTokens:
    """Counts exactly, by the file of a vocabulary; the model's special tokens are not counted."""

    is_stored = False

    def __init__(self, tokenizer: Tokenizer, name: str) -> None:
        self.name = name
        # Files often say to cut or fill to the window of an embedding model.
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self._tokenizer = tokenizer

    @classmethod
    def from_file(cls, path: Path) -> Self:
        """Read a `tokenizer.json`, or a `.tiktoken` file that is named for its vocabulary.

        Raises: OSError: The file cannot be read. ValueError: It is not a tokenizer.
        """
        if path.suffix == ".tiktoken":
            return cls(read_tiktoken(path), path.name)
        serialised = path.read_text("utf-8")
        try:
            tokenizer = Tokenizer.from_str(serialised)
        except Exception as error:  # the library raises nothing more specific
            raise ValueError(f"{path} is not a tokenizer.json: {error}") from error
        return cls(tokenizer, path.name)

    def count(self, text: str) -> int:
        """The number of tokens."""
        (count,) = self.counts([text])
        return count

    def counts(self, texts: Sequence[str]) -> list[int]:
        """The number of tokens of each text; on all cores."""
        return [len(each) for each in self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)]


def read_tiktoken(path: Path) -> Tokenizer:
    """The tokenizer of a file, without special tokens; takes seconds. The name is one of VOCABULARIES.

    Raises: OSError, ValueError, as `TokenizerTokens.from_file`.
    """
    if path.stem not in _PIECES:
        raise ValueError(f"{path} must be named for its vocabulary: {', '.join(VOCABULARIES)}")
    try:
        ranks = dict(_ranks(path.read_bytes()))
    except ValueError as error:
        raise ValueError(f"{path} is not a tiktoken file: {error}") from error
    written = {token: "".join(map(_BYTE_NAMES.__getitem__, token)) for token in ranks}
    merges = [(written[left], written[right]) for left, right in _merges(ranks)]
    vocabulary = {written[token]: rank for token, rank in ranks.items()}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges, ignore_merges=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_PIECES[path.stem]), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    return tokenizer


def _ranks(content: bytes) -> Iterator[tuple[bytes, int]]:
    for line in content.splitlines():
        token, _, rank = line.partition(b" ")
        yield b64decode(token, validate=True), int(rank)


def _merges(ranks: Mapping[bytes, int]) -> list[tuple[bytes, bytes]]:
    """Every pair whose parts and whole are tokens, the whole of lowest rank first; of one whole the shortest left."""
    pairs = [
        (rank, token[:place], token[place:])
        for token, rank in ranks.items()
        for place in range(1, len(token))
        if token[:place] in ranks and token[place:] in ranks
    ]
    return [(left, right) for _, left, right in sorted(pairs, key=lambda pair: (pair[0], len(pair[1])))]


def _byte_names() -> list[str]:
    """The character that the library writes for each byte: itself where it can be seen, else one from 256 on."""
    seen = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    unseen = iter(range(0x100, 0x200))
    return [chr(byte if byte in seen else next(unseen)) for byte in range(0x100)]


_BYTE_NAMES: Final = _byte_names()
