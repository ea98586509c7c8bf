"""Texts as embeddings, and whether two of them are the same."""

from __future__ import annotations

from collections.abc import Sequence

from hummock.core.embedding import Embedding
from hummock.models import OnnxEmbedder


def embedded(embedder: OnnxEmbedder, texts: Sequence[str]) -> list[Embedding]:
    """Embedding of each text, a document of one chunk each."""
    return [embedding for (embedding,) in embedder.embed_documents([[text] for text in texts])]


def same_bytes(left: Embedding, right: Embedding) -> bool:
    """True if they are equal to the last bit."""
    return left.vector.tobytes() == right.vector.tobytes() and left.tokens.tobytes() == right.tokens.tobytes()
