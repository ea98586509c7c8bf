"""A tokenizer and an ONNX session: text in, hidden states out, one text an inference."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer
from tokenizers.normalizers import BertNormalizer

from hummock.models.description import GRAPH_FILE, TOKENIZER_FILE, ModelDescription, Pooling
from hummock.models.session import check_graph, declared_inputs, open_session, open_tokenizer

__all__ = ["Encoded", "Encoder"]

SENTENCE_OUTPUT = "sentence_embedding"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Encoded:
    """What one inference gave, not yet normalised.

    Attributes:
        pooled: (dim,) float32.
        hidden: (n, dim) float32, one row a token of the text in order, special tokens left out.
    """

    pooled: NDArray[np.float32]
    hidden: NDArray[np.float32]


class Encoder:
    """Runs a model on one text at a time; safe to call from several threads.

    Texts are never batched: with dynamically quantised weights a text's vector would depend on its batch-mates, and
    padding costs more than batching gains. One call uses one core.
    """

    def __init__(self, model: ModelDescription, directory: Path) -> None:
        """Open the model's files, which `directory.verify` has approved.

        Raises:
            ModelGraphUnsupported: The graph's inputs or outputs are not those of the description.
        """
        self._model = model
        self._tokenizer = _open_tokenizer(model, directory / TOKENIZER_FILE)
        self._session = open_session(directory / GRAPH_FILE)
        self._inputs = declared_inputs(self._session)
        self._outputs = [model.hidden_output] + ([SENTENCE_OUTPUT] if model.pooling is Pooling.GRAPH else [])
        check_graph(model.name, self._session, self._outputs)

    def tokenise(self, text: str) -> Encoding:
        """The text's tokens with offsets, special tokens left out, nothing cut off.

        Raises:
            TypeError: The text holds a lone surrogate, which is no Unicode text.
        """
        return self._tokenizer.encode(text, add_special_tokens=False)

    @property
    def special_tokens(self) -> int:
        """How many special tokens surround one text."""
        return self._tokenizer.num_special_tokens_to_add(is_pair=False)

    def encode(self, text: str, prefix_characters: int = 0) -> Encoded:
        """Hidden states of the text, cut to the model's window.

        Args:
            text: What to run.
            prefix_characters: How much of its beginning counts for `pooled` but has no rows in `hidden`.

        Raises:
            TypeError: The text holds a lone surrogate, which is no Unicode text.
        """
        encoding = self._tokenizer.encode(text)
        special = np.asarray(encoding.special_tokens_mask, dtype=np.bool_)
        kept = _kept_tokens(special, self._model.max_tokens)
        ids = np.asarray(encoding.ids, dtype=np.int64)[kept]
        outputs = self._session.run(self._outputs, self._feed(ids))
        hidden: NDArray[np.float32] = np.asarray(outputs[0][0], dtype=np.float32)
        match self._model.pooling:
            case Pooling.CLS:
                pooled = hidden[0]
            case Pooling.MEAN:
                pooled = hidden.mean(axis=0)
            case Pooling.GRAPH:
                pooled = np.asarray(outputs[1][0], dtype=np.float32)
        starts = np.asarray([start for start, _ in encoding.offsets], dtype=np.int64)
        own = ~special & (starts >= prefix_characters)
        return Encoded(pooled=pooled, hidden=hidden[own[kept]])

    def _feed(self, ids: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
        row = ids[np.newaxis, :]
        offered = {"input_ids": row, "attention_mask": np.ones_like(row), "token_type_ids": np.zeros_like(row)}
        return {name: value for name, value in offered.items() if name in self._inputs}


def _kept_tokens(special: NDArray[np.bool_], max_tokens: int) -> NDArray[np.intp]:
    """Which tokens fit the window: from the front, and the closing special ones always."""
    count = len(special)
    if count <= max_tokens:
        return np.arange(count)
    closing = int(np.argmin(special[::-1])) if not special.all() else 0
    return np.concatenate([np.arange(max_tokens - closing), np.arange(count - closing, count)])


def _open_tokenizer(model: ModelDescription, path: Path) -> Tokenizer:
    tokenizer = open_tokenizer(model.name, path)
    if model.lowercase:
        tokenizer.normalizer = BertNormalizer(
            clean_text=True, handle_chinese_chars=True, strip_accents=True, lowercase=True
        )
    return tokenizer
