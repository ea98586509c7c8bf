"""mem0 with `infer=False` and an embedder that looks vectors up: no model takes part.

It searches by vector alone here: its keyword search needs an encoder that is downloaded. MMR is done in NumPy.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

# Read when it is imported; it would write into the user's home.
os.environ["MEM0_TELEMETRY"] = "False"
os.environ["MEM0_DIR"] = str(Path(tempfile.gettempdir()) / "mem0-bench")

import numpy as np
from mem0 import Memory as Mem0
from mem0.embeddings.base import EmbeddingBase

from bench.peers.work import CANDIDATES, Memory, Question, Search, Vectors, different, run


class _LookedUp(EmbeddingBase):  # type: ignore[misc]  # seen as Any where mem0 is not installed
    """Vectors that are known before."""

    def __init__(self, vectors: dict[str, Vectors]) -> None:
        super().__init__()
        self.vectors = vectors

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        vector: list[float] = self.vectors[text].tolist()
        return vector


def _opened(directory: Path, vectors: dict[str, Vectors], dim: int) -> Mem0:
    store = {
        "path": str(directory / "qdrant"),
        "on_disk": True,
        "collection_name": "bench",
        "embedding_model_dims": dim,
    }
    unused = {"provider": "openai", "config": {"api_key": "unused"}}
    settings = {
        "vector_store": {"provider": "qdrant", "config": store},
        "embedder": unused,
        "llm": unused,
        "history_db_path": str(directory / "history.db"),
    }
    memory = Mem0.from_config(settings)
    memory.embedding_model = _LookedUp(vectors)
    return memory


def store(memories: Sequence[Memory], directory: Path) -> None:
    """One call a memory: the project is its user, each tag a field of its metadata."""
    vectors = {memory.text: memory.vector for memory in memories}
    into = _opened(directory, vectors, len(memories[0].vector))
    for memory in memories:
        tags = {f"tag_{tag}": True for tag in memory.tags}
        into.add(memory.text, user_id=memory.project, metadata=tags, infer=False)
    into.vector_store.client.close()
    np.savez(directory / "vectors.npz", texts=list(vectors), vectors=np.stack(list(vectors.values())))


@contextmanager
def opened(directory: Path) -> Iterator[Search]:
    """One search of mem0's, whose 50 results are made different from each other."""
    with np.load(directory / "vectors.npz") as saved:
        vectors = dict(zip(saved["texts"].tolist(), saved["vectors"], strict=True))
    memory = _opened(directory, vectors, next(iter(vectors.values())).size)
    asked: dict[str, Vectors] = {}
    memory.embedding_model = _LookedUp(asked)

    def search(question: Question) -> list[str]:
        asked[question.terms] = question.vector
        where = {"user_id": question.project, f"tag_{question.tag}": True}
        found = memory.search(question.terms, top_k=CANDIDATES, filters=where, threshold=0.0)["results"]
        texts = [each["memory"] for each in found]
        chosen = different(question.vector, np.stack([vectors[text] for text in texts]))
        return [texts[row] for row in chosen]

    yield search
    memory.vector_store.client.close()


if __name__ == "__main__":
    run("mem0ai", store, opened)
