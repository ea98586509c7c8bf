"""Measures what a model's cosines mean: what unrelated texts get, and from where on two texts are near twins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hummock.models.embedder import OnnxEmbedder

__all__ = ["Measured", "measure"]

RELATED_SHARE = 0.999
TWIN_SHARE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Figures of one model on one script's texts.

    Attributes:
        unrelated: Mean cosine of a query with a document that does not answer it.
        answering: Mean cosine of a query with the document that answers it.
        related_ceiling: Cosine that one pair in a thousand of different documents exceeds.
        twin_floor: Cosine below which one pair in twenty of versions of one text falls.
    """

    unrelated: float
    answering: float
    related_ceiling: float
    twin_floor: float

    @property
    def near_twin_bar(self) -> float:
        """Between the two: above what different texts reach, and below most versions where these are apart."""
        return max(self.related_ceiling, (self.related_ceiling + self.twin_floor) / 2)


def measure(embedder: OnnxEmbedder, queries: Sequence[str], documents: Sequence[str]) -> Measured:
    """Figures from pairs: query i is answered by document i, and by no other one.

    Args:
        embedder: The model.
        queries: At least two.
        documents: As many, all different.
    """
    if len(queries) != len(documents) or len(queries) < 2:
        raise ValueError(f"{len(queries)} queries and {len(documents)} documents; pairs are needed, at least 2")
    asked = np.stack([embedder.embed_query(text).vector for text in queries])
    told = _vectors(embedder, documents)
    edited = _vectors(embedder, [_version(text) for text in documents])
    across = asked @ told.T
    apart = ~np.eye(len(told), dtype=np.bool_)
    return Measured(
        unrelated=float(across[apart].mean()),
        answering=float(np.diagonal(across).mean()),
        related_ceiling=float(np.quantile((told @ told.T)[apart], RELATED_SHARE)),
        twin_floor=float(np.quantile((told * edited).sum(axis=1), TWIN_SHARE)),
    )


def _vectors(embedder: OnnxEmbedder, texts: Sequence[str]) -> NDArray[np.float32]:
    return np.stack([embedded.vector for embedded in embedder.embed_documents(texts)])


def _version(text: str) -> str:
    """Another version of a text, as an edit leaves it: every tenth word (of Chinese, character) is gone."""
    words = text.split(" ")
    pieces, between = (words, " ") if len(words) > len(text) / 20 else (list(text), "")
    return between.join(piece for index, piece in enumerate(pieces) if index % 10 != 9) + between + "v2"
