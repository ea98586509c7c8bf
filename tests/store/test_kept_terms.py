"""Numbers of terms that a view keeps."""

from __future__ import annotations

from collections.abc import Sequence

from hummock.store.views import postings
from hummock.store.views.postings import NO_TERM, KeptTerms


class Dictionary:
    """Knows the words of even length, and notes what it is asked for."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def numbers(self, terms: Sequence[str]) -> list[int | None]:
        self.asked.append(list(terms))
        return [None if len(term) % 2 else len(term) for term in terms]


def test_each_term_is_read_once_also_one_that_is_not_there() -> None:
    kept, dictionary = KeptTerms(), Dictionary()
    assert kept.numbers(["odd", "even", "odd"], dictionary.numbers).tolist() == [NO_TERM, 4, NO_TERM]
    assert kept.numbers(["even", "odd", "longer"], dictionary.numbers).tolist() == [4, NO_TERM, 6]
    assert dictionary.asked[1:] == [["longer"]]


def test_nothing_is_asked_for_nothing() -> None:
    dictionary = Dictionary()
    assert KeptTerms().numbers([], dictionary.numbers).tolist() == []
    assert dictionary.asked == []


def test_no_more_are_kept_than_a_query_asks_for_beside_so_many() -> None:
    kept, dictionary = KeptTerms(), Dictionary()
    for number in range(2 * postings._TERMS_KEPT):
        term = f"{number:06}"
        assert kept.numbers(["even", term], dictionary.numbers).tolist() == [4, 6]
    assert len(kept._kept) <= postings._TERMS_KEPT + 2
    # Those of the query are all read again where the others were let go of.
    assert dictionary.asked.count(["even", f"{postings._TERMS_KEPT - 1:06}"]) == 1
