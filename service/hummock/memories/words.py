"""The words of memories that are being stored: what they are searched by, analysed together where that is cheaper."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

from hummock.core.memory import Terms
from hummock.text.terms import Piece, terms_of
from hummock.text.tokens import EstimatedTokens

_WAITING_MEMORIES = 256
_SMALL_CHARACTERS = 4096
"""Largest request, in characters, that is analysed at once: its terms take a few MiB."""


class Analysed(NamedTuple):
    """The terms and facets of a memory, and the estimate of its tokens when it is rendered in full."""

    terms: Terms
    token_count: int


class Words:
    """Words by which a memory is searched, and its full text in a prompt."""

    __slots__ = ("_analysis", "found", "pieces", "project", "shown")

    def __init__(self, analysis: Analysis, project: str, pieces: Sequence[Piece], shown: str) -> None:
        self._analysis = analysis
        self.project = project
        self.pieces = pieces
        self.shown = shown
        self.found: Analysed | None = None

    def analysed(self) -> Analysed:
        """What analysing them gives. Unless that has happened, it happens now, to all that wait with them."""
        return self.found or self._analysis.analyse_with_waiting(self)


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
        """The words of the memories of one request, each by its pieces and by what of it is shown."""
        words = [Words(self, project, pieces, shown) for pieces, shown in memories]
        if sum(len(text) for one in words for text, _ in one.pieces) > _SMALL_CHARACTERS:
            self._analyse(words)
        else:
            self._waiting.extend(words)
        return words

    def analyse_with_waiting(self, wanted: Words) -> Analysed:
        """Analyses these words, and with them all that wait, whosever they are."""
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

    def _analyse(self, words: Sequence[Words]) -> dict[Words, Analysed]:
        terms = terms_of([one.pieces for one in words])
        counts = self._counter.counts([one.shown for one in words])
        several = dict(zip(words, map(Analysed, terms, counts), strict=True))
        for one, found in several.items():
            one.found = found
        return several
