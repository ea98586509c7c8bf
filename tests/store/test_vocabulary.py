"""What the writer remembers of the numbers of terms."""

from __future__ import annotations

import numpy as np

from hummock.store.lmdb.term_dictionary import Vocabularies, Vocabulary
from hummock_kernels.vocabulary import UNKNOWN


def filled(vocabulary: Vocabulary, terms: int) -> None:
    vocabulary.remember(np.arange(1, terms + 1, dtype=np.uint64), np.arange(terms, dtype=np.uint32))


def test_numbers_outlive_the_growth_of_the_table() -> None:
    vocabulary = Vocabulary()
    filled(vocabulary, 5000)
    filled(vocabulary, 3)
    assert len(vocabulary) == 5000
    wanted = np.array([1, 5000, 5001], np.uint64)
    assert vocabulary.numbers_of(wanted).tolist() == [0, 4999, UNKNOWN]


def test_the_vocabulary_used_longest_ago_is_dropped_when_memory_is_short() -> None:
    vocabularies = Vocabularies(budget_bytes=40_000)
    for project in ("a", "b", "a", "c"):
        filled(vocabularies.of(project), 500)
        vocabularies.keep_within_budget()
    assert [len(vocabularies.of(project)) for project in ("a", "c", "b")] == [500, 500, 0]


def test_a_vocabulary_that_may_be_wrong_is_forgotten() -> None:
    vocabularies = Vocabularies(budget_bytes=40_000)
    filled(vocabularies.of("a"), 500)
    vocabularies.forget("a")
    vocabularies.keep_within_budget()
    assert len(vocabularies.of("a")) == 0
    filled(vocabularies.of("a"), 1)
    vocabularies.clear()
    assert len(vocabularies.of("a")) == 0
