"""Which memories contain any of many terms, wherever the postings have them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hummock.store.tables.forward_lists import ForwardLists
from hummock.store.views.postings import Postings

TERMS = st.integers(0, 12)


def lists_of(memories: list[set[int]]) -> ForwardLists:
    terms = [term for memory in memories for term in sorted(memory)]
    indptr = np.cumsum([0, *map(len, memories)], dtype=np.int64)
    return ForwardLists(indptr=indptr, term=np.array(terms, np.uint32), counts=np.zeros(len(terms), np.uint32))


@given(st.lists(st.sets(TERMS), max_size=6), st.lists(st.sets(TERMS), max_size=6), st.lists(st.integers(0, 20)))
def test_many_terms_mark_what_each_of_them_marks(
    older: list[set[int]], newer: list[set[int]], asked: list[int]
) -> None:
    lengths = np.ones(len(older), np.float32)
    postings = Postings.of([lists_of(older)], lengths, inverted=True).extended(lists_of(newer))
    marked, one_by_one = (np.zeros(len(older) + len(newer), np.uint8) for _ in range(2))
    postings.mark_any(np.array(asked, np.uint32), marked)
    for term in asked:
        postings.mark(term, one_by_one)
    assert marked.tolist() == one_by_one.tolist()
    assert marked.tolist() == [int(not memory.isdisjoint(asked)) for memory in older + newer]
