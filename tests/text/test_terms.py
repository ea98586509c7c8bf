"""Terms by the kernel against the analyzer that is written to be read."""

from __future__ import annotations

import json
import tracemalloc
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummock.core import facets
from hummock.core.memory import Terms
from hummock.text.analyzer import document_terms, exact_names
from hummock.text.terms import A_FACET, terms_of
from hummock_kernels.analyzer import BODY, EXACT, TAGS, TITLE

MIXED = st.text(
    st.sampled_from("还款aZsStTreve09_-'’ éÉ。…，ﬁ가か\uff8a\uff9e\n.𠀀ßİ①ＡT\u0301ǅσςАя٣\ud800\U0001f600"), max_size=30
)


# What lies between is ideographs, hangul syllables, surrogates and private use, and rare letters.
UNLIKE_OTHERS = (
    range(0x3410),
    range(0x4DB0, 0x4E10),
    range(0x9FF0, 0xAC10),
    range(0xD790, 0xD810),
    range(0xF8F0, 0x10010),
    range(0x1EFF0, 0x1FB10),
    range(0x1FFF0, 0x20010),
    range(0x2F7F0, 0x2FA30),
)


def assert_analysed(texts: Sequence[str], field: int = BODY) -> None:
    terms = terms_of([[(text, field)] for text in texts])
    for text, one in zip(texts, terms, strict=True):
        start, end = one.batch.indptr[one.place : one.place + 2]
        counted: Counter[str] = Counter()
        for form, term in enumerate(one.batch.spell(range(start, end)), start):
            counted[term] += int(one.batch.counts[form]) >> 8 * field
        expected = document_terms(text)
        names = {facets.name(name): 0 for name in exact_names(text)}
        assert counted == {**Counter(expected), **names}
        assert one.batch.lengths[one.place] == len(expected)


@given(st.lists(st.text(max_size=40) | MIXED, min_size=1, max_size=4), st.sampled_from([TITLE, TAGS, BODY]))
def test_terms_are_those_of_the_analyzer(texts: list[str], field: int) -> None:
    assert_analysed(texts, field)


@pytest.mark.long
def test_every_character_is_analysed_as_by_the_analyzer() -> None:
    """By itself, within a word, and twice among words of other kinds."""
    assert_analysed(
        [f"{chr(code)} a{chr(code)}b A{chr(code) * 2}'s中{chr(code)}" for codes in UNLIKE_OTHERS for code in codes]
    )


@pytest.mark.parametrize(
    "corpus", ["cmrc2018-dev-zh/corpus.jsonl", "xquad-en-zh/corpus.en.jsonl", "cosqa-code/corpus.jsonl"]
)
def test_real_texts_are_analysed_as_by_the_analyzer(shared: Callable[[str], Path], corpus: str) -> None:
    lines = shared(f"datasets/{corpus}").read_text("utf-8").splitlines()
    assert_analysed([json.loads(line)["text"] for line in lines[:: max(len(lines) // 60, 1)]])


HARD = [
    "👍🏽", "❤\ufe0f", "\u200d", "C#", "c++", "🔥", "क्", "1\ufe0f\u20e3", "🇩🇪", "ก็", "℃", "㎡", "ß", "İ", "e\u0301",
    "\u0338", "\u1112\u1161\u11ab", "\U00010330", "\U0002f800", "\U0002fa1f",
]  # fmt: skip


@given(
    st.lists(
        st.sampled_from([*HARD, "中", "a", "Ab", "it", "'s", "’", "s", "_", "-", "9", " ", "。", "x"]), max_size=12
    ).map("".join)
)
def test_words_around_a_character_that_cannot_be_folded_alone_are_read_as_by_the_analyzer(text: str) -> None:
    assert_analysed([text, "plain", text + "中", ""])


def test_memories_keep_their_terms_when_one_of_them_must_be_read_again() -> None:
    pieces = [("还款 e\u0323", TITLE), ("ß x", BODY), ("ß", TAGS | EXACT), ("f\u1e9b\u0323", A_FACET)]
    first, second, third = terms_of([pieces, [("x y", BODY)], [("ß y", BODY)]])
    assert sorted(spelt(first)) == sorted(["还", "还款", "款", "ẹ", "x", "ss", "ß", "f\u1e9b\u0323"])
    assert spelt(second) == ["x", "y"]
    assert sorted(spelt(third)) == ["ss", "y"]
    assert [int(one.batch.lengths[one.place]) for one in (first, second, third)] == [7, 2, 2]


@pytest.mark.long
@pytest.mark.parametrize("hard", ["℃", "ß", "e\u0301", "ß " * 4_000], ids=["sign", "letter", "mark", "words"])
def test_a_character_that_cannot_be_folded_alone_costs_little_memory(hard: str) -> None:
    plain = "还款方式，" * 4_000
    terms_of([[("ß", BODY)]])
    tracemalloc.start()
    try:
        terms_of([[(plain, BODY)]] * 4)
        before = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        terms_of([[(plain + hard, BODY)]] * 4)
        assert tracemalloc.get_traced_memory()[1] < 1.5 * before
    finally:
        tracemalloc.stop()


def spelt(terms: Terms) -> list[str]:
    return terms.batch.spell(range(*terms.batch.indptr[terms.place : terms.place + 2].tolist()))
