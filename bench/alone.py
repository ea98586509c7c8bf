"""Models without Hummock: tokenizers and onnxruntime, one text an inference on one core, as the service runs them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
from tokenizers import Tokenizer
from tokenizers.normalizers import BertNormalizer

from hummock.models import EmbeddingModel, ModelDescription, PairDescription
from hummock.models.description import GRAPH_FILE, TOKENIZER_FILE, Pooling
from hummock.models.pair import weights


class ModelAlone:
    """A model, or both of a pair one after the other: texts in, hidden states out, and nothing done with them."""

    def __init__(self, model: EmbeddingModel, models_dir: Path) -> None:
        self._model = model
        parts = model.parts if isinstance(model, PairDescription) else (model,)
        self._sessions = [TextSession(part, models_dir / part.name) for part in parts]

    def run_document(self, text: str) -> None:
        """Tokenises and infers a stored text."""
        for session in self._sessions:
            session.run(text)

    def run_query(self, text: str) -> None:
        """The same of a query, each model with its prefix; one of a pair that is not asked does nothing."""
        asked = weights(self._model, text) if isinstance(self._model, PairDescription) else (1.0,)
        for session, weight in zip(self._sessions, asked, strict=True):
            if weight > 0:
                session.run(session.query_prefix + text)

    def cut(self, text: str, tokens: int) -> str | None:
        """The beginning of a text that has so many tokens (the first model's) of its own; None where it has fewer."""
        return self._sessions[0].cut(text, tokens)


class TextSession:
    """The tokenizer and the graph of one model."""

    def __init__(self, model: ModelDescription, directory: Path) -> None:
        self.query_prefix = model.query_prefix
        self._tokenizer = Tokenizer.from_file(str(directory / TOKENIZER_FILE))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(model.max_tokens)
        if model.lowercase:
            self._tokenizer.normalizer = BertNormalizer(lowercase=True)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._session = onnxruntime.InferenceSession(
            str(directory / GRAPH_FILE), options, providers=["CPUExecutionProvider"]
        )
        self._inputs = {node.name for node in self._session.get_inputs()}
        self._outputs = [model.hidden_output, *(["sentence_embedding"] if model.pooling is Pooling.GRAPH else [])]

    def run(self, text: str) -> None:
        """Tokenises and infers."""
        ids = np.asarray([self._tokenizer.encode(text).ids], np.int64)
        offered = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        self._session.run(self._outputs, {name: value for name, value in offered.items() if name in self._inputs})

    def cut(self, text: str, tokens: int) -> str | None:
        """The beginning of a text that has so many tokens of its own; None where it has fewer."""
        offsets = self._tokenizer.encode(text, add_special_tokens=False).offsets
        return text[: offsets[tokens - 1][1]] if len(offsets) >= tokens else None
