"""Embeddings, and the spaces in which they are comparable."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from hummock.core.errors import EmbSpaceMismatch, InvalidRequest
from hummock.core.memory import QueryVector


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Makes cosines of different models comparable: unrelated texts get 0, equal ones 1.

    Attributes:
        unrelated_latin: Mean cosine of unrelated texts in Latin script, in [0, 1).
        unrelated_han: The same for Chinese texts.
        near_twin_bar: Cosine from which two texts count as versions of each other, in [0, 1].
        one_thing: Cosine from which two texts may be about one thing, so that the newer may replace the older; in
            [0, 1].
    """

    unrelated_latin: float
    unrelated_han: float
    near_twin_bar: float
    one_thing: float = 0.55

    def similarity(self, cosine: NDArray[np.float32], *, han: bool) -> NDArray[np.float32]:
        """Calibrated similarity of each cosine, same shape, in [-1, 1]; NaN stays NaN."""
        unrelated = np.float32(self.unrelated_han if han else self.unrelated_latin)
        scaled: NDArray[np.float32] = (cosine - unrelated) / (np.float32(1) - unrelated)
        return scaled.clip(np.float32(-1), np.float32(1))

    def cosine(self, similarity: float, *, han: bool) -> float:
        """The cosine that has this similarity."""
        unrelated = self.unrelated_han if han else self.unrelated_latin
        return unrelated + similarity * (1 - unrelated)

    @property
    def alike(self) -> float:
        """The cosine halfway between unrelated texts and near-twins, for the script with the nearer unrelated texts."""
        return (max(self.unrelated_latin, self.unrelated_han) + self.near_twin_bar) / 2


ONE_LANGUAGE = 0.5
"""Difference of its shares in both languages from which a query is in one of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Across:
    """What cosines say of a query and a text in different languages, in a space whose model reads both.

    Attributes:
        unrelated: Mean cosine of unrelated ones, in [0, 1).
        gain: Factor of the similarity from there on; makes answers as similar as they are within one language, so that
            the vector path does not lose weight for the language alone.
        late_gain: The same for late interaction.
        words: What prose in the other language is credited with for words that it cannot hold, as a share of its
            similarity, in [0, 1].
        as_similar: Share of its similarity from which a text in the query's own language counts as as similar, in
            (0, 1]: below 1 where different models compare the two.
    """

    unrelated: float
    gain: float = 1.0
    late_gain: float = 1.0
    words: float = 0.0
    as_similar: float = 1.0

    def of_query(self, han_share: float) -> Across:
        """What holds for a query with this share of Chinese, in [0, 1]: a query half in each language needs no gain.

        A text of either language can hold its words, and is near its vector. Credit for words has only a query of which
        three quarters are in one language.
        """
        one_sided = abs(2 * han_share - 1)
        return replace(
            self,
            gain=1 + (self.gain - 1) * one_sided,
            late_gain=1 + (self.late_gain - 1) * one_sided,
            words=self.words if one_sided >= ONE_LANGUAGE else 0.0,
        )

    def similarity(self, cosine: NDArray[np.float32]) -> NDArray[np.float32]:
        """Similarity of each cosine, same shape, as that of texts in one language; NaN stays NaN."""
        unrelated = np.float32(self.unrelated)
        scaled: NDArray[np.float32] = (cosine - unrelated) / (np.float32(1) - unrelated) * np.float32(self.gain)
        return scaled


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingSpace:
    """Identity of a vector space: vectors of equal spaces are comparable.

    Attributes:
        id: 32 hexadecimal digits: a hash of everything below and of the weights, tokenizer, pooling, query prefix,
            text template and token basis.
        model: Name in the registry.
        dim: Components of a vector; `token_dim` those of a token vector.
        max_tokens: Longest text of one chunk, special tokens included.
        scripts: Scripts that the model knows: "han", "latin".
        calibration: From cosine to similarity.
        token_mark: In [0, 1): last component of the token vectors of Chinese texts if two models share the space or
            one reads across languages; those of other texts end in its negative. 0 where the language is not told.
        across: Cosines across languages, if a model reads texts of every language, so that each query has a bridge;
            None if none does.
    """

    id: str
    model: str
    dim: int
    token_dim: int
    max_tokens: int
    scripts: frozenset[str]
    calibration: Calibration
    token_mark: float = 0.0
    across: Across | None = None

    def no_tokens(self) -> NDArray[np.int8]:
        """Return empty token vectors: (0, token_dim) int8."""
        return np.empty((0, self.token_dim), np.int8)


DIGEST_BYTES = 16


class Embedding(Struct, frozen=True, kw_only=True, eq=False):
    """A text as vectors.

    Attributes:
        vector: (dim,) float32, of length 1, except for a query embedded by two models; its products with stored ones
            are in [-1, 1] in any case.
        tokens: (n, token_dim) int8, n at most 128: unit vectors times 127, one a token in order, special tokens left
            out; n is 0 when the vector came from the caller.
        digest: DIGEST_BYTES of a hash of all inputs of the vectors; empty if they must not be found by it.
        bridge: Embedding of a query's translation, if any; its products with stored texts are cosines.
        prose: Of a bridge, the vector that is compared with prose; None if that is `vector`, as for code.
    """

    vector: NDArray[np.float32]
    tokens: NDArray[np.int8]
    digest: bytes = b""
    bridge: Embedding | None = None
    prose: NDArray[np.float32] | None = None


def given_embedding(field: str, vector: QueryVector, space: EmbeddingSpace) -> Embedding:
    """Check a vector made by the caller, at this path of the request; returns its embedding, without token vectors.

    A vector that names no space is taken to be of this one. Raises: EmbSpaceMismatch, InvalidRequest.
    """
    if vector.emb_space and vector.emb_space != space.id:
        raise EmbSpaceMismatch(f"{field}.emb_space", vector.emb_space, space.id)
    if len(vector.values) != space.dim:
        raise InvalidRequest(f"{field}.values", f"has {len(vector.values)} components; the space has {space.dim}")
    return Embedding(vector=vector.values, tokens=space.no_tokens())
