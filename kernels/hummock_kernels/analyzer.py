"""Splits texts into terms: CJK runs into characters and pairs, identifiers whole and in parts, words and signs whole.

A form is a term as written in a text, folded, before stemming: equal forms are one term. A form's key is a 64-bit hash
of its code points and of whether it is to be stemmed.

A name is a run of ASCII letters, digits and underscores with a capital or an underscore in it, which folding, stemming
and splitting would lose. It is a form as well: a facet, in its own case and with all its underscores.
"""

from typing import NamedTuple

import numpy as np

from hummock_kernels._jit import helper, kernel
from hummock_kernels._types import (
    I64_1D,
    OUT_I32_1D,
    OUT_I64_1D,
    OUT_U8_1D,
    OUT_U32_1D,
    OUT_U64_1D,
    U8_1D,
    U32_1D,
    Docs,
    Flags,
    Indices,
    Longs,
    Tuple,
    Words,
)

# Kinds of characters; HARD ones are folded together with their neighbours, or to several.
SEPARATOR, CJK, SIGN, OTHER_LETTER, LOWER, UPPER, DIGIT, UNDERSCORE, HYPHEN, APOSTROPHE, HARD = range(11)

# Field of a piece of text in the low bits; then flags of pieces and of forms.
TITLE, TAGS, BODY, FACET = range(4)
FIELD = 3
EXACT = 4
STEMMED = 8
NAME = 16
NAMELESS = 32

FIRST_IDEOGRAPH = 0x20000
LAST_IDEOGRAPH = 0x3FFFD
FIRST_COMPATIBILITY_IDEOGRAPH = 0x2F800
LAST_COMPATIBILITY_IDEOGRAPH = 0x2FA1F

MIN_STEM_CHARACTERS = 3
MAX_STEM_CHARACTERS = 64
MIN_NAME_CHARACTERS = 2
MAX_NAME_CHARACTERS = 64

_FIRST_HASH = np.uint64(0xCBF29CE484222325)
_HASH_PRIME = np.uint64(0x100000001B3)
_STEMMED_HASH = np.uint64(0x9E3779B97F4A7C15)
_NAME_HASH = np.uint64(0xD6E8FEB86659FD93)
_MIX_1 = np.uint64(0xFF51AFD7ED558CCD)
_MIX_2 = np.uint64(0xC4CEB9FE1A85EC53)
_HALF = np.uint64(33)


@helper()
def _classify(codes: Words, start: int, end: int, folds: Words, kinds: Flags, folded: Words, kind: Flags) -> bool:
    """Fold a piece; returns whether it can be folded character by character."""
    for i in range(start, end):
        code = np.int64(codes[i])
        if code < kinds.shape[0]:
            folded[i] = folds[code]
            kind[i] = kinds[code]
            if kind[i] == HARD:
                return False
        elif (
            FIRST_IDEOGRAPH <= code <= LAST_IDEOGRAPH
            and not FIRST_COMPATIBILITY_IDEOGRAPH <= code <= LAST_COMPATIBILITY_IDEOGRAPH
        ):
            folded[i] = code
            kind[i] = CJK
        else:
            return False
    return True


@helper()
def _key(folded: Words, start: int, end: int, use: int) -> np.uint64:
    hashed = _STEMMED_HASH if use & STEMMED else _NAME_HASH if use & NAME else _FIRST_HASH
    for i in range(start, end):
        hashed = (hashed ^ np.uint64(folded[i])) * _HASH_PRIME
    hashed = (hashed ^ (hashed >> _HALF)) * _MIX_1
    hashed = (hashed ^ (hashed >> _HALF)) * _MIX_2
    hashed ^= hashed >> _HALF
    # 0 marks a free slot in tables of keys.
    return hashed if hashed != 0 else np.uint64(1)


@helper()
def _run_end(kind: Flags, at: int, end: int) -> int:
    first = kind[at]
    while at < end and kind[at] == first:
        at += 1
    return at


