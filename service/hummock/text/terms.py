"""The terms of many memories at once, as a store takes them: those of `analyzer.document_terms`, by field."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hummock.core.terms import TermBatch, Terms
from hummock.text.analyzer import bounded, document_terms, stem
from hummock.text.characters import characters
from hummock_kernels.analyzer import BODY, EXACT, FACET, STEMMED, TAGS, TITLE, analyse

Piece = tuple[str, int]
"""A text of a memory, and its use: a field (TITLE, TAGS, BODY), with EXACT if it is a term as it stands; or A_FACET."""

A_FACET: Final = FACET | EXACT

__all__ = ["A_FACET", "BODY", "EXACT", "TAGS", "TITLE", "Piece", "terms_of"]


def terms_of(memories: Sequence[Sequence[Piece]]) -> list[Terms]:
    """The terms of each memory, in order; all share one batch."""
    batch, hard = _analysed(memories)
    if hard:
        places = iter(range(sum(map(len, memories))))
        plain = [
            [one for piece in pieces for one in (_exact(piece) if next(places) in hard else (piece,))]
            for pieces in memories
        ]
        batch, _ = _analysed(plain)
    return [Terms(batch=batch, place=place) for place in range(len(memories))]


def _exact(piece: Piece) -> Iterable[Piece]:
    """What a piece that cannot be folded character by character comes to."""
    text, use = piece
    return ((term, use | EXACT) for term in document_terms(text))


def _analysed(memories: Sequence[Sequence[Piece]]) -> tuple[TermBatch, frozenset[int]]:
    """The terms of the pieces that can be folded character by character, and the places of the others."""
    pieces = [piece for several in memories for piece in several]
    texts = [text for text, _ in pieces]
    table = characters()
    hard, indptr, lengths, folded, key, counts, start, end, use = analyse(
        np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), "<u4"),
        np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts))),
        np.array([use for _, use in pieces], np.uint8),
        np.cumsum(np.fromiter(map(len, memories), np.int64, len(memories))),
        table.folds,
        table.kinds,
    )
    spelling = _Spelling(folded, start, end, use)
    batch = TermBatch(indptr=indptr, key=key, counts=counts, lengths=lengths, spell=spelling)
    return batch, frozenset(np.flatnonzero(hard).tolist())


class _Spelling:
    """The terms behind forms, made when asked for: most are known by their keys."""

    __slots__ = ("_end", "_folded", "_start", "_use")

    def __init__(
        self, folded: NDArray[np.uint32], start: NDArray[np.int32], end: NDArray[np.int32], use: NDArray[np.uint8]
    ) -> None:
        self._folded = folded
        self._start = start
        self._end = end
        self._use = use

    def __call__(self, forms: Sequence[int]) -> list[str]:
        text = self._folded.tobytes().decode("utf-32-le", "surrogatepass")
        starts, ends, uses = (column[forms].tolist() for column in (self._start, self._end, self._use))
        return [_spelt(text[start:end], use) for start, end, use in zip(starts, ends, uses, strict=True)]


def _spelt(form: str, use: int) -> str:
    if use & EXACT:
        return form
    return bounded(stem(form) if use & STEMMED else form)
