"""Three models as one: one that knows Chinese, one that knows English, and one that knows all languages.

A stored text is read by the model of its language and by the common one. Its vector has two parts: what the model of
its language says, padded with zeros to the larger of the two, and what the common model says. Both are unit vectors,
divided by √2: the whole is a unit vector, and two stored texts of one language have the mean of the two cosines.

A query has one vector for texts of its own language, and a bridge for those of the other one, for prose and code apart.
Each asks for a weighted sum of cosines, so that its parts are multiplied by √2 and their weights. The spaces of the two
models have nothing to do with each other: a part of one has a product near 0 with a part of the other.

Token vectors are those of the model that reads the text's language; their last component says whose (`space.py`).
Where the weights come from: docs/decisions/013.
"""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from hummock.core.embedding import Embedding
from hummock.core.threads import Cores
from hummock.models.description import TrioDescription
from hummock.models.single import SingleModel
from hummock.models.space import joined_space
from hummock.text.languages import MOSTLY, han_share, is_of_another

_ROOT = np.float32(np.sqrt(2))

OWN_HAN = 0.7
"""Weight of the Chinese model for a Chinese query and Chinese texts; the common model has the rest."""

OWN_LATIN = 0.9
"""Weight of the English model for a query without Chinese and texts of its language."""

GLOSS = 0.6
"""Weight of the model that reads a translation of the query, for code; prose is asked for by the common model alone."""


class TrioModel:
    """Embeds a text with the model of its language and the common one.

    What a query asks of the other models is read at the same time if a core is free.
    """

    def __init__(
        self, trio: TrioDescription, first: SingleModel, second: SingleModel, common: SingleModel, slots: int
    ) -> None:
        """Join three models; each with its basis of `bases_of`."""
        self._first, self._second, self._common = first, second, common
        self._ruler = min(first, second, key=lambda model: model.space.max_tokens)
        self.space = joined_space(trio, [model.space for model in (first, second, common)])
        self._own_dim = max(first.space.dim, second.space.dim)
        self._cores = Cores(slots, "embed-other")
        self.close = self._cores.close

    def embed_query(self, text: str, gloss: str | None = None) -> Embedding:
        """Embed a query; the other language's model reads the gloss if there is one, and else nothing.

        A query in a third language is read by the common model alone, for texts of all languages.
        """
        if is_of_another(text):
            with self._cores.one():
                common = self._by_common(text)
            whole = Embedding(vector=self._asked(None, common, 0.0), tokens=self.space.no_tokens())
            return replace(whole, bridge=whole)
        share = han_share(text)
        own, other = (self._first, self._second) if share >= MOSTLY else (self._second, self._first)
        weight = OWN_HAN if share >= MOSTLY else OWN_LATIN - (OWN_LATIN - OWN_HAN) * share / MOSTLY

        def by_own() -> Embedding:
            return own.embed_query(text)

        def by_others() -> tuple[NDArray[np.float32], Embedding | None]:
            return self._by_common(text), None if gloss is None else other.embed_query(gloss)

        with self._cores.one():
            said, (common, glossed) = self._cores.at_once(by_own, by_others)
        by_common = self._asked(None, common, 0.0)
        if glossed is None:
            bridge = Embedding(vector=by_common, tokens=self.space.no_tokens())
        else:
            by_both = self._asked(glossed.vector, common, GLOSS)
            bridge = Embedding(vector=by_both, tokens=glossed.tokens, prose=by_common)
        return Embedding(vector=self._asked(said.vector, common, weight), tokens=said.tokens, bridge=bridge)

    def embed_chunk(self, text: str, first: Embedding | None, *, gives_way: bool = False) -> Embedding:
        """Embed a chunk of a stored text. A thread that gives way to all others takes no core from a query."""
        own = self._first if han_share(text) >= MOSTLY else self._second
        with nullcontext() if gives_way else self._cores.one():
            said, common = own.embed_document(text), self._common.embed_document(text, with_tokens=False)
        return replace(said, vector=self._joined(said.vector / _ROOT, common.vector / _ROOT))

    def split(self, header: str, body: str) -> list[str]:
        """Chunk texts that fit the window of the model of the text's language."""
        is_chinese = han_share(f"{header}\n{body}") >= MOSTLY
        return (self._first if is_chinese else self._ruler).split(header, body)

    def _by_common(self, query: str) -> NDArray[np.float32]:
        return self._common.embed_query(query, with_tokens=False).vector

    def _asked(
        self, own: NDArray[np.float32] | None, common: NDArray[np.float32], weight: float
    ) -> NDArray[np.float32]:
        """A query's vector that asks `weight` of one language's model, and the rest of the common one."""
        said = np.zeros(self._own_dim, np.float32) if own is None else own * (_ROOT * np.float32(weight))
        return self._joined(said, common * (_ROOT * np.float32(1 - weight)))

    def _joined(self, own: NDArray[np.float32], common: NDArray[np.float32]) -> NDArray[np.float32]:
        whole = np.zeros(self.space.dim, np.float32)
        whole[: len(own)] = own
        whole[self._own_dim :] = common
        return whole