@helper()
def _word_end(kind: Flags, start: int, end: int) -> int:
    """End of a word: parts of letters and digits, joined by underscores or single hyphens."""
    at = start
    while True:
        while at < end and OTHER_LETTER <= kind[at] <= DIGIT:
            at += 1
        joined = at
        if at < end and kind[at] == UNDERSCORE:
            joined = _run_end(kind, at, end)
        elif at < end and kind[at] == HYPHEN:
            joined = at + 1
        if joined == at or joined >= end or not OTHER_LETTER <= kind[joined] <= DIGIT:
            return at
        at = joined


@helper()
def _part_end(folded: Words, kind: Flags, start: int, end: int, is_ascii: bool) -> int:
    """End of the part of a word that begins at `start`."""
    at = _run_end(kind, start, end)
    if kind[start] != UPPER or at >= end or kind[at] != LOWER:
        return at
    if at - start == 1:
        return _run_end(kind, at, end)
    # An acronym's plural (IDs) is one part.
    is_plural = is_ascii and folded[at] == ord("s") and (at + 1 >= end or not LOWER <= kind[at + 1] <= UPPER)
    return at + 1 if is_plural else at - 1


@helper()
def _tail_end(folded: Words, kind: Flags, at: int, end: int) -> int:
    """End of a contraction whose apostrophe is at `at`; `at` itself if it is no contraction."""
    letter = folded[at + 1] if at + 1 < end else 0
    follower = folded[at + 2] if at + 2 < end else 0
    if letter == ord("s") or letter == ord("t") or letter == ord("d") or letter == ord("m"):
        after = at + 2
    elif follower == (ord("l") if letter == ord("l") else ord("e")) and (
        letter == ord("l") or letter == ord("r") or letter == ord("v")
    ):
        after = at + 3
    else:
        return at
    return at if after < end and OTHER_LETTER <= kind[after] <= UNDERSCORE else after


@helper()
def _language_end(folded: Words, kind: Flags, at: int, start: int, end: int) -> int:
    """End of a language's name whose only letter is at `at`: c++ or any letter with #; `at` itself if there is none."""
    if (at > start and kind[at - 1] == UNDERSCORE) or not ord("a") <= folded[at] <= ord("z"):
        return at
    after = at + 1
    if after < end and folded[after] == ord("#"):
        after += 1
    elif after + 1 < end and folded[at] == ord("c") and folded[after] == ord("+") and folded[after + 1] == ord("+"):
        after += 2
    else:
        return at
    if after == end:
        return after
    is_word = kind[after] == UNDERSCORE or OTHER_LETTER <= kind[after] <= UPPER
    return at if is_word or folded[after] == ord("+") or folded[after] == ord("#") else after


@helper()
def _is_ascii(folded: Words, start: int, end: int) -> bool:
    for i in range(start, end):  # noqa: SIM110 - a generator would not be compiled
        if folded[i] >= 128:
            return False
    return True


@helper()
def _has_stem(folded: Words, kind: Flags, start: int, end: int) -> bool:
    has_letter = False
    for i in range(start, end):
        if folded[i] >= 128:
            return False
        has_letter |= kind[i] != DIGIT
    return has_letter and MIN_STEM_CHARACTERS <= end - start <= MAX_STEM_CHARACTERS


class _Found(NamedTuple):
    """Occurrences of forms in the order of the text: start, end, and field plus STEMMED or NAME."""

    start: Docs
    end: Docs
    use: Flags


@helper()
def _add(found: _Found, count: int, start: int, end: int, use: int) -> int:
    found.start[count] = start
    found.end[count] = end
    found.use[count] = use
    return count + 1


@helper()
def _add_part(found: _Found, count: int, folded: Words, kind: Flags, start: int, end: int, field: int) -> int:
    is_stemmed = _has_stem(folded, kind, start, end)
    return _add(found, count, start, end, field | STEMMED if is_stemmed else field)


