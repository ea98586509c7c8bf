"""Twins of the kernels that analyse texts and number terms; re-exported by `reference`."""

import itertools
import re
from collections.abc import Iterator

import numpy as np

from hummock_kernels import analyzer, tokens
from hummock_kernels._types import Docs, Flags, Indices, Longs, Words

_SHAPES = " csxlud_-'!"
_TOKEN = re.compile(r"(?P<cjk>c+)|(?P<sign>s)|[xlud]+(?:(?:_+|-)[xlud]+)*")
_LANGUAGE = re.compile(r"[a-z]#(?![+#])|c\+\+(?![+#])")
_PART = re.compile(r"u+(?!l)|u?l+|d+|x+")
# As a plural (IDs) ends in the letter itself, it has a shape of its own here.
_ASCII_PART = re.compile(r"u{2,}+s(?![uls])|u+(?![ls])|u?[ls]+|d+")
_TAILS = ("s", "t", "re", "ve", "ll", "d", "m")
_BITS = 2**64 - 1

_NAME = re.compile(r"[lud_]+")

Form = tuple[int, int, int]
"""Start, end, and STEMMED or NAME."""


def analyse(
    codes: Words, piece_end: Indices, piece_use: Flags, memory_end: Indices, folds: Words, kinds: Flags
) -> tuple[Flags, Indices, Indices, Words, Longs, Words, Docs, Docs, Flags]:
    """Twin of `analyzer.analyse`, with 0 instead of garbage."""
    hard, folded = np.zeros(len(piece_end), np.uint8), np.concatenate([np.zeros_like(codes), codes])
    lengths = np.zeros(len(memory_end), np.int64)
    indptr = [0]
    found: list[tuple[int, int, int, int, int]] = []
    for memory, pieces in enumerate(_ranges(memory_end)):
        forms: dict[int, list[int]] = {}
        for piece in pieces:
            use, field = int(piece_use[piece]), int(piece_use[piece]) & analyzer.FIELD
            where = _ranges(piece_end)[piece]
            if use & analyzer.EXACT:
                folded[where] = codes[where]
                inside = [(where.start, where.stop, 0)]
            else:
                shape = "".join(_shape(int(code), kinds) for code in codes[where])
                hard[piece] = "!" in shape
                if hard[piece]:
                    continue
                folded[where] = [folds[code] if code < len(folds) else code for code in codes[where]]
                inside = list(_forms("".join(map(chr, folded[where])), shape, where.start))
                if not use & analyzer.NAMELESS:
                    ascii_shape = "".join(
                        kind if max(codes[at], folded[at]) < 128 else " " for at, kind in zip(where, shape, strict=True)
                    )
                    inside += _names(ascii_shape, len(codes) + where.start)
            for start, end, flag in inside:
                of = analyzer.FACET if flag == analyzer.NAME else field
                key = _key(folded[start:end], flag)
                counts = forms.setdefault(key, [start, end, of | (use & analyzer.EXACT) | flag, 0, 0, 0, 0])
                counts[3 + of] += 1
                lengths[memory] += of != analyzer.FACET
        found += [
            (key, min(title, 255) | min(tags, 255) << 8 | min(body, 255) << 16, start, end, flags)
            for key, (start, end, flags, title, tags, body, _) in forms.items()
        ]
        indptr.append(len(found))
    columns = [[form[part] for form in found] for part in range(5)]
    return (
        hard,
        np.array(indptr, np.int64),
        lengths,
        folded,
        np.array(columns[0], np.uint64),
        np.array(columns[1], np.uint32),
        np.array(columns[2], np.int32),
        np.array(columns[3], np.int32),
        np.array(columns[4], np.uint8),
    )


def _ranges(ends: Indices) -> list[range]:
    return [range(start, end) for start, end in itertools.pairwise([0, *ends.tolist()])]


def _shape(code: int, kinds: Flags) -> str:
    if code < len(kinds):
        return _SHAPES[kinds[code]]
    is_first = analyzer.FIRST_COMPATIBILITY_IDEOGRAPH <= code <= analyzer.LAST_COMPATIBILITY_IDEOGRAPH
    return "c" if analyzer.FIRST_IDEOGRAPH <= code <= analyzer.LAST_IDEOGRAPH and not is_first else "!"


def _forms(text: str, shape: str, offset: int) -> Iterator[Form]:
    """Forms of a folded text: start, end, and whether each is stemmed."""
    after = 0
    for token in _TOKEN.finditer(shape):
        start, end = token.span()
        if start < after:
            continue
        after = end
        if token["cjk"]:
            for at in range(start, end):
                yield from ((offset + at, offset + at + size, 0) for size in (1, 2) if at + size <= end)
            continue
        language = _LANGUAGE.match(text, start)
        if token["sign"] or (language and end - start == 1 and _is_apart(shape, *language.span())):
            after = language.end() if language else end
            yield offset + start, offset + after, 0
            continue
        after = _tail_end(text, shape, end)
        parts = _parts(text, shape, start, end)
        if len(parts) == 1:
            parts = [(start, after)]
        else:
            yield offset + start, offset + end, 0
        for first, last in parts:
            yield offset + first, offset + last, analyzer.STEMMED if _has_stem(text[first:last]) else 0


def _is_apart(shape: str, start: int, end: int) -> bool:
    return shape[start - 1 : start] != "_" and shape[end : end + 1] not in set("xlu_")


def _names(shape: str, offset: int) -> Iterator[Form]:
    for name in _NAME.finditer(shape):
        is_long_enough = analyzer.MIN_NAME_CHARACTERS <= len(name[0]) <= analyzer.MAX_NAME_CHARACTERS
        if is_long_enough and set(name[0]) & set("u_") and set(name[0]) != {"_"}:
            yield offset + name.start(), offset + name.end(), analyzer.NAME


