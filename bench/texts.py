"""Real vectors: the texts of the retrieval data sets, cut as the service cuts them and at other offsets too."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hummock.core.embedding import Embedding
from hummock.models.embedder import OnnxEmbedder

Vectors = NDArray[np.float32]

_BLOCK_TEXTS = 1024
_CORPORA = (
    "xquad-en-zh/corpus.zh.jsonl",
    "xquad-en-zh/corpus.en.jsonl",
    "cmrc2018-dev-zh/corpus.jsonl",
    "cosqa-code/corpus.jsonl",
)
_ASKED = {
    "xquad zh": "xquad-en-zh/queries.zh.jsonl",
    "xquad en": "xquad-en-zh/queries.en.jsonl",
    "cmrc zh": "cmrc2018-dev-zh/queries.jsonl",
    "cosqa code": "cosqa-code/queries.jsonl",
}
_MOST_OF_ONE = 2500
_SHORTEST, _LONGEST = 16, 64
"""Characters of a piece."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """What is embedded.

    Attributes:
        documents: Whole texts of the corpora, at most 2,500 of one.
        queries: By data set, at most as many as were asked for of each.
    """

    documents: tuple[str, ...]
    queries: dict[str, tuple[str, ...]]

    @classmethod
    def read(cls, shared: Path, queries: int) -> Texts:
        """Those of `shared`/datasets. Raises: OSError."""
        folder = shared / "datasets"
        documents = [text for name in _CORPORA for text in islice(_texts(folder / name), _MOST_OF_ONE)]
        asked = {name: tuple(islice(_texts(folder / path), queries)) for name, path in _ASKED.items()}
        return cls(documents=tuple(documents), queries=asked)

    def pieces(self, count: int) -> list[str]:
        """Distractors: parts of the documents at seeded random offsets, no two alike, overlapping each other."""
        random_of = random.Random(20)  # noqa: S311 - a seed, not a secret
        pieces: dict[str, None] = {}
        while len(pieces) < count:
            text = random_of.choice(self.documents)
            length = random_of.randint(_SHORTEST, _LONGEST)
            start = random_of.randint(0, max(len(text) - length, 0))
            pieces[text[start : start + length].strip() or text] = None
        return list(pieces)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cached:
    """Vectors of a model, kept in a folder so that the model runs once."""

    embedder: OnnxEmbedder
    folder: Path

    def chunks(self, texts: Sequence[str]) -> Vectors:
        """(n, dim) of all chunks of these texts."""
        chunks = [chunk for text in texts for chunk in self.embedder.split("", text)]
        return self._vectors("document", chunks, self.embedder.embed_documents)

    def queries(self, texts: Sequence[str]) -> Vectors:
        """(n, dim), one a text."""
        return self._vectors("query", texts, lambda block: [self.embedder.embed_query(text) for text in block])

    def _vectors(
        self, role: str, texts: Sequence[str], embed: Callable[[Sequence[str]], Sequence[Embedding]]
    ) -> Vectors:
        self.folder.mkdir(parents=True, exist_ok=True)
        blocks = []
        for start in range(0, len(texts), _BLOCK_TEXTS):
            block = texts[start : start + _BLOCK_TEXTS]
            key = blake2b("\0".join((self.embedder.space.id, role, *block)).encode(), digest_size=12).hexdigest()
            path = self.folder / f"{key}.npy"
            if not path.exists():
                vectors = np.stack([each.vector for each in embed(block)])
                partial = path.with_suffix(".part.npy")
                np.save(partial, vectors)
                partial.rename(path)
            blocks.append(np.load(path))
        return np.concatenate(blocks)


def _texts(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)["text"]
