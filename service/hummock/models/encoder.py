"""A tokenizer and an ONNX session: text in, hidden states out, one text an inference; long texts in pieces.

Also what embedders and cross-encoders share: how graphs are opened.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Protocol

import numpy as np
import onnxruntime
import sentencepiece
from numpy.typing import NDArray
from tokenizers import Encoding
from tokenizers import Tokenizer as TokenizerFile
from tokenizers.normalizers import BertNormalizer

from hummock.models.description import GRAPH_FILE, PIECES_FILE, ModelDescription, Pooling
from hummock.models.errors import ModelGraphUnsupported

KNOWN_INPUTS = frozenset({"input_ids", "attention_mask", "token_type_ids"})
SENTENCE_OUTPUT = "sentence_embedding"
OVERLAP = 0.1

Places = tuple[list[tuple[int, int]], list[int | None]]
"""Start and end of each token in characters, and the number of its word."""

_TOKENS_AT_ONCE = 1 << 14
_WORD_START = "▁"

_SLOW_FUSION = "SkipLayerNormFusion"
"""An optimisation of onnxruntime that is switched off. Its fused kernel for two sums and a normalisation is not
vectorised, which took a quarter of all-MiniLM's time (docs/decisions/013)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Encoded:
    """Output of one inference, not yet normalised: `pooled` (dim,) and `hidden` (n, dim), both float32.

    A row of `hidden` is a token of the text, in order, special tokens left out; none if the graph does not give them.
    """

    pooled: NDArray[np.float32]
    hidden: NDArray[np.float32]


