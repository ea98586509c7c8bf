"""One model as texts in, embeddings out: an inference a call, on the caller's thread."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from hummock.core.embedding import Embedding
from hummock.models.basis import TOKEN_MARK, TokenBasis, load_centre, marked
from hummock.models.description import ModelDescription
from hummock.models.encoder import Encoder, piece_spans
from hummock.models.errors import EmbeddingNotFinite, ModelGraphUnsupported
from hummock.models.files import verify
from hummock.models.fusion import Say, served
from hummock.models.space import embedding_space
from hummock.text.languages import MOSTLY, han_share


class SingleModel:
    """An encoder and its token basis. Safe to call from several threads."""

    def __init__(
        self, model: ModelDescription, directory: Path, basis: TokenBasis, say: Say = lambda line: None
    ) -> None:
        """Verify and open the model's files.

        `directory` is the model's own; `say` is told what keeps it from running as fast as it could.

        Raises:
            ModelFileMissing: A file is not there.
            ModelFileAltered: A file is not the pinned one; nothing of it was opened.
            ModelGraphUnsupported: The files cannot be run as described.
        """
        verify(model, directory)
        self._model = model
        graph = served(model, directory)
        if graph.lack:
            say(graph.lack)
        self._encoder = Encoder(model, directory, graph.path)
        # One for all texts, or one for those of other languages and one for Chinese.
        self._bases = [marked(basis, mark) for mark in (-TOKEN_MARK, TOKEN_MARK)] if model.across else [basis]
        self._centre = load_centre(model.centre, model.dim)
        self.space = embedding_space(model, basis)
        self._prefix_tokens = len(self._encoder.places(model.document_prefix)[0])
        encoded = self._encoder.encode("warm-up")
        for shape in (encoded.pooled.shape, encoded.hidden.shape[1:]):
            if shape != (model.dim,):
                raise ModelGraphUnsupported(f"model {model.name}: its vectors have shape {shape}, not ({model.dim},)")

    def embed_query(self, text: str, gloss: str | None = None, *, with_tokens: bool = True) -> Embedding:
        """Embed a query; the prefix has no token vectors, and without `with_tokens` the query has none either.

        The gloss is not read. A model that reads across languages asks for texts of the other one by the same vectors,
        marked as theirs.
        """
        said = self._embed(self._model.query_prefix, text, with_tokens, is_query=True)
        if not self._model.across:
            return said
        tokens = said.tokens.copy()
        tokens[:, -1] *= -1
        return replace(said, bridge=replace(said, tokens=tokens))

    def embed_document(self, text: str, *, with_tokens: bool = True, most_tokens: int | None = None) -> Embedding:
        """Embed a text with the model's prefix for what is stored, cut to the window or to fewer tokens."""
        return self._embed(self._model.document_prefix, text, with_tokens, most_tokens)

    def embed_chunk(self, text: str, first: Embedding | None, *, gives_way: bool = False) -> Embedding:
        """Embed a chunk of a text like any other: what its first chunk gave says nothing about it."""
        return self.embed_document(text)

    def split(self, header: str, body: str) -> list[str]:
        """Chunk texts of a memory; see `TextModel`."""
        window = self._model.max_tokens - self._encoder.special_tokens - self._prefix_tokens
        header, header_tokens = self._short_header(header, window // 4)
        offsets, words = self._encoder.places(body)
        spans = piece_spans(offsets, words, len(body), window - header_tokens)
        beginning = f"{header}\n" if header else ""
        return [beginning + body[start:end] for start, end in spans]

    def close(self) -> None:
        """Do nothing: all of it runs on its callers' threads."""

    def _short_header(self, header: str, most_tokens: int) -> tuple[str, int]:
        offsets, _ = self._encoder.places(header)
        if len(offsets) <= most_tokens:
            return header, len(offsets)
        return header[: offsets[most_tokens - 1][1]], most_tokens

    def _embed(
        self, prefix: str, text: str, with_tokens: bool, most_tokens: int | None = None, *, is_query: bool = False
    ) -> Embedding:
        encoded = self._encoder.encode(prefix + text, len(prefix), most_tokens)
        if not np.isfinite(encoded.hidden).all():
            raise EmbeddingNotFinite(self._model.name, text)
        vector = self._unit(encoded.pooled, text)
        if self._centre:
            vector = self._unit(self._centre.taken_from(vector, text, is_query=is_query), text)
        basis = self._bases[1 if len(self._bases) > 1 and han_share(text) >= MOSTLY else 0]
        tokens = basis.compress(encoded.hidden) if with_tokens else self.space.no_tokens()
        return Embedding(vector=vector, tokens=tokens)

    def _unit(self, vector: NDArray[np.float32], text: str) -> NDArray[np.float32]:
        length = float(np.linalg.norm(vector))
        if not np.isfinite(length) or length == 0.0:
            raise EmbeddingNotFinite(self._model.name, text)
        return (vector / np.float32(length)).astype(np.float32)
