"""Opens tokenizers and ONNX graphs the way every model here is run: one text or pair a call, on one core."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import onnxruntime
from tokenizers import Tokenizer

from hummock.models.errors import ModelGraphUnsupported

__all__ = ["check_graph", "declared_inputs", "open_session", "open_tokenizer"]

KNOWN_INPUTS = frozenset({"input_ids", "attention_mask", "token_type_ids"})


def open_tokenizer(name: str, path: Path) -> Tokenizer:
    """The tokenizer in the file, which cuts and pads nothing and takes every text as data.

    Raises:
        ModelGraphUnsupported: It is no tokenizer file.
    """
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # The library raises bare Exception.
        raise ModelGraphUnsupported(f"model {name}: {path} is no tokenizer file: {error}") from error
    # Files carry settings of their own: all-MiniLM's cuts and pads to 128.
    tokenizer.no_truncation()
    tokenizer.no_padding()
    # A stored text that says "[SEP]" is data, not a separator.
    tokenizer.encode_special_tokens = True
    return tokenizer


def open_session(path: Path) -> onnxruntime.InferenceSession:
    """The graph, run on one core by whoever calls it.

    Raises:
        ModelGraphUnsupported: It cannot be opened.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # Its error classes share no base below Exception.
        raise ModelGraphUnsupported(f"{path} cannot be opened: {error}") from error


def declared_inputs(session: onnxruntime.InferenceSession) -> frozenset[str]:
    """What the graph wants to be fed."""
    return frozenset(node.name for node in session.get_inputs())


def check_graph(name: str, session: onnxruntime.InferenceSession, wanted: Sequence[str]) -> None:
    """Raise ModelGraphUnsupported unless the graph has the wanted outputs and only inputs that we can feed."""
    inputs = declared_inputs(session)
    outputs = {node.name for node in session.get_outputs()}
    absent = [output for output in wanted if output not in outputs]
    if "input_ids" not in inputs or absent or inputs - KNOWN_INPUTS:
        raise ModelGraphUnsupported(
            f"model {name}: the graph has inputs {sorted(inputs)} and outputs {sorted(outputs)}; "
            f"needed are input_ids and the outputs {list(wanted)}"
        )
