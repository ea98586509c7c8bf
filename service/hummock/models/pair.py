"""Two models as one: a text's vectors lie side by side, and a query says how much it asks of each.

Stored are both unit vectors, divided by √2: the whole is a unit vector, and two stored texts have the mean of the two
cosines. A query's halves are multiplied by √2 and its weights, which sum to 1: its product with a stored text is the
weighted sum of the two cosines, and never above 1. The weights follow the query's script.

A chunk is read by the model that knows its language, and one in both languages by both. The model that does not know it
reads the beginning of the memory's first chunk alone, and that is its half of every later chunk too.

Token vectors are those of the model that reads the text's script. Their last component says whose they are: those of
one model have a product above 0, those of different models one below 0, and never one that is large by chance.
"""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
from msgspec.structs import replace as replace_struct
from numpy.typing import NDArray

from hummock.core.embedding import Embedding, EmbeddingSpace
from hummock.core.threads import Cores
from hummock.models.description import PairDescription
from hummock.models.single import SingleModel
from hummock.models.space import joined_space
from hummock.text.languages import MOSTLY, han_share

_ROOT = np.float32(np.sqrt(2))

ALMOST_ALL = 0.8
"""Share of Chinese from which a text is cut for the first model's window, and the second does not know its language."""

A_LITTLE = 0.05
"""Share of Chinese below which the first model does not know a text's language. A Chinese question asks that model
alone, so it also reads code with some comments in Chinese."""

BEGINNING_TOKENS = 192
"""What a model reads of a memory whose language it does not know; with 128 fewer questions find their code."""


class PairModel:
    """Embeds a text with both models.

    A query is read by both at once while a core is free, since someone waits for it; else, and stored texts always, by
    one model after the other.
    """

    def __init__(self, pair: PairDescription, first: SingleModel, second: SingleModel, slots: int) -> None:
        """Join two models, the one that reads Chinese first, each with its basis of `bases_of`."""
        self._pair = pair
        self._first = first
        self._second = second
        self._ruler = min(first, second, key=lambda model: model.space.max_tokens)
        self.space = joined_space(pair, [first.space, second.space])
        self._cores = Cores(slots, "embed-other")
        self.close = self._cores.close

    def embed_query(self, text: str, gloss: str | None = None) -> Embedding:
        """Embed a query with both models; its vector has a length of at most √2.

        With a gloss the second model reads that in place of the query, and its bridge asks that model alone. A query
        that is not Chinese has one too, which asks the first model alone.
        """
        first_weight, second_weight = weights(self._pair, text)
        of_first = han_share(text) >= MOSTLY

        def by_first() -> Embedding:
            return self._first.embed_query(text, with_tokens=of_first)

        def by_second() -> Embedding:
            said = text if gloss is None else gloss
            return self._second.embed_query(said, with_tokens=gloss is not None or not of_first)

        with self._cores.one():
            # A Chinese query need not wait for a model of which it asks nothing.
            if second_weight <= 0 and gloss is None:
                first, second = by_first(), _nothing(self._second.space)
            elif first_weight <= 0:
                first, second = _nothing(self._first.space), by_second()
            else:
                second, first = self._cores.at_once(by_second, by_first)
        whole = _joined(first, second, _ROOT * np.float32(first_weight), _ROOT * np.float32(second_weight), of_first)
        if gloss is not None:
            return replace_struct(whole, bridge=self._by_second_alone(second))
        # For other queries the first model is asked too: only its vector finds Chinese texts.
        return whole if of_first or first_weight <= 0 else replace_struct(whole, bridge=self._by_first_alone(first))

    def embed_chunk(self, text: str, first: Embedding | None, *, gives_way: bool = False) -> Embedding:
        """Embed a chunk of a stored text. A thread that gives way to all others takes no core from a query."""
        by_first, by_second = whole_readers(text)
        of_first, dim = han_share(text) >= MOSTLY, self._first.space.dim
        left, right = (None, None) if first is None else (first.vector[:dim], first.vector[dim:])
        with nullcontext() if gives_way else self._cores.one():
            halves = (
                _stored(self._first, text, knows=by_first, with_tokens=of_first, beginning=left),
                _stored(self._second, text, knows=by_second, with_tokens=not of_first, beginning=right),
            )
        tokens = halves[0 if of_first else 1].tokens
        return Embedding(vector=np.concatenate([half.vector for half in halves]), tokens=tokens)

    def split(self, header: str, body: str) -> list[str]:
        """Chunk texts that fit the smaller window, as that model cuts them; of a Chinese text the first model's."""
        is_chinese = han_share(f"{header}\n{body}") >= ALMOST_ALL
        return (self._first if is_chinese else self._ruler).split(header, body)

    def _by_second_alone(self, second: Embedding) -> Embedding:
        vector = np.concatenate([np.zeros(self._first.space.dim, np.float32), _ROOT * second.vector])
        return Embedding(vector=vector, tokens=second.tokens)

    def _by_first_alone(self, first: Embedding) -> Embedding:
        vector = np.concatenate([_ROOT * first.vector, np.zeros(self._second.space.dim, np.float32)])
        return Embedding(vector=vector, tokens=self._first.space.no_tokens())


def weights(pair: PairDescription, query: str) -> tuple[float, float]:
    """How much a query asks of each model, by its script: both in [0, 1], their sum 1. One of 0 is not run."""
    share = han_share(query)
    of_first = pair.first_weight_latin * (1 - share) + pair.first_weight_han * share
    return of_first, 1 - of_first


def whole_readers(chunk: str) -> tuple[bool, bool]:
    """Whether the first and the second model know a stored chunk's language and read all of it; one of them does."""
    share = han_share(chunk)
    return share >= A_LITTLE, share < ALMOST_ALL


def _nothing(space: EmbeddingSpace) -> Embedding:
    return Embedding(vector=np.zeros(space.dim, np.float32), tokens=space.no_tokens())


def _stored(
    model: SingleModel, text: str, *, knows: bool, with_tokens: bool, beginning: NDArray[np.float32] | None
) -> Embedding:
    """A model's half of a chunk, of which it `knows` the language or not.

    `beginning` is its half of the first chunk, which serves where it does not know; None if this is the first.
    """
    if not knows and beginning is not None:
        return Embedding(vector=beginning, tokens=model.space.no_tokens())
    read = model.embed_document(text, with_tokens=with_tokens, most_tokens=None if knows else BEGINNING_TOKENS)
    return Embedding(vector=read.vector * (1 / _ROOT), tokens=read.tokens)


def _joined(
    first: Embedding, second: Embedding, first_scale: np.float32, second_scale: np.float32, of_first: bool
) -> Embedding:
    vector = np.concatenate([first.vector * first_scale, second.vector * second_scale])
    return Embedding(vector=vector, tokens=first.tokens if of_first else second.tokens)