@helper()
def _add_run(found: _Found, count: int, start: int, end: int, field: int) -> int:
    """Add every character and every pair of adjacent ones; returns the new `count`, like all of these helpers."""
    for i in range(start, end):
        count = _add(found, count, i, i + 1, field)
        if i + 1 < end:
            count = _add(found, count, i, i + 2, field)
    return count


@helper()
def _add_parts(found: _Found, count: int, folded: Words, kind: Flags, start: int, end: int, field: int) -> int:
    """Add a word as a whole and in parts."""
    is_ascii = _is_ascii(folded, start, end)
    count = _add(found, count, start, end, field)
    at = start
    while at < end:
        part = _part_end(folded, kind, at, end, is_ascii)
        count = _add_part(found, count, folded, kind, at, part, field)
        at = part
        while at < end and kind[at] >= UNDERSCORE:
            at += 1
    return count


@helper()
def _add_text(found: _Found, count: int, folded: Words, kind: Flags, start: int, end: int, field: int) -> int:
    """Add all forms of a text; returns the new count."""
    at = start
    while at < end:
        if kind[at] == CJK:
            after = _run_end(kind, at, end)
            count = _add_run(found, count, at, after, field)
        elif OTHER_LETTER <= kind[at] <= DIGIT:
            word = _word_end(kind, at, end)
            after = _tail_end(folded, kind, word, end) if word < end and kind[word] == APOSTROPHE else word
            language = _language_end(folded, kind, at, start, end) if word == at + 1 else at
            if language > at:
                after = language
                count = _add(found, count, at, after, field)
            elif _part_end(folded, kind, at, word, _is_ascii(folded, at, word)) == word:
                count = _add_part(found, count, folded, kind, at, after, field)
            else:
                count = _add_parts(found, count, folded, kind, at, word, field)
        else:
            after = at + 1
            if kind[at] == SIGN:
                count = _add(found, count, at, after, field)
        at = after
    return count


@helper()
def _add_names(found: _Found, count: int, codes: Words, folded: Words, kind: Flags, start: int, end: int) -> int:
    """Add all names in a text, from the unfolded second half of `folded`."""
    first = start
    letters = signs = 0
    for at in range(start, end + 1):
        if at < end and codes[at] < 128 and folded[at] < 128 and LOWER <= kind[at] <= UNDERSCORE:
            letters += kind[at] != UNDERSCORE
            signs += kind[at] == UPPER or kind[at] == UNDERSCORE
            continue
        if letters and signs and MIN_NAME_CHARACTERS <= at - first <= MAX_NAME_CHARACTERS:
            count = _add(found, count, codes.shape[0] + first, codes.shape[0] + at, FACET | NAME)
        first = at + 1
        letters = signs = 0
    return count


@helper()
def _unite(found: _Found, first: int, end: int, folded: Words, slots: Docs, key: Longs, counts: Words) -> int:
    """Unite the occurrences [first, end) of a memory in place, each form at its first; returns the new end.

    A slot holds a form's place plus one; `first` or less is left over from an earlier memory.
    """
    mask = slots.shape[0] - 1
    last = first
    for i in range(first, end):
        use = found.use[i]
        hashed = _key(folded, found.start[i], found.end[i], use)
        at = np.int64(hashed & np.uint64(mask))
        while slots[at] > first and key[slots[at] - 1] != hashed:
            at = (at + 1) & mask
        if slots[at] <= first:
            key[last] = hashed
            counts[last] = 0
            found.start[last] = found.start[i]
            found.end[last] = found.end[i]
            found.use[last] = use
            last += 1
            slots[at] = last
        form = slots[at] - 1
        field = np.uint32(use & FIELD)
        shift = np.uint32(8) * field
        if field != FACET and (counts[form] >> shift) & np.uint32(255) < 255:
            counts[form] += np.uint32(1) << shift
    return last


@helper()
def _most_forms(piece_end: Indices, memory_end: Indices) -> int:
    """Upper bound on one memory's forms: every character, every pair, every piece; words and names are fewer."""
    most = piece = begin = 0
    for memory in range(memory_end.shape[0]):
        if memory_end[memory] > piece:
            end = piece_end[memory_end[memory] - 1]
            most = max(most, 2 * (end - begin) + memory_end[memory] - piece)
            begin = end
        piece = memory_end[memory]
    return most


