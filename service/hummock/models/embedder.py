"""The embedder that the service uses: a verified model, a queue of its own, the same bytes for the same text."""

from __future__ import annotations

import os
from collections import OrderedDict, deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Lock

import numpy as np

from hummock.core.embedding import Embedding, EmbeddingSpace
from hummock.models.basis import TokenBasis, load_basis
from hummock.models.description import ModelDescription
from hummock.models.directory import verify
from hummock.models.encoder import Encoder
from hummock.models.errors import EmbeddingNotFinite, ModelGraphUnsupported
from hummock.models.space import embedding_space
from hummock.models.split import piece_spans

__all__ = ["OnnxEmbedder", "load"]

QUERIES_KEPT = 512


def load(model: ModelDescription, directory: Path, slots: int | None = None) -> OnnxEmbedder:
    """A ready embedder of the model whose files lie in its own directory.

    Args:
        model: What it is.
        directory: Where its files are.
        slots: Inferences that run at once, each on one core; default as many as this process has cores.

    Raises:
        ModelFileMissing: A file is not there.
        ModelFileAltered: A file is not the pinned one; nothing of it was opened.
        ModelGraphUnsupported: The files cannot be run as described.
    """
    verify(model, directory)
    basis = load_basis(model.basis, model.dim)
    return OnnxEmbedder(model, Encoder(model, directory), basis, slots or _cores())


class OnnxEmbedder:
    """The port `Embedder` on onnxruntime."""

    def __init__(self, model: ModelDescription, encoder: Encoder, basis: TokenBasis, slots: int) -> None:
        _warm_up(model, encoder)
        self._model = model
        self._encoder = encoder
        self._basis = basis
        self._slots = slots
        self._space = embedding_space(model, basis)
        self._executor = ThreadPoolExecutor(max_workers=slots, thread_name_prefix="embed")
        # Someone waits for a query: it shares the cores with documents and does not queue behind them.
        self._query_executor = ThreadPoolExecutor(max_workers=slots, thread_name_prefix="embed-query")
        self._queries: OrderedDict[str, Future[Embedding]] = OrderedDict()
        self._lock = Lock()

    @property
    def space(self) -> EmbeddingSpace:
        """The space of all vectors that it gives."""
        return self._space

    def embed_query(self, text: str) -> Embedding:
        """Embed a query: with the model's query prefix, cut to its window; recent and equal ones cost nothing.

        Raises:
            EmbeddingNotFinite: The model gave NaN or infinity.
            TypeError: The text holds a lone surrogate.
        """
        with self._lock:
            waiting = self._queries.pop(text, None)
            if waiting is None:
                prefix = self._model.query_prefix
                waiting = self._query_executor.submit(self._embed, prefix + text, len(prefix))
            self._queries[text] = waiting
            if len(self._queries) > QUERIES_KEPT:
                self._queries.popitem(last=False)
        try:
            return waiting.result()
        except BaseException:
            with self._lock:
                if self._queries.get(text) is waiting:
                    del self._queries[text]
            raise

    def embed_documents(self, texts: Sequence[str]) -> list[Embedding]:
        """Embed texts as they are, cut to the window, one inference each; results in the order of the texts.

        Only a few are queued at a time, so that callers take turns.

        Raises:
            EmbeddingNotFinite: The model gave NaN or infinity.
            TypeError: A text holds a lone surrogate.
        """
        done: dict[str, Embedding] = {}
        queued: deque[tuple[str, Future[Embedding]]] = deque()
        for text in dict.fromkeys(texts):
            if len(queued) > self._slots:
                first, future = queued.popleft()
                done[first] = future.result()
            queued.append((text, self._executor.submit(self._embed, text)))
        done.update((text, future.result()) for text, future in queued)
        return [done[text] for text in texts]

    def split(self, header: str, body: str) -> list[str]:
        """Chunk texts of a memory: the header, a newline and a piece of the body; without a header the piece alone.

        The pieces overlap by a tenth and together hold every character of the body. A header of more than a quarter
        of the window is cut there.

        Raises:
            TypeError: A text holds a lone surrogate.
        """
        window = self._model.max_tokens - self._encoder.special_tokens
        header, header_tokens = self._short_header(header, window // 4)
        tokens = self._encoder.tokenise(body)
        spans = piece_spans(tokens.offsets, tokens.word_ids, len(body), window - header_tokens)
        return [_chunk_text(header, body[start:end]) for start, end in spans]

    def close(self) -> None:
        """Finish the running inferences, drop the queued ones."""
        for executor in (self._query_executor, self._executor):
            executor.shutdown(cancel_futures=True)

    def _short_header(self, header: str, most_tokens: int) -> tuple[str, int]:
        offsets = self._encoder.tokenise(header).offsets
        if len(offsets) <= most_tokens:
            return header, len(offsets)
        return header[: offsets[most_tokens - 1][1]], most_tokens

    def _embed(self, text: str, prefix_characters: int = 0) -> Embedding:
        encoded = self._encoder.encode(text, prefix_characters)
        length = float(np.linalg.norm(encoded.pooled))
        if not np.isfinite(length) or length == 0.0 or not np.isfinite(encoded.hidden).all():
            raise EmbeddingNotFinite(self._model.name, text)
        vector = (encoded.pooled / np.float32(length)).astype(np.float32)
        tokens = self._basis.compress(encoded.hidden)
        # Shared between callers through the cache.
        vector.setflags(write=False)
        tokens.setflags(write=False)
        return Embedding(vector=vector, tokens=tokens)


def _warm_up(model: ModelDescription, encoder: Encoder) -> None:
    encoded = encoder.encode("warm-up")
    for shape in (encoded.pooled.shape, encoded.hidden.shape[1:]):
        if shape != (model.dim,):
            raise ModelGraphUnsupported(f"model {model.name}: its vectors have shape {shape}, not ({model.dim},)")


def _chunk_text(header: str, piece: str) -> str:
    return f"{header}\n{piece}" if header else piece


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
