"""Estimated token counts of texts for language models, from runs of characters of one kind."""

import numpy as np

from hummock_kernels._jit import helper, kernel
from hummock_kernels._types import I64_1D, OUT_I64_1D, U8_1D, U32_1D, Flags, Indices, Words

# What a character is to the estimate. A letter to Unicode may be a WORD's or CJK as well: then LETTER is added.
KINDS = range(10)
NOTHING, WORD, SPACE, NEWLINE, PUNCTUATION, DIGITS, IDEOGRAPHS, WIDE, LETTERS, OTHER = KINDS
KIND = 15
LETTER = 16

WORD_CHARACTERS = 6
# NOTHING has no weight of its own: its entry is the weight of each character of a word beyond the sixth.
IN_LONG_WORD = NOTHING


@helper()
def _kind(code: np.uint32, kinds: Flags) -> np.uint8:
    return kinds[code] if code < kinds.shape[0] else np.uint8(OTHER)


@helper()
def _weight(kind: int, length: int, weights: Indices) -> int:
    """Weight of a run, in thousandths of a token."""
    if kind == NOTHING:
        return 0
    if kind == WORD:
        return int(weights[WORD]) + int(weights[IN_LONG_WORD]) * max(length - WORD_CHARACTERS, 0)
    if kind == SPACE:
        return int(weights[SPACE]) if length > 1 else 0
    if kind == NEWLINE:
        return int(weights[NEWLINE])
    if kind == DIGITS:
        return int(weights[DIGITS]) * ((length + 2) // 3)
    if kind == LETTERS:
        return max(int(weights[WORD]), int(weights[LETTERS]) * length)
    return int(weights[kind]) * length


@kernel(OUT_I64_1D(U32_1D, I64_1D, U8_1D, I64_1D))
def token_estimates(codes: Words, text_end: Indices, kinds: Flags, weights: Indices) -> Indices:
    """Thousandths of a token of each text.

    Args:
        codes: Code points of all texts, one after the other.
        text_end: (n,) end of each text.
        kinds: Kind of each character, up to the last that is not OTHER.
        weights: (10,) by kind, thousandths of a token: of a run for WORD, SPACE (of two and more) and NEWLINE, of three
            for DIGITS, otherwise of a character; IN_LONG_WORD at NOTHING's index. LETTERS weigh at least as much as a
            WORD.
    """
    totals = np.zeros(text_end.shape[0], np.int64)
    at = 0
    for text in range(text_end.shape[0]):
        total = 0
        while at < text_end[text]:
            start = at
            kind = int(_kind(codes[at], kinds) & KIND)
            at += 1
            if kind == LETTERS:
                while at < text_end[text] and _kind(codes[at], kinds) & LETTER:
                    at += 1
            else:
                while at < text_end[text] and _kind(codes[at], kinds) & KIND == kind:
                    at += 1
            total += _weight(kind, at - start, weights)
        totals[text] = total
    return totals