class Encoder:
    """Runs a model on one text at a time; safe to call from several threads.

    Texts are never batched: with dynamically quantised weights a text's vector would depend on its batch-mates, and
    padding costs more than batching gains. One call uses one core.
    """

    def __init__(self, model: ModelDescription, directory: Path, graph: Path | None = None) -> None:
        """Open the model's files, which `verify` has approved; `graph` runs in place of the published one if given.

        Raises:
            ModelGraphUnsupported: The graph's inputs or outputs are not those of the description.
        """
        self._model = model
        self._tokenizer = tokenizer = tokenizer_of(model, directory)
        self.places, self.special_tokens = tokenizer.places, tokenizer.special_tokens
        self._session = open_session(graph or directory / GRAPH_FILE)
        self._inputs = declared_inputs(self._session)
        by_graph = [SENTENCE_OUTPUT] if model.pooling is Pooling.GRAPH else []
        self._outputs = [*by_graph, *([model.hidden_output] if model.hidden_output else [])]
        check_graph(model.name, self._session, self._outputs)

    def encode(self, text: str, prefix_characters: int = 0, most_tokens: int | None = None) -> Encoded:
        """Hidden states of the text, cut to the model's window.

        Args:
            text: What to run.
            prefix_characters: How much of its beginning counts for `pooled` but has no rows in `hidden`.
            most_tokens: Cuts it shorter than the window, special tokens included.

        Raises:
            TypeError: The text holds a lone surrogate, which is no Unicode text.
        """
        tokens = self._tokenizer.encode(text)
        window = self._model.max_tokens
        kept = kept_tokens(tokens.is_special, window if most_tokens is None else min(most_tokens, window))
        outputs = self._session.run(self._outputs, self._feed(tokens.ids[kept]))
        if not self._model.hidden_output:
            pooled = np.asarray(outputs[0][0], dtype=np.float32)
            return Encoded(pooled=pooled, hidden=np.empty((0, len(pooled)), np.float32))
        hidden: NDArray[np.float32] = np.asarray(outputs[-1][0], dtype=np.float32)
        match self._model.pooling:
            case Pooling.CLS:
                pooled = hidden[0]
            case Pooling.MEAN:
                pooled = hidden.mean(axis=0)
            case Pooling.GRAPH:
                pooled = np.asarray(outputs[0][0], dtype=np.float32)
        own = ~tokens.is_special & (tokens.starts >= prefix_characters)
        return Encoded(pooled=pooled, hidden=hidden[own[kept]])

    def _feed(self, ids: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
        row = ids[np.newaxis, :]
        offered = {"input_ids": row, "attention_mask": np.ones_like(row), "token_type_ids": np.zeros_like(row)}
        return {name: value for name, value in offered.items() if name in self._inputs}


def kept_tokens(special: NDArray[np.bool_], max_tokens: int) -> NDArray[np.intp]:
    """Which tokens fit the window: from the front, and the closing special ones always."""
    count = len(special)
    if count <= max_tokens:
        return np.arange(count)
    closing = int(np.argmin(special[::-1])) if not special.all() else 0
    return np.concatenate([np.arange(max_tokens - closing), np.arange(count - closing, count)])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tokens:
    """A text's tokens, with the special ones around them.

    Attributes:
        ids: Their numbers, (n,) int64.
        is_special: Which of them are special, (n,) bool.
        starts: Where each begins in the text, in characters, (n,) int64; 0 for special ones.
    """

    ids: NDArray[np.int64]
    is_special: NDArray[np.bool_]
    starts: NDArray[np.int64]


class Tokenizer(Protocol):
    """Cuts and pads nothing, and takes every text as data. Safe to call from several threads.

    Its methods raise TypeError for a lone surrogate, which is no Unicode text.
    """

    @property
    def special_tokens(self) -> int:
        """Number of special tokens around one text."""

    def encode(self, text: str) -> Tokens:
        """The text's tokens."""

    def places(self, text: str) -> Places:
        """Where the text's own tokens lie in it."""


def tokenizer_of(model: ModelDescription, directory: Path) -> Tokenizer:
    """The tokenizer in the model's directory. Raises: ModelGraphUnsupported: Its file is none."""
    path = directory / model.tokenizer_file
    if model.tokenizer_file == PIECES_FILE:
        return SentencePieces(model.name, path)
    return TokenizersFile(model.name, path, lowercase=model.lowercase)


class TokenizersFile:
    """A file of the package `tokenizers`."""

    def __init__(self, name: str, path: Path, *, lowercase: bool) -> None:
        """Open the file. Raises: ModelGraphUnsupported: It is no tokenizer file."""
        self._tokenizer = open_tokenizer(name, path)
        if lowercase:
            self._tokenizer.normalizer = BertNormalizer(
                clean_text=True, handle_chinese_chars=True, strip_accents=True, lowercase=True
            )

    @property
    def special_tokens(self) -> int:
        """Number of special tokens around one text."""
        return self._tokenizer.num_special_tokens_to_add(is_pair=False)

    def encode(self, text: str) -> Tokens:
        """The text's tokens."""
        encoding = self._encode(text, with_special=True)
        return Tokens(
            ids=np.asarray(encoding.ids, np.int64),
            is_special=np.asarray(encoding.special_tokens_mask, np.bool_),
            starts=np.asarray([start for start, _ in encoding.offsets], np.int64),
        )

    def places(self, text: str) -> Places:
        """Where the text's own tokens lie in it; in parts, as one list for 256 KiB would hold the GIL for 90 ms."""
        encoding = self._encode(text, with_special=False)
        encoding.truncate(_TOKENS_AT_ONCE)
        offsets: list[tuple[int, int]] = []
        words: list[int | None] = []
        for part in (encoding, *encoding.overflowing):
            offsets += part.offsets
            words += part.word_ids
        return offsets, words

    def _encode(self, text: str, *, with_special: bool) -> Encoding:
        # `encode` keeps the GIL, for half a second at 256 KiB; `encode_batch` releases it.
        (encoding,) = self._tokenizer.encode_batch([text], add_special_tokens=with_special)
        return encoding


class SentencePieces:
    """A SentencePiece model, between its marks of beginning and end.

    The package `sentencepiece` keeps 128,000 pieces in 30 MB, where `tokenizers` takes 123, and is four times as fast.
    """

    special_tokens = 2

    def __init__(self, name: str, path: Path) -> None:
        """Open the model. Raises: ModelGraphUnsupported: It is no SentencePiece model."""
        try:
            self._pieces = sentencepiece.SentencePieceProcessor(model_file=str(path))
        except (RuntimeError, OSError) as error:
            raise ModelGraphUnsupported(f"model {name}: {path} is no SentencePiece model: {error}") from error
        self._around = self._pieces.bos_id(), self._pieces.eos_id()

    def encode(self, text: str) -> Tokens:
        """The text's tokens; where they begin is not told."""
        first, last = self._around
        ids = np.array([first, *self._pieces.encode(_checked(text)), last], np.int64)
        is_special = np.zeros(len(ids), np.bool_)
        is_special[[0, -1]] = True
        return Tokens(ids=ids, is_special=is_special, starts=np.zeros(len(ids), np.int64))

    def places(self, text: str) -> Places:
        """Where the text's own tokens lie in it."""
        found = self._pieces.encode(_checked(text), return_type="offset_mapping")
        word, words = -1, list[int | None]()
        for piece in found["pieces"]:
            word += piece.startswith(_WORD_START) or word < 0
            words.append(word)
        return found["offsets"], words


def _checked(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise TypeError("the text holds a lone surrogate") from error
    return text


def open_tokenizer(name: str, path: Path) -> TokenizerFile:
    """The tokenizer in a file of the package `tokenizers`, which cuts and pads nothing and takes every text as data.

    Raises: ModelGraphUnsupported: It is no tokenizer file.
    """
    try:
        tokenizer = TokenizerFile.from_file(str(path))
    except Exception as error:  # The library raises bare Exception.
        raise ModelGraphUnsupported(f"model {name}: {path} is no tokenizer file: {error}") from error
    # Files carry settings of their own: all-MiniLM's cuts and pads to 128.
    tokenizer.no_truncation()
    tokenizer.no_padding()
    # A stored text that says "[SEP]" is data, not a separator.
    tokenizer.encode_special_tokens = True
    return tokenizer


def open_session(path: Path) -> onnxruntime.InferenceSession:
    """The graph, run on one core by the calling thread. Raises: ModelGraphUnsupported: It cannot be opened."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(
            str(path), options, providers=["CPUExecutionProvider"], disabled_optimizers=[_SLOW_FUSION]
        )
    except Exception as error:  # Its error classes share no base below Exception.
        raise ModelGraphUnsupported(f"{path} cannot be opened: {error}") from error


def declared_inputs(session: onnxruntime.InferenceSession) -> frozenset[str]:
    """Inputs of the graph."""
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


def piece_spans(
    offsets: Sequence[tuple[int, int]], words: Sequence[int | None], length: int, window: int
) -> list[tuple[int, int]]:
    """Character spans of overlapping pieces that together cover a text.

    A cut falls between words where the last half of the window has such a place, else between tokens; each piece
    after the first begins about a tenth of the window before its predecessor's end.

    Args:
        offsets: Start and end of each token, in characters, ascending.
        words: For each token the number of its word; tokens of one word follow each other.
        length: Characters of the text.
        window: Most tokens of a piece, at least 2.

    Returns:
        At least one (start, end); the first starts at 0, the last ends at `length`, each starts no later than its
        predecessor ends, and after it starts.
    """
    if len(offsets) <= window:
        return [(0, length)]
    cuts = _cut_places(offsets)
    spans: list[tuple[int, int]] = []
    first = 0
    while len(offsets) - first > window:
        end = _last_cut(cuts, words, first, window)
        if end is None:
            break
        spans.append((_start(offsets, first), offsets[end][0]))
        first = _first_cut(cuts, words, max(end - int(window * OVERLAP), first + 1), end)
    spans.append((_start(offsets, first), length))
    return spans


def _cut_places(offsets: Sequence[tuple[int, int]]) -> list[bool]:
    """For each token, whether a text may be cut before it: several tokens can stand for one character."""
    return [False, *(start >= end and start > 0 for (_, end), (start, _) in pairwise(offsets))]


def _last_cut(cuts: Sequence[bool], words: Sequence[int | None], first: int, window: int) -> int | None:
    """Where the piece that starts at `first` ends: the last word start of its second half, else the last place."""
    allowed = [index for index in range(first + window, first, -1) if cuts[index]]
    late = (index for index in allowed if index > first + window // 2 and words[index] != words[index - 1])
    return next(late, allowed[0] if allowed else None)


def _first_cut(cuts: Sequence[bool], words: Sequence[int | None], lowest: int, end: int) -> int:
    """Where the next piece starts: the first word start from `lowest`, else the first place, at most `end`."""
    allowed = [index for index in range(lowest, end + 1) if cuts[index]]
    return next((index for index in allowed if words[index] != words[index - 1]), allowed[0])


def _start(offsets: Sequence[tuple[int, int]], index: int) -> int:
    """Where a piece starts that starts with that token; space before the first token belongs to it."""
    return offsets[index][0] if index else 0
