"""The analyzer's kernel against its twin."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummock_kernels import analyzer, reference, tokens, vocabulary

# A small alphabet with every kind of character: what it is folded to and its kind; its code is its place.
ALPHABET = (
    (32, analyzer.SEPARATOR), (0x4E00, analyzer.CJK), (0x4E01, analyzer.CJK), (0x5D0, analyzer.OTHER_LETTER),
    (ord("s"), analyzer.LOWER), (ord("e"), analyzer.LOWER), (ord("r"), analyzer.LOWER), (ord("a"), analyzer.UPPER),
    (ord("s"), analyzer.UPPER), (0xE9, analyzer.UPPER), (ord("1"), analyzer.DIGIT), (ord("_"), analyzer.UNDERSCORE),
    (ord("-"), analyzer.HYPHEN), (ord("'"), analyzer.APOSTROPHE), (ord("l"), analyzer.LOWER), (0, analyzer.HARD),
    (ord("x"), analyzer.UPPER), (0x1F600, analyzer.SIGN), (ord("#"), analyzer.SEPARATOR),
    (ord("+"), analyzer.SEPARATOR), (ord("c"), analyzer.UPPER),
)  # fmt: skip
FOLDS = np.array([fold for fold, _ in ALPHABET], np.uint32)
KINDS = np.array([kind for _, kind in ALPHABET], np.uint8)
EASY = st.integers(0, 14) | st.sampled_from([16, 17, 18, 19, 20, 0x20000, 0x3FFFD])
LANGUAGES = st.lists(st.sampled_from([0, 1, 4, 10, 11, 13, 17, 18, 19, 20]), max_size=12)
CODES = (
    st.lists(EASY, max_size=24)
    | LANGUAGES
    | st.lists(EASY | st.sampled_from([15, 0x10000, 0x2F800, 0x3FFFE]), max_size=6)
)
USES = st.sampled_from(
    [
        analyzer.TITLE, analyzer.TAGS, analyzer.BODY, analyzer.BODY | analyzer.EXACT, analyzer.BODY | analyzer.NAMELESS,
        analyzer.FACET | analyzer.EXACT,
    ]
)  # fmt: skip
MEMORIES = st.lists(st.lists(st.tuples(CODES, USES), max_size=3), max_size=4)

Memories = list[list[tuple[list[int], int]]]


def arguments(memories: Memories) -> tuple[npt.NDArray[Any], ...]:
    pieces = [piece for several in memories for piece in several]
    made = (
        np.array([code for codes, _ in pieces for code in codes], np.uint32),
        np.cumsum([len(codes) for codes, _ in pieces], dtype=np.int64),
        np.array([use for _, use in pieces], np.uint8),
        np.cumsum([len(several) for several in memories], dtype=np.int64),
    )
    for array in made:
        array.flags.writeable = False
    return (*made, FOLDS, KINDS)


@given(MEMORIES)
def test_forms_equal_their_twin(memories: Memories) -> None:
    names = ("hard", "indptr", "lengths", "folded", "key", "counts", "start", "end", "use")
    found: dict[str, npt.NDArray[Any]] = dict(zip(names, analyzer.analyse(*arguments(memories)), strict=True))
    expected: dict[str, npt.NDArray[Any]] = dict(zip(names, reference.analyse(*arguments(memories)), strict=True))
    for name in names:
        if name != "folded":
            np.testing.assert_array_equal(found[name], expected[name], name)
    for start, end in zip(found["start"], found["end"], strict=True):
        np.testing.assert_array_equal(found["folded"][start:end], expected["folded"][start:end])


def test_a_count_saturates_and_a_length_does_not() -> None:
    _, _, lengths, _, _, counts, *_ = analyzer.analyse(*arguments([[([1, 0] * 300, analyzer.BODY)]]))
    assert counts.tolist() == [255 << 16]
    assert lengths.tolist() == [300]


def test_a_name_is_a_facet_of_its_own_and_counts_nothing() -> None:
    name = [11, 4, 5, 11]
    for use, names in ((analyzer.TITLE, 1), (analyzer.TITLE | analyzer.NAMELESS, 0)):
        _, _, lengths, folded, _, counts, start, end, uses = analyzer.analyse(*arguments([[([*name, 0, *name], use)]]))
        of_names = uses == analyzer.FACET | analyzer.NAME
        assert [folded[a:b].tolist() for a, b in zip(start[of_names], end[of_names], strict=True)] == [name] * names
        assert (lengths.tolist(), counts[of_names].tolist()) == ([2], [0] * names)


@pytest.mark.parametrize("codes", [[7], [11, 11], [4, 5], [4, 10], [7, 4] * 33, [9, 9]])
def test_what_is_no_name_is_none(codes: list[int]) -> None:
    """One letter, underscores alone, small letters and digits, more than 64 characters, letters beyond ASCII."""
    uses = analyzer.analyse(*arguments([[(codes, analyzer.BODY)]]))[-1]
    assert not (uses & analyzer.NAME).any()


def test_no_memories_and_memories_without_text_have_no_forms() -> None:
    assert analyzer.analyse(*arguments([]))[1].tolist() == [0]
    assert analyzer.analyse(*arguments([[], [([], analyzer.BODY)], []]))[1].tolist() == [0, 0, 0, 0]


def test_a_form_is_found_again_in_the_next_memory() -> None:
    """The table of forms is not emptied between memories."""
    indptr = analyzer.analyse(*arguments([[([1, 2], analyzer.BODY)]] * 3))[1]
    assert indptr.tolist() == [0, 3, 6, 9]


# The token estimate against its twin.


ESTIMATE_KINDS = np.array([*range(10), tokens.WORD | tokens.LETTER, tokens.LETTERS | tokens.LETTER], np.uint8)
WEIGHTS = np.array([7, 100, 30, 50, 11, 90, 13, 17, 60, 19], np.int64)


@given(st.lists(st.lists(st.integers(0, len(ESTIMATE_KINDS)), max_size=20), max_size=4))
def test_estimates_equal_their_twin(texts: list[list[int]]) -> None:
    codes = np.array([code for text in texts for code in text], np.uint32)
    ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
    for array in (codes, ends, ESTIMATE_KINDS, WEIGHTS):
        array.flags.writeable = False
    found = tokens.token_estimates(codes, ends, ESTIMATE_KINDS, WEIGHTS)
    np.testing.assert_array_equal(found, reference.token_estimates(codes, ends, ESTIMATE_KINDS, WEIGHTS))


# The kernels of the dictionary against their twins.


# Those that differ by a multiple of 16 want one slot.
KEYS = st.integers(1, 8) | st.integers(1, 8).map(lambda key: key + 16) | st.integers(1, 2**64 - 1)
ENTRIES = st.lists(st.tuples(KEYS, st.integers(0, 99)), max_size=12)
PAIRS = st.lists(st.lists(st.tuples(st.integers(0, 20) | st.just(2**32 - 2), st.integers(0, 2**32 - 1))), max_size=5)


@given(ENTRIES, st.lists(KEYS, max_size=8))
def test_numbers_are_remembered_as_by_their_twin(entries: list[tuple[int, int]], asked: list[int]) -> None:
    keys = np.array([key for key, _ in entries], np.uint64)
    values = np.array([value for _, value in entries], np.uint32)
    table = np.zeros(16, np.uint64), np.zeros(16, np.uint32)
    twin = np.zeros(16, np.uint64), np.zeros(16, np.uint32)
    assert vocabulary.remember_numbers(*table, keys, values) == reference.remember_numbers(*twin, keys, values)
    np.testing.assert_array_equal(table, twin)
    wanted = np.array(asked, np.uint64)
    np.testing.assert_array_equal(vocabulary.numbers_of(*table, wanted), reference.numbers_of(*twin, wanted))


@given(PAIRS)
def test_lists_are_packed_as_by_their_twin(memories: list[list[tuple[int, int]]]) -> None:
    indptr = np.cumsum([0, *map(len, memories)], dtype=np.int64)
    term = np.array([number for pairs in memories for number, _ in pairs], np.uint32)
    counts = np.array([count for pairs in memories for _, count in pairs], np.uint32)
    for array in (indptr, term, counts):
        array.flags.writeable = False
    for found, expected in zip(
        vocabulary.pack_lists(indptr, term, counts), reference.pack_lists(indptr, term, counts), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


def test_a_long_list_is_sorted() -> None:
    term = np.random.default_rng(7).permutation(5000).astype(np.uint32)
    words, ends = vocabulary.pack_lists(np.array([0, 5000]), term, term)
    assert words.tolist() == [*range(5000)] * 2
    assert ends.tolist() == [0, 10000]


@given(PAIRS)
def test_stored_lists_are_split_as_by_the_twin_and_into_what_was_packed(memories: list[list[tuple[int, int]]]) -> None:
    indptr = np.cumsum([0, *(len(dict(pairs)) for pairs in memories)], dtype=np.int64)
    term = np.array([number for pairs in memories for number in sorted(dict(pairs))], np.uint32)
    counts = np.array([count for pairs in memories for _, count in sorted(dict(pairs).items())], np.uint32)
    words, _ = vocabulary.pack_lists(indptr, term, counts)
    words.flags.writeable = False
    for found, twin, packed in zip(
        vocabulary.split_lists(words, indptr), reference.split_lists(words, indptr), (term, counts), strict=True
    ):
        np.testing.assert_array_equal(found, twin, strict=True)
        np.testing.assert_array_equal(found, packed)
