"""The analyzer's kernel against its twin."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummock_kernels import analyzer, reference

# A small alphabet with every kind of character: code point, folded, kind.
ALPHABET = (
    (0, 32, analyzer.SEPARATOR),
    (1, 0x4E00, analyzer.CJK),
    (2, 0x4E01, analyzer.CJK),
    (3, 0x5D0, analyzer.OTHER_LETTER),
    (4, ord("s"), analyzer.LOWER),
    (5, ord("e"), analyzer.LOWER),
    (6, ord("r"), analyzer.LOWER),
    (7, ord("a"), analyzer.UPPER),
    (8, ord("s"), analyzer.UPPER),
    (9, 0xE9, analyzer.UPPER),
    (10, ord("1"), analyzer.DIGIT),
    (11, ord("_"), analyzer.UNDERSCORE),
    (12, ord("-"), analyzer.HYPHEN),
    (13, ord("'"), analyzer.APOSTROPHE),
    (14, ord("l"), analyzer.LOWER),
    (15, 0, analyzer.HARD),
    (16, ord("x"), analyzer.UPPER),
    (17, 0x1F600, analyzer.SIGN),
    (18, ord("#"), analyzer.SEPARATOR),
    (19, ord("+"), analyzer.SEPARATOR),
    (20, ord("c"), analyzer.UPPER),
)
FOLDS = np.array([fold for _, fold, _ in ALPHABET], np.uint32)
KINDS = np.array([kind for _, _, kind in ALPHABET], np.uint8)
EASY = st.integers(0, 14) | st.sampled_from([16, 17, 18, 19, 20, 0x20000, 0x3FFFD])
LANGUAGES = st.lists(st.sampled_from([0, 1, 4, 10, 11, 13, 17, 18, 19, 20]), max_size=12)
CODES = (
    st.lists(EASY, max_size=24)
    | LANGUAGES
    | st.lists(EASY | st.sampled_from([15, 0x10000, 0x2F800, 0x3FFFE]), max_size=6)
)
USES = st.sampled_from(
    [
        analyzer.TITLE,
        analyzer.TAGS,
        analyzer.BODY,
        analyzer.BODY | analyzer.EXACT,
        analyzer.BODY | analyzer.NAMELESS,
        analyzer.FACET | analyzer.EXACT,
    ]
)
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
