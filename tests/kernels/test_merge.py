"""Merging inverted indexes against the twin, and against an index made at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from hummock_kernels import postings, reference
from hummock_kernels.postings import Index, invert
from tests.kernels.test_bm25 import FIELD_WEIGHTS, forward_lists, freeze

DOCUMENTS = st.lists(st.dictionaries(st.integers(0, 9), st.integers(0, 2**32 - 1), max_size=5), max_size=8)


def halves(documents: list[dict[int, int]], base: int) -> tuple[Any, ...]:
    """The index of the first documents, which may know fewer terms, that of the others, and how many are first."""
    first, others = documents[:base], documents[base:]
    terms = max((term for document in first for term in document), default=-1) + 1
    older = Index(*freeze(*invert([forward_lists(first)], FIELD_WEIGHTS, terms)))
    return older, Index(*freeze(*invert([forward_lists(others)], FIELD_WEIGHTS, 10))), len(first)


def lists(index: Iterable[NDArray[Any]]) -> list[tuple[np.dtype[Any], list[int]]]:
    return [(part.dtype, part.tolist()) for part in index]


@given(DOCUMENTS, st.integers(0, 8), st.lists(st.booleans(), min_size=8, max_size=8))
def test_a_merged_index_equals_its_twin(documents: list[dict[int, int]], base: int, kept: list[bool]) -> None:
    places = np.where(kept, np.cumsum(kept) - 1, -1).astype(np.int32)
    arguments = (*halves(documents, base), places)
    assert lists(postings.merge_postings(*arguments)) == lists(reference.merge_postings(*arguments))


@given(DOCUMENTS, st.integers(0, 8))
def test_a_merged_index_is_the_one_of_all_documents(documents: list[dict[int, int]], base: int) -> None:
    arguments = (*halves(documents, base), np.arange(8, dtype=np.int32))
    assert lists(postings.merge_postings(*arguments)) == lists(invert([forward_lists(documents)], FIELD_WEIGHTS, 10))
