"""Exact counters: of real models where they are, and always two that are made here of this repository."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from hummock.text.tokens import CountedOnce, TokenCounter, TokenizerTokens
from tests.shared import BGE_ZH, MINILM, find_tokenizer

_ROOT = Path(__file__).parents[2]
_VOCABULARY = 1200


class GrowingCounter:
    """Counts more for a text than for its parts."""

    name = "growing"
    is_stored = False

    def count(self, text: str) -> int:
        return len(text) + (len(text) // 100) ** 2

    def counts(self, texts: Sequence[str]) -> list[int]:
        return [self.count(text) for text in texts]


@cache
def trained() -> Tokenizer:
    """A byte-level vocabulary of the words of some files, Chinese, English and code."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=_VOCABULARY, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    files = [_ROOT / "README.md", *sorted((_ROOT / "tests/golden/render").iterdir())]
    tokenizer.train_from_iterator((file.read_text("utf-8") for file in files), trainer)
    return tokenizer


def ranks() -> dict[bytes, int]:
    """The tokens of that vocabulary as bytes, by rank."""
    names = {name: byte for byte, name in enumerate(_byte_names())}
    return {bytes(names[letter] for letter in token): rank for token, rank in trained().get_vocab().items()}


def tiktoken_file(directory: Path, name: str = "o200k_base.tiktoken") -> Path:
    """Writes the vocabulary of `trained` as a `.tiktoken` file and returns its path."""
    path = directory / name
    ordered = sorted(ranks().items(), key=lambda each: each[1])
    path.write_bytes(b"".join(b64encode(token) + f" {rank}\n".encode() for token, rank in ordered))
    return path


def exact_counters(directory: Path) -> list[TokenCounter]:
    """Token counters, at least two; the directory takes their files."""
    file = directory / "tokenizer.json"
    trained().save(str(file))
    real = [found for found in map(find_tokenizer, (BGE_ZH, MINILM)) if found]
    return [CountedOnce(TokenizerTokens.from_file(each)) for each in (file, tiktoken_file(directory), *real)]


def _byte_names() -> list[str]:
    """The characters of the library for bytes, asked of it one by one."""
    alphabet = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    seen = {}
    for character in map(chr, range(0x80)):
        ((name, _),) = alphabet.pre_tokenize_str(character)
        seen[ord(character)] = name
    # Beyond ASCII a character is two bytes: the second of U+0080…U+00BF and the first of each.
    for point in range(0x80, 0x800):
        encoded = chr(point).encode()
        ((name, _),) = alphabet.pre_tokenize_str(chr(point))
        seen.update(zip(encoded, name, strict=True))
    for point in (*range(0x800, 0xD800, 0x400), *range(0xE000, 0x10000, 0x400), *range(0x10000, 0x110000, 0x4000)):
        ((name, _),) = alphabet.pre_tokenize_str(chr(point))
        seen.update(zip(chr(point).encode(), name, strict=True))
    # Bytes that no text holds have names too.
    spare = iter(sorted(set(pre_tokenizers.ByteLevel.alphabet()) - set(seen.values())))
    return [seen[byte] if byte in seen else next(spare) for byte in range(0x100)]
