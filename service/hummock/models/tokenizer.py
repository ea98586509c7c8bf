"""Tokenizers: text in, the numbers of its tokens out, and where each token lies in the text."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import sentencepiece
from numpy.typing import NDArray
from tokenizers import Encoding
from tokenizers import Tokenizer as TokenizerFile
from tokenizers.normalizers import BertNormalizer

from hummock.models.description import PIECES_FILE, ModelDescription
from hummock.models.errors import ModelGraphUnsupported

Places = tuple[list[tuple[int, int]], list[int | None]]
"""Start and end of each token in characters, and the number of its word."""

_TOKENS_AT_ONCE = 1 << 14
_WORD_START = "▁"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tokens:
    """A text's tokens, with the special ones around them.

    Attributes:
        ids: Their numbers, (n,) int64.
        is_special: Which of them are special, (n,) bool.
        starts: Where each begins in the text, in characters, (n,) int64; 0 for special ones.
    """

    ids: NDArray[np.int64]
    is_special: NDArray[np.bool_]
    starts: NDArray[np.int64]


class Tokenizer(Protocol):
    """Cuts and pads nothing, and takes every text as data. Safe to call from several threads.

    Its methods raise TypeError for a lone surrogate, which is no Unicode text.
    """

    @property
    def special_tokens(self) -> int:
        """Number of special tokens around one text."""

    def encode(self, text: str) -> Tokens:
        """The text's tokens."""

    def places(self, text: str) -> Places:
        """Where the text's own tokens lie in it."""


def tokenizer_of(model: ModelDescription, directory: Path) -> Tokenizer:
    """The tokenizer in the model's directory. Raises: ModelGraphUnsupported: Its file is none."""
    path = directory / model.tokenizer_file
    if model.tokenizer_file == PIECES_FILE:
        return SentencePieces(model.name, path)
    return TokenizersFile(model.name, path, lowercase=model.lowercase)


class TokenizersFile:
    """A file of the package `tokenizers`."""

    def __init__(self, name: str, path: Path, *, lowercase: bool) -> None:
        """Open the file. Raises: ModelGraphUnsupported: It is no tokenizer file."""
        self._tokenizer = open_tokenizer(name, path)
        if lowercase:
            self._tokenizer.normalizer = BertNormalizer(
                clean_text=True, handle_chinese_chars=True, strip_accents=True, lowercase=True
            )

    @property
    def special_tokens(self) -> int:
        """Number of special tokens around one text."""
        return self._tokenizer.num_special_tokens_to_add(is_pair=False)

    def encode(self, text: str) -> Tokens:
        """The text's tokens."""
        encoding = self._encode(text, with_special=True)
        return Tokens(
            ids=np.asarray(encoding.ids, np.int64),
            is_special=np.asarray(encoding.special_tokens_mask, np.bool_),
            starts=np.asarray([start for start, _ in encoding.offsets], np.int64),
        )

    def places(self, text: str) -> Places:
        """Where the text's own tokens lie in it; in parts, as one list for 256 KiB would hold the GIL for 90 ms."""
        encoding = self._encode(text, with_special=False)
        encoding.truncate(_TOKENS_AT_ONCE)
        offsets: list[tuple[int, int]] = []
        words: list[int | None] = []
        for part in (encoding, *encoding.overflowing):
            offsets += part.offsets
            words += part.word_ids
        return offsets, words

    def _encode(self, text: str, *, with_special: bool) -> Encoding:
        # `encode` keeps the GIL, for half a second at 256 KiB; `encode_batch` releases it.
        (encoding,) = self._tokenizer.encode_batch([text], add_special_tokens=with_special)
        return encoding


class SentencePieces:
    """A SentencePiece model, between its marks of beginning and end.

    The package `sentencepiece` keeps 128,000 pieces in 30 MB, where `tokenizers` takes 123, and is four times as fast.
    """

    special_tokens = 2

    def __init__(self, name: str, path: Path) -> None:
        """Open the model. Raises: ModelGraphUnsupported: It is no SentencePiece model."""
        try:
            self._pieces = sentencepiece.SentencePieceProcessor(model_file=str(path))
        except (RuntimeError, OSError) as error:
            raise ModelGraphUnsupported(f"model {name}: {path} is no SentencePiece model: {error}") from error
        self._around = self._pieces.bos_id(), self._pieces.eos_id()

    def encode(self, text: str) -> Tokens:
        """The text's tokens; where they begin is not told."""
        first, last = self._around
        ids = np.array([first, *self._pieces.encode(_checked(text)), last], np.int64)
        is_special = np.zeros(len(ids), np.bool_)
        is_special[[0, -1]] = True
        return Tokens(ids=ids, is_special=is_special, starts=np.zeros(len(ids), np.int64))

    def places(self, text: str) -> Places:
        """Where the text's own tokens lie in it."""
        found = self._pieces.encode(_checked(text), return_type="offset_mapping")
        word, words = -1, list[int | None]()
        for piece in found["pieces"]:
            word += piece.startswith(_WORD_START) or word < 0
            words.append(word)
        return found["offsets"], words


def _checked(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise TypeError("the text holds a lone surrogate") from error
    return text


def open_tokenizer(name: str, path: Path) -> TokenizerFile:
    """The tokenizer in a file of the package `tokenizers`, which cuts and pads nothing and takes every text as data.

    Raises: ModelGraphUnsupported: It is no tokenizer file.
    """
    try:
        tokenizer = TokenizerFile.from_file(str(path))
    except Exception as error:  # The library raises bare Exception.
        raise ModelGraphUnsupported(f"model {name}: {path} is no tokenizer file: {error}") from error
    # Files carry settings of their own: all-MiniLM's cuts and pads to 128.
    tokenizer.no_truncation()
    tokenizer.no_padding()
    # A stored text that says "[SEP]" is data, not a separator.
    tokenizer.encode_special_tokens = True
    return tokenizer
