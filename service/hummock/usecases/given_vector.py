"""A vector that came with a request, as an embedding."""

from __future__ import annotations

from hummock.core.embedding import Embedding, EmbeddingSpace
from hummock.core.errors import EmbSpaceMismatch, InvalidRequest
from hummock.core.memory import QueryVector


def given_embedding(field: str, vector: QueryVector, space: EmbeddingSpace) -> Embedding:
    """The embedding that the caller made; it has no token vectors.

    Args:
        field: The vector's path in the request.
        vector: As it came.
        space: The one that it must belong to.

    Raises: EmbSpaceMismatch, InvalidRequest.
    """
    if vector.emb_space != space.id:
        raise EmbSpaceMismatch(f"{field}.emb_space", vector.emb_space, space.id)
    if len(vector.values) != space.dim:
        raise InvalidRequest(f"{field}.values", f"has {len(vector.values)} components; the space has {space.dim}")
    return Embedding(vector=vector.values, tokens=space.no_tokens())
