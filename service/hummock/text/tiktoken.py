"""Reading a `.tiktoken` file: the merge ranks of an OpenAI vocabulary, as a tokenizer of the `tokenizers` library."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from tokenizers import Regex, Tokenizer, models, pre_tokenizers

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


def read_tiktoken(path: Path) -> Tokenizer:
    """The tokenizer of a file, without special tokens; takes seconds.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is no such file, or its name is not one of VOCABULARIES.
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
