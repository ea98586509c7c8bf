"""A model without Hummock: its tokenizer and onnxruntime, one text an inference on one core, as the service runs it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
from tokenizers import Tokenizer
from tokenizers.normalizers import BertNormalizer

from hummock.models import ModelDescription
from hummock.models.description import GRAPH_FILE, TOKENIZER_FILE, Pooling


class ModelAlone:
    """Texts in, hidden states out, and nothing done with them."""

    def __init__(self, model: ModelDescription, directory: Path) -> None:
        self._model = model
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