def _tail_end(text: str, shape: str, at: int) -> int:
    for tail in _TAILS:
        end = at + 1 + len(tail)
        if shape[at : at + 1] == "'" and text[at + 1 : end] == tail and shape[end : end + 1] not in set("xlud_"):
            return end
    return at


def _parts(text: str, shape: str, start: int, end: int) -> list[tuple[int, int]]:
    word, letters = text[start:end], shape[start:end]
    if word.isascii():
        letters = "".join(
            "s" if mark == "l" and letter == "s" else mark for letter, mark in zip(word, letters, strict=True)
        )
        return [(start + part.start(), start + part.end()) for part in _ASCII_PART.finditer(letters)]
    return [(start + part.start(), start + part.end()) for part in _PART.finditer(letters)]


def _has_stem(form: str) -> bool:
    is_long_enough = analyzer.MIN_STEM_CHARACTERS <= len(form) <= analyzer.MAX_STEM_CHARACTERS
    return is_long_enough and form.isascii() and not form.isdecimal()


def _key(folded: Words, flag: int) -> int:
    """FNV-1a over code points, then the finalizer of MurmurHash3."""
    starts = {analyzer.STEMMED: 0x9E3779B97F4A7C15, analyzer.NAME: 0xD6E8FEB86659FD93}
    key = starts.get(flag, 0xCBF29CE484222325)
    for code in folded.tolist():
        key = (key ^ code) * 0x100000001B3 & _BITS
    key = (key ^ key >> 33) * 0xFF51AFD7ED558CCD & _BITS
    key = (key ^ key >> 33) * 0xC4CEB9FE1A85EC53 & _BITS
    return (key ^ key >> 33) or 1


def token_estimates(codes: Words, text_end: Indices, kinds: Flags, weights: Indices) -> Indices:
    """Twin of `tokens.token_estimates`."""
    return np.array([_estimate(codes[where], kinds, weights) for where in map(_slice, _ranges(text_end))], np.int64)


def _slice(where: range) -> slice:
    return slice(where.start, where.stop)


def _estimate(codes: Words, kinds: Flags, weights: Indices) -> int:
    rest = [int(kinds[code]) if code < len(kinds) else tokens.OTHER for code in codes]
    total = 0
    while rest:
        kind = rest[0] & tokens.KIND
        run = (
            1
            + sum(
                1
                for _ in itertools.takewhile(
                    lambda other: other & tokens.LETTER if kind == tokens.LETTERS else other & tokens.KIND == kind,  # noqa: B023 - called now
                    rest[1:],
                )
            )
        )
        total += _weight(kind, run, weights)
        rest = rest[run:]
    return total


def _weight(kind: int, length: int, weights: Indices) -> int:
    each = int(weights[kind])
    match kind:
        case tokens.NOTHING:
            return 0
        case tokens.WORD:
            return each + int(weights[tokens.IN_LONG_WORD]) * max(length - tokens.WORD_CHARACTERS, 0)
        case tokens.SPACE:
            return each if length > 1 else 0
        case tokens.NEWLINE:
            return each
        case tokens.DIGITS:
            return each * -(-length // 3)
        case tokens.LETTERS:
            return max(int(weights[tokens.WORD]), each * length)
        case _:
            return each * length


def numbers_of(slots: Longs, numbers: Words, keys: Longs) -> Words:
    """Twin of `vocabulary.numbers_of`."""
    known = dict(zip(slots.tolist(), numbers.tolist(), strict=True))
    return np.array([known.get(key, 0xFFFF_FFFF) for key in keys.tolist()], np.uint32)


def remember_numbers(slots: Longs, numbers: Words, keys: Longs, values: Words) -> int:
    """Twin of `vocabulary.remember_numbers`."""
    new = 0
    for key, value in zip(keys.tolist(), values.tolist(), strict=True):
        if key not in slots:
            order = np.roll(np.arange(len(slots)), -(key % len(slots)))
            at = next(at for at in order if slots[at] == 0)
            slots[at], numbers[at] = key, value
            new += 1
    return new


def pack_lists(indptr: Indices, term: Words, counts: Words) -> tuple[Words, Indices]:
    """Twin of `vocabulary.pack_lists`."""
    packed: list[int] = []
    ends = [0]
    for start, end in itertools.pairwise(indptr.tolist()):
        sums: dict[int, list[int]] = {}
        for number, word in zip(term[start:end].tolist(), counts[start:end].tolist(), strict=True):
            before = sums.get(number, [0] * 4)
            sums[number] = [before[field] + (word >> 8 * field & 255) for field in range(4)]
        packed += sorted(sums)
        packed += [
            sum(min(count, 255) << 8 * field for field, count in enumerate(sums[number])) for number in sorted(sums)
        ]
        ends.append(len(packed))
    return np.array(packed, np.uint32), np.array(ends, np.int64)


def split_lists(words: Words, indptr: Indices) -> tuple[Words, Words]:
    """Twin of `vocabulary.split_lists`."""
    lists = [words[2 * start : 2 * end].reshape(2, -1) for start, end in itertools.pairwise(indptr.tolist())]
    term, counts = np.concatenate([np.empty((2, 0), np.uint32), *lists], axis=1)
    return term.copy(), counts.copy()


def words_in(text: Words, letters: Words, ends: Indices, _: Indices) -> Indices:
    """Twin of `hints.words_in`; it needs no buckets."""
    words = ["".join(map(chr, letters[part])) for part in _ranges(ends[1:])]
    whole = "".join(map(chr, text))
    return np.array([number for number, word in enumerate(words) if word in whole], np.int64)
