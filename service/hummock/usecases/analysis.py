"""The words of memories that are to be stored, analysed by the dozen: alone, a short text costs several times more."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress

from hummock.core.terms import Terms
from hummock.text.terms import Piece, terms_of
from hummock.text.tokens import EstimatedTokens

_WAITING_MEMORIES = 256
_SMALL_CHARACTERS = 4096
"""Of a request whose words may wait: what is analysed at once stays below some MiB."""

Found = tuple[Terms, int]
"""The terms of a memory, and its tokens."""


class Words:
    """The terms and the count of tokens of a memory; there when they are asked for."""

    __slots__ = ("_analysis", "found", "pieces", "project", "shown")

    def __init__(self, analysis: Analysis, project: str, pieces: Sequence[Piece], shown: str) -> None:
        """Args are who analyses, whose it is, what it is searched by, and what of it a prompt shows in full."""
        self._analysis = analysis
        self.project = project
        self.found: Found | None = None
        self.pieces = pieces
        self.shown = shown

    @property
    def terms(self) -> Terms:
        """The terms and facets."""
        return (self.found or self._analysis.need(self))[0]

    @property
    def token_count(self) -> int:
        """The estimate for the memory rendered in full."""
        return (self.found or self._analysis.need(self))[1]


class Analysis:
    """Analyses the words of a large request at once, and those of small ones when the first of them is needed.

    It is needed by the writer, so that all small requests that wait for it share what NumPy and compiled code take for
    a call. Safe to call from several threads.
    """

    def __init__(self, counter: EstimatedTokens) -> None:
        self._counter = counter
        # Those that are never asked for, since their request was answered before, fall out.
        self._waiting: deque[Words] = deque(maxlen=_WAITING_MEMORIES)

    def begin(self, project: str, memories: Iterable[tuple[Sequence[Piece], str]]) -> list[Words]:
        """The words of the memories of one request, by the last arguments of `Words`."""
        words = [Words(self, project, pieces, shown) for pieces, shown in memories]
        if sum(len(text) for one in words for text, _ in one.pieces) > _SMALL_CHARACTERS:
            self._analyse(words)
        else:
            self._waiting.extend(words)
        return words

    def need(self, wanted: Words) -> Found:
        """Analyses these words, and with them all that wait."""
        several = {wanted: None}
        with suppress(IndexError):
            while True:
                several[self._waiting.popleft()] = None
        try:
            # What is stored together lies together.
            return self._analyse(sorted(several, key=lambda one: one.project))[wanted]
        except Exception:
            # The others are analysed when they are needed, so that the one at fault fails alone.
            return self._analyse([wanted])[wanted]

    def _analyse(self, words: Sequence[Words]) -> dict[Words, Found]:
        terms = terms_of([one.pieces for one in words])
        counts = self._counter.counts([one.shown for one in words])
        several = dict(zip(words, zip(terms, counts, strict=True), strict=True))
        for one, found in several.items():
            one.found = found
        return several
