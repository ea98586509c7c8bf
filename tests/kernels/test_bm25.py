"""Keyword kernels against their twins."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from hummock_kernels import bm25, maxscore, postings, reference
from hummock_kernels._types import Counts, Flags, Indices, Vector, Words
from hummock_kernels.bm25 import Query, Saturation, greatest_shares
from hummock_kernels.postings import Delta, Index, Presence, invert, presence_of

TERMS = st.integers(0, 80) | st.just(1024 + 7)  # the last one collides with 7 in the sketch
COUNTS = st.integers(0, 2**32 - 1)
DOCUMENTS = st.lists(st.dictionaries(TERMS, COUNTS, max_size=6), max_size=8)
FIELD_WEIGHTS = np.array([3.0, 2.0, 1.0, 0.0], np.float32)


def freeze(*arrays: npt.NDArray[Any]) -> tuple[Any, ...]:
    for array in arrays:
        array.flags.writeable = False
    return arrays


def forward_lists(documents: list[dict[int, int]]) -> tuple[Indices, Words, Words]:
    indptr = np.cumsum([0] + [len(document) for document in documents]).astype(np.int64)
    terms = np.array([term for document in documents for term in sorted(document)], np.uint32)
    counts = np.array([document[term] for document in documents for term in sorted(document)], np.uint32)
    freeze(indptr, terms, counts)
    return indptr, terms, counts


def split(
    documents: list[dict[int, int]], base: int, terms: int = 60, weights: Vector = FIELD_WEIGHTS
) -> tuple[Index, Delta]:
    """The index and the delta; terms of 60 and above are only known to the delta."""
    old = [{term: count for term, count in document.items() if term < terms} for document in documents[:base]]
    index = Index(*freeze(*postings.invert([forward_lists(old)], FIELD_WEIGHTS, terms)))
    return index, Delta(len(old), *forward_lists(documents[base:]), *freeze(weights.copy()))


def frequent_terms(index: Index, base: int, query: list[int]) -> tuple[Indices, Presence]:
    """The query's rows, and the documents, of the terms that count as frequent: every other one of the index."""
    numbers = np.arange(0, len(index.indptr) - 1, 2)
    row = np.array([term // 2 if term % 2 == 0 and term < len(index.indptr) - 1 else -1 for term in query], np.int64)
    return freeze(row)[0], Presence(*freeze(*presence_of(index, numbers, base)))


def arguments_of(
    documents: list[dict[int, int]],
    base: int,
    query: list[int],
    *,
    mean_length: float = 3.5,
    k1: float = 0.9,
    b: float = 0.4,
    weights: Vector = FIELD_WEIGHTS,
    lists: tuple[Index, Delta] | None = None,
) -> tuple[Any, ...]:
    """Arguments that both keyword kernels begin with; the lists are made of the documents unless they are given."""
    lengths = np.array([len(document) for document in documents], np.float32)
    idf = np.linspace(1, 2, len(query), dtype=np.float32)
    asked = freeze(np.array(query, np.uint32), idf)
    freeze(lengths)
    index, delta = lists or split(documents, base, weights=weights)
    row, presence = frequent_terms(index, delta.base, query)
    saturation = Saturation(lengths, mean_length, k1, b)
    return index, delta, presence, Query(asked[0], asked[1], row, np.ones(len(query), np.float32)), saturation


def score(
    documents: list[dict[int, int]],
    base: int,
    query: list[int],
    *,
    mean_length: float = 3.5,
    k1: float = 0.9,
    b: float = 0.4,
    kernel: Callable[..., tuple[Vector, Words]] = bm25.bm25_scores,
) -> tuple[Vector, Words]:
    arguments = arguments_of(documents, base, query, mean_length=mean_length, k1=k1, b=b)
    return kernel(*arguments, np.arange(len(documents)))


@given(DOCUMENTS, st.integers(0, 8), st.lists(TERMS, max_size=5), st.sampled_from([0.0, 3.5]), st.sampled_from([0, 1]))
def test_scores_equal_their_twin_to_the_bit(
    documents: list[dict[int, int]], base: int, query: list[int], mean_length: float, b: float
) -> None:
    found = score(documents, base, query, mean_length=mean_length, b=b)
    expected = score(documents, base, query, mean_length=mean_length, b=b, kernel=reference.bm25_scores)
    for ours, twin in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours, twin)


@given(DOCUMENTS, st.integers(0, 8), st.lists(st.integers(0, 59), max_size=5))
def test_a_document_scores_the_same_bits_in_the_index_and_in_the_delta(
    documents: list[dict[int, int]], base: int, query: list[int]
) -> None:
    """DESIGN 4: a restart scores the same."""
    documents = [{term: count for term, count in document.items() if term < 60} for document in documents]
    for one, other in zip(score(documents, base, query), score(documents, len(documents), query), strict=True):
        np.testing.assert_array_equal(one, other)


@given(
    hnp.arrays(np.int32, st.tuples(st.integers(1, 4), st.integers(1, 4)), elements=st.integers(0, 9)),
    st.lists(st.integers(0, 25), max_size=6),
    st.data(),
)
def test_paged_counts_equal_their_twin(pages: Counts, terms: list[int], data: st.DataObject) -> None:
    place = np.array(data.draw(st.lists(st.integers(0, len(pages) - 1), max_size=5)), np.int32)
    arguments = (pages, place, np.array(terms, np.uint32))
    np.testing.assert_array_equal(postings.paged_counts(*arguments), reference.paged_counts(*arguments), strict=True)


@given(DOCUMENTS, st.integers(0, 8), st.integers(0, 90))
def test_an_inverted_index_of_parts_equals_its_twin(documents: list[dict[int, int]], base: int, terms: int) -> None:
    parts = [forward_lists(documents[:base]), forward_lists(documents[base:])]
    twins = reference.invert(*forward_lists(documents), FIELD_WEIGHTS, terms)
    for ours, twin in zip(postings.invert(parts, FIELD_WEIGHTS, terms), twins, strict=True):
        np.testing.assert_array_equal(ours, twin, strict=True)


@given(DOCUMENTS, st.integers(0, 90))
def test_both_passes_of_an_inversion_equal_their_twins(documents: list[dict[int, int]], terms: int) -> None:
    indptr, term, counts = forward_lists(documents)
    begin, twin_begin = np.zeros((2, terms + 1), np.int64)
    postings.count_postings(indptr, term, begin)
    reference.count_postings(indptr, term, twin_begin)
    np.testing.assert_array_equal(begin, twin_begin)
    free, twin_free = np.cumsum(begin), np.cumsum(begin)
    docs, twin_docs = np.full((2, free[-1]), -1, np.int32)
    weights, twin_weights = np.zeros((2, free[-1]), np.float32)
    postings.put_postings(indptr, term, counts, FIELD_WEIGHTS, 3, free, docs, weights)
    reference.put_postings(indptr, term, counts, FIELD_WEIGHTS, 3, twin_free, twin_docs, twin_weights)
    for ours, twin in ((free, twin_free), (docs, twin_docs), (weights, twin_weights)):
        np.testing.assert_array_equal(ours, twin)


def test_what_lies_outside_the_forward_lists_is_not_indexed() -> None:
    indptr, terms, counts = np.array([1, 2], np.int64), np.array([5, 3, 4], np.uint32), np.array([1, 2, 3], np.uint32)
    index_indptr, post_doc, post_weight = postings.invert([(indptr, terms, counts)], FIELD_WEIGHTS, 6)
    assert (index_indptr.tolist(), post_doc.tolist(), post_weight.tolist()) == ([0, 0, 0, 0, 1, 1, 1], [0], [6])


@given(DOCUMENTS, st.integers(0, 8), TERMS)
def test_marked_documents_equal_their_twin(documents: list[dict[int, int]], base: int, term: int) -> None:
    lists = split(documents, base)
    ours, twin = np.zeros((2, len(documents)), np.uint8)
    postings.mark_term(*lists, term, ours)
    reference.mark_term(*lists, term, twin)
    np.testing.assert_array_equal(ours, twin)


def test_marks_are_added_to_those_that_are_there() -> None:
    lists = split([{1: 0}, {2: 0}, {1: 0}], 2)
    out = np.zeros(3, np.uint8)
    for term in (1, 2):
        postings.mark_term(*lists, term, out)
    assert out.tolist() == [1, 1, 1]


def test_a_title_match_outweighs_a_body_match() -> None:
    in_body, in_title = {7: 1 << 16}, {7: 1}
    scores, _ = score([in_body, in_title], 1, [7])
    assert scores[1] > scores[0] > 0


def test_matched_bits_name_the_query_terms_that_were_found() -> None:
    _, matched = score([{1: 1, 3: 1}, {2: 1}], 1, [1, 2, 3])
    assert matched.tolist() == [0b101, 0b010]


def test_terms_after_the_thirty_second_score_without_a_bit() -> None:
    query = [50] * 32 + [1]
    scores, matched = score([{1: 1}, {1: 1}], 1, query)
    assert matched.tolist() == [0, 0]
    assert scores[0] == scores[1] > 0


def test_a_term_only_in_a_field_of_weight_zero_does_not_match() -> None:
    scores, matched = score([{1: 5 << 24}, {1: 5 << 24}], 1, [1])
    assert scores.tolist() == [0, 0]
    assert matched.tolist() == [0, 0]


def test_an_empty_index_with_an_empty_delta_scores_nothing() -> None:
    scores, matched = score([], 0, [1, 2])
    assert scores.size == matched.size == 0


def test_a_mean_length_of_zero_gives_finite_scores() -> None:
    scores, _ = score([{1: 1}, {1: 1}], 1, [1], mean_length=0.0, b=1.0)
    assert np.isfinite(scores).all()


@given(DOCUMENTS, st.integers(0, 8), st.lists(TERMS, max_size=5), st.data())
def test_documents_score_the_same_whichever_others_are_asked_for(
    documents: list[dict[int, int]], base: int, query: list[int], data: st.DataObject
) -> None:
    docs = np.array(sorted(data.draw(st.sets(st.sampled_from(range(len(documents)))))) if documents else [], np.int64)
    arguments = arguments_of(documents, base, query)
    of_all = bm25.bm25_scores(*(*arguments, np.arange(len(documents))))
    for some, every in zip(bm25.bm25_scores(*(*arguments, docs)), of_all, strict=True):
        np.testing.assert_array_equal(some, every[docs])


def best(arguments: tuple[Any, ...], allowed: Flags, k: int, *, bounded: bool = True) -> tuple[list[int], list[int]]:
    """Found by the kernel and by its twin."""
    index, delta, presence, query, saturation = arguments
    if bounded:
        greatest = np.append(greatest_shares(index, saturation), np.float32(0))
        query = query._replace(greatest=greatest[np.minimum(query.term, len(greatest) - 1)])
    asked = (index, delta, presence, query, saturation, allowed, k)
    return maxscore.best_by_bm25(*asked).tolist(), reference.best_by_bm25(*asked).tolist()


@given(DOCUMENTS, st.integers(0, 8), st.lists(TERMS, max_size=5), st.integers(-1, 9), st.data())
def test_the_best_documents_equal_their_twins(
    documents: list[dict[int, int]], base: int, query: list[int], k: int, data: st.DataObject
) -> None:
    """The first term weighs nothing."""
    allowed = data.draw(hnp.arrays(np.uint8, len(documents), elements=st.integers(0, 2)))
    index, delta, presence, asked, saturation = arguments_of(documents, base, query)
    asked = asked._replace(idf=asked.idf - np.float32(1))
    found, expected = best((index, delta, presence, asked, saturation), allowed, k)
    assert found == expected


def zipf_documents(count: int, random: np.random.Generator) -> list[dict[int, int]]:
    """Terms of very different frequency, few different counts: many documents score the same."""
    share = np.minimum(1, 1.5 / np.arange(1, 61))
    held = random.random((count, 60)) < share
    return [{int(term): int(random.integers(1, 3)) << 16 for term in np.flatnonzero(row)} for row in held]


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_no_document_that_is_passed_over_would_have_been_among_the_best(seed: int) -> None:
    """Over several windows of documents, with a delta after them; frequent and rare terms, one of them twice."""
    random = np.random.default_rng(seed)
    documents = zipf_documents(10_000, random)
    lists = split(documents, 9_900)
    for passing in (1.0, 0.25, 0.01):
        allowed = (random.random(len(documents)) < passing).astype(np.uint8)
        for query in ([0, 1, 2, 40, 59, 70], [3, 3, 5, 31], [50], [0], random.integers(0, 60, 9).tolist()):
            arguments = arguments_of(documents, 9_900, query, mean_length=4.0, lists=lists)
            for k, bounded in ((1, True), (50, True), (50, False), (len(documents), True)):
                found, expected = best(arguments, allowed, k, bounded=bounded)
                assert found == expected


@given(DOCUMENTS, st.integers(0, 8), st.sampled_from([0.0, 3.5]), st.sampled_from([0, 0.4, 1]))
def test_greatest_shares_are_the_twins(
    documents: list[dict[int, int]], base: int, mean_length: float, b: float
) -> None:
    index, _ = split(documents, base)
    lengths = np.array([len(document) for document in documents], np.float32)
    arguments = (index, Saturation(lengths, mean_length, 0.9, b))
    np.testing.assert_array_equal(greatest_shares(*arguments), reference.greatest_shares(*arguments), strict=True)


@given(DOCUMENTS, st.lists(st.integers(0, 59), max_size=4))
def test_presence_equals_its_twin(documents: list[dict[int, int]], terms: list[int]) -> None:
    documents = documents * 20  # more than one word
    index, _ = split(documents, len(documents))
    arguments = (index, np.array(terms, np.int64), len(documents))
    for ours, twin in zip(presence_of(*arguments), reference.presence_of(*arguments), strict=True):
        np.testing.assert_array_equal(ours, twin, strict=True)


# Merging inverted indexes against the twin, and against an index made at once.


SMALL_DOCUMENTS = st.lists(st.dictionaries(st.integers(0, 9), st.integers(0, 2**32 - 1), max_size=5), max_size=8)


def halves(documents: list[dict[int, int]], base: int) -> tuple[Any, ...]:
    """The index of the first documents, which may know fewer terms, that of the others, and how many are first."""
    first, others = documents[:base], documents[base:]
    terms = max((term for document in first for term in document), default=-1) + 1
    older = Index(*freeze(*invert([forward_lists(first)], FIELD_WEIGHTS, terms)))
    return older, Index(*freeze(*invert([forward_lists(others)], FIELD_WEIGHTS, 10))), len(first)


def lists(index: Iterable[NDArray[Any]]) -> list[tuple[np.dtype[Any], list[int]]]:
    return [(part.dtype, part.tolist()) for part in index]


@given(SMALL_DOCUMENTS, st.integers(0, 8), st.lists(st.booleans(), min_size=8, max_size=8))
def test_a_merged_index_equals_its_twin(documents: list[dict[int, int]], base: int, kept: list[bool]) -> None:
    places = np.where(kept, np.cumsum(kept) - 1, -1).astype(np.int32)
    arguments = (*halves(documents, base), places)
    assert lists(postings.merge_postings(*arguments)) == lists(reference.merge_postings(*arguments))


@given(SMALL_DOCUMENTS, st.integers(0, 8))
def test_a_merged_index_is_the_one_of_all_documents(documents: list[dict[int, int]], base: int) -> None:
    arguments = (*halves(documents, base), np.arange(8, dtype=np.int32))
    assert lists(postings.merge_postings(*arguments)) == lists(invert([forward_lists(documents)], FIELD_WEIGHTS, 10))