_ANALYSE_SIGNATURE = Tuple(
    (OUT_U8_1D, OUT_I64_1D, OUT_I64_1D, OUT_U32_1D, OUT_U64_1D, OUT_U32_1D, OUT_I32_1D, OUT_I32_1D, OUT_U8_1D)
)(U32_1D, I64_1D, U8_1D, I64_1D, U32_1D, U8_1D)


@kernel(_ANALYSE_SIGNATURE)
def analyse(
    codes: Words, piece_end: Indices, piece_use: Flags, memory_end: Indices, folds: Words, kinds: Flags
) -> tuple[Flags, Indices, Indices, Words, Longs, Words, Docs, Docs, Flags]:
    """Distinct forms of each memory, in the order in which they first occur.

    Args:
        codes: (n,) concatenated code points of all pieces of text.
        piece_end: End of each piece in `codes`.
        piece_use: TITLE, TAGS, BODY or FACET; plus EXACT if the whole piece is one form, as all facets are; plus
            NAMELESS to skip names.
        memory_end: End of each memory's pieces in `piece_end`.
        folds: (t,) the folded character of each code point; those beyond are ideographs and stay, or are hard.
        kinds: (t,) kind of each character.

    Returns:
        hard: (pieces,) 1 if a piece contains a HARD character and was left out.
        indptr: (memories + 1,) slices of the forms.
        lengths: (memories,) occurrences of forms, facets not counted.
        folded: (2 n,) folded code points, garbage in hard pieces; then all code points unfolded.
        key: (m,) each form's key, never 0.
        counts: (m,) three saturating bytes, least significant first: title, tags, body.
        start: (m,) start of each form in `folded`.
        end: (m,) its end.
        use: (m,) the field of its first occurrence, plus STEMMED if its stem is the term, EXACT if the piece is,
            NAME if it is a name.
    """
    memories = memory_end.shape[0]
    size = 16
    while size < 2 * _most_forms(piece_end, memory_end):
        size *= 2
    slots = np.zeros(size, np.int32)
    most = 2 * codes.shape[0] + piece_end.shape[0]
    found = _Found(np.empty(most, np.int32), np.empty(most, np.int32), np.empty(most, np.uint8))
    key = np.empty(most, np.uint64)
    counts = np.empty(most, np.uint32)
    hard = np.zeros(piece_end.shape[0], np.uint8)
    indptr = np.zeros(memories + 1, np.int64)
    lengths = np.zeros(memories, np.int64)
    folded = np.empty(2 * codes.shape[0], np.uint32)
    folded[codes.shape[0] :] = codes
    kind = np.empty(codes.shape[0], np.uint8)
    piece = begin = last = 0
    for memory in range(memories):
        first = last
        facets = 0
        while piece < memory_end[memory]:
            end = piece_end[piece]
            field = piece_use[piece] & FIELD
            if piece_use[piece] & EXACT:
                folded[begin:end] = codes[begin:end]
                last = _add(found, last, begin, end, field | EXACT)
                facets += field == FACET
            elif _classify(codes, begin, end, folds, kinds, folded, kind):
                last = _add_text(found, last, folded, kind, begin, end, field)
                if not piece_use[piece] & NAMELESS:
                    words = last
                    last = _add_names(found, last, codes, folded, kind, begin, end)
                    facets += last - words
            else:
                hard[piece] = 1
            begin = end
            piece += 1
        lengths[memory] = last - first - facets
        last = _unite(found, first, last, folded, slots, key, counts)
        indptr[memory + 1] = last
    return (
        hard,
        indptr,
        lengths,
        folded,
        key[:last].copy(),
        counts[:last].copy(),
        found.start[:last].copy(),
        found.end[:last].copy(),
        found.use[:last].copy(),
    )
