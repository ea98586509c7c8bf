"""Toy models for tests and benches, also on machines without real ones: random weights, the real code path.

The embedder knows letters, not meaning: its vectors are close where texts share words or Chinese characters. Token
vectors are the random embeddings of pieces of words, which two almost idle layers leave nearly as they are; the mean of
a text is thus a random projection of its bag of pieces. The cross-encoder has XLM-R's shape and pair template; its
scores differ by pair and mean nothing.
"""

from __future__ import annotations

import itertools
import json
import string
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from tokenizers import Tokenizer
from tokenizers.models import Unigram, WordPiece
from tokenizers.normalizers import NFKC, BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer, Metaspace
from tokenizers.processors import TemplateProcessing

from hummock.core.embedding import Calibration
from hummock.models.convert import LAYER_PARTS, BertCheckpoint, BertShape, Float32Array, require_converter, write_int8
from hummock.models.description import (
    DESCRIPTION_FILE,
    GRAPH_FILE,
    RERANKER,
    TOKENIZER_FILE,
    ModelDescription,
    ModelFile,
    Pooling,
    RerankerDescription,
    read_description,
)
from hummock.models.files import is_present, publish, sha256_of, staging, turn, verify
from hummock.models.fusion import derive

if TYPE_CHECKING:
    import onnx

TINY, TINY_FLOAT = "tiny", "tiny-float"
TINY_RERANKER = "tiny-reranker"

_DIM = 64
_INNER = 128
_SHAPE = BertShape(layers=2, heads=4, hidden=_DIM, layer_norm_epsilon=1e-12)
_WINDOW = 128
_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
# How far layers of random weights change a state: hardly, so that a text stays the sum of its pieces.
_IDLE = 0.02
_FAINT = 0.002

_RERANKER_SHAPE = BertShape(layers=2, heads=4, hidden=_DIM, layer_norm_epsilon=1e-5, first_position=2)
_RERANKER_WINDOW = 64
_RERANKER_SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
# Much, so that scores differ.
_LIVELY = 0.2
_HAN = range(0x4E00, 0xA000)


def build_tiny(models_directory: Path, *, is_int8: bool = True) -> ModelDescription:
    """Return the toy model in `<models directory>/tiny`, built if missing; the same on every run.

    Products in int8 differ between processors: those without VNNI cut off large sums. With `is_int8` false the weights
    are float32 and vectors differ in their last digits only; that model is `tiny-float`.

    Raises:
        ConverterMissing: The extra `convert` is not installed.
        ModelFileAltered: It is there, but its files are not those that were built.
        ModelsDirectoryUnusable: Nothing can be written there.
    """
    name = TINY if is_int8 else TINY_FLOAT
    there = _there(models_directory, name)
    if isinstance(there, ModelDescription):
        return there
    require_converter()
    with turn(models_directory):
        there = _there(models_directory, name)  # Another process may have been first.
        return there if isinstance(there, ModelDescription) else _build(models_directory, name)


def build_tiny_reranker(models_directory: Path) -> RerankerDescription:
    """Return the toy cross-encoder in `<models directory>/tiny-reranker`, built if missing; see `build_tiny`."""
    there = _there(models_directory, TINY_RERANKER)
    if isinstance(there, RerankerDescription):
        return there
    require_converter()
    with turn(models_directory), staging(TINY_RERANKER, models_directory) as staged:
        _reranker_tokenizer().save(str(staged / TOKENIZER_FILE), pretty=False)
        write_int8(build_cross_encoder(tiny_cross_encoder()), staged / GRAPH_FILE)
        model = RerankerDescription(
            name=TINY_RERANKER, licence="Apache-2.0", files=_files(staged), sources=(), max_tokens=_RERANKER_WINDOW
        )
        write_description(model, staged)
        publish(staged, models_directory / TINY_RERANKER)
    return model


def build_cross_encoder(checkpoint: BertCheckpoint) -> onnx.ModelProto:
    """The encoder of an XLM-R and its classification head with one label, in float32.

    Inputs `input_ids`, `attention_mask`, each int64 (batch, sequence): that family has one token type. Output `logits`
    (batch, 1). The head's weights are `classifier.dense` and `classifier.out_proj`.
    """
    from hummock.models.bert_graph import GraphBuilder

    graph = GraphBuilder(checkpoint, ("input_ids", "attention_mask"))
    zero = graph.constant("head/first", np.asarray(0, dtype=np.int64))

    def linear(name: str, state: str, output: str) -> str:
        product = graph.matmul(name, state, f"{output}/product")
        return graph.add("Add", [product, graph.weight(f"{name}.bias")], output)

    first = graph.add("Gather", [graph.encoder(), zero], "head/cls", axis=1)
    inner = graph.add("Tanh", [linear("classifier.dense", first, "head/dense")], "head/tanh")
    linear("classifier.out_proj", inner, "logits")
    return graph.model(logits=["batch", 1])


def write_description(model: ModelDescription | RerankerDescription, directory: Path) -> None:
    """Write the description to the model's directory, without sources and conversion."""
    content: dict[str, object] = {name: getattr(model, name) for name in ("name", "licence", "max_tokens")}
    content["files"] = {file.name: file.sha256 for file in model.files}
    if isinstance(model, ModelDescription):
        plain = ("dim", "query_prefix", "document_prefix", "hidden_output", "lowercase")
        content |= {name: getattr(model, name) for name in plain} | asdict(model.calibration)
        content |= {"pooling": model.pooling.value, "scripts": sorted(model.scripts)}
    else:
        content |= {"task": RERANKER, "score_output": model.score_output}
    text = json.dumps(content, ensure_ascii=False, indent=2) + "\n"
    (directory / DESCRIPTION_FILE).write_text(text, encoding="utf-8")


def tiny_cross_encoder() -> BertCheckpoint:
    """The weights of the toy cross-encoder, the same every time."""
    random = np.random.default_rng(7421)
    positions = _RERANKER_WINDOW + _RERANKER_SHAPE.first_position
    tables = {"word": len(_pieces()), "position": positions, "token_type": 1}
    weights = {
        f"embeddings.{table}_embeddings.weight": random.standard_normal((rows, _DIM)).astype(np.float32)
        for table, rows in tables.items()
    }
    weights |= _layer_norm("embeddings.LayerNorm", _DIM) | _layers(_RERANKER_SHAPE, _LIVELY, random)
    weights |= _linear("classifier.dense", _DIM, _DIM, _LIVELY, random)
    weights |= _linear("classifier.out_proj", 1, _DIM, _LIVELY, random)
    return BertCheckpoint(shape=_RERANKER_SHAPE, weights=weights)


def _there(models_directory: Path, name: str) -> ModelDescription | RerankerDescription | None:
    model = read_description(models_directory, name)
    if model is None or not is_present(model, models_directory / name):
        return None
    verify(model, models_directory / name)
    return model


def _build(models_directory: Path, name: str) -> ModelDescription:
    import onnx

    from hummock.models.bert_graph import build_graph

    vocabulary = _vocabulary()
    with staging(name, models_directory) as staged:
        _tokenizer(vocabulary).save(str(staged / TOKENIZER_FILE), pretty=False)
        graph = build_graph(_checkpoint(len(vocabulary)), Pooling.MEAN)
        if name == TINY:
            write_int8(graph, staged / GRAPH_FILE)
        else:
            onnx.save(graph, staged / GRAPH_FILE)
        model = ModelDescription(
            name=name,
            licence="Apache-2.0",
            files=_files(staged),
            sources=(),
            pooling=Pooling.MEAN,
            dim=_DIM,
            max_tokens=_WINDOW,
            query_prefix="",
            scripts=frozenset({"han", "latin"}),
            # Measured as for the registry's models.
            calibration=Calibration(unrelated_latin=0.11, unrelated_han=0.11, near_twin_bar=0.9),
        )
        write_description(model, staged)
        if name == TINY:
            derive(model, staged, staged, lambda line: None)
        publish(staged, models_directory / name)
    return model


def _files(directory: Path) -> tuple[ModelFile, ...]:
    return tuple(ModelFile(name=name, sha256=sha256_of(directory / name)) for name in (GRAPH_FILE, TOKENIZER_FILE))


def _vocabulary() -> dict[str, int]:
    """Chinese characters, and runs of up to three letters so that English words keep much of their identity."""
    letters = string.ascii_lowercase
    runs = ["".join(run) for size in (1, 2, 3) for run in itertools.product(letters, repeat=size)]
    pieces = [*runs, *string.digits]
    marks = [*string.punctuation, *"，。！？；：、（）《》【】“”‘’…—·￥"]
    tokens = [*_SPECIAL, *pieces, *(f"##{piece}" for piece in pieces), *marks, *map(chr, _HAN)]
    return {token: index for index, token in enumerate(tokens)}


def _tokenizer(vocabulary: dict[str, int]) -> Tokenizer:
    tokenizer = Tokenizer(WordPiece(vocabulary, unk_token="[UNK]"))  # noqa: S106  (a token of a vocabulary)
    tokenizer.normalizer = BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = BertPreTokenizer()
    ends = [(token, vocabulary[token]) for token in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    return tokenizer


def _checkpoint(vocabulary_size: int) -> BertCheckpoint:
    random = np.random.default_rng(7420)
    words = random.standard_normal((vocabulary_size, _DIM)).astype(np.float32)
    words[[_SPECIAL.index(token) for token in ("[PAD]", "[CLS]", "[SEP]")]] = 0  # They take on what the text says.
    weights = {
        "embeddings.word_embeddings.weight": words,
        "embeddings.position_embeddings.weight": np.zeros((_WINDOW, _DIM), dtype=np.float32),
        "embeddings.token_type_embeddings.weight": np.zeros((2, _DIM), dtype=np.float32),
        **_layer_norm("embeddings.LayerNorm", _DIM),
    }
    # Gives the empty text a direction too.
    weights["embeddings.LayerNorm.bias"] = (_FAINT * random.standard_normal(_DIM)).astype(np.float32)
    weights |= _layers(_SHAPE, _IDLE, random)
    return BertCheckpoint(shape=_SHAPE, weights=weights)


def _pieces() -> list[str]:
    """Special tokens, then single characters; all others are unknown."""
    return [*_RERANKER_SPECIAL, "▁", *string.ascii_letters, *string.digits, *string.punctuation, *map(chr, _HAN)]


def _reranker_tokenizer() -> Tokenizer:
    tokenizer = Tokenizer(Unigram([(piece, -1.0) for piece in _pieces()], unk_id=_RERANKER_SPECIAL.index("<unk>")))
    tokenizer.normalizer = NFKC()
    tokenizer.pre_tokenizer = Metaspace()
    tokenizer.post_processor = TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B </s>",
        special_tokens=[(token, _RERANKER_SPECIAL.index(token)) for token in ("<s>", "</s>")],
    )
    tokenizer.add_special_tokens(list(_RERANKER_SPECIAL))
    return tokenizer


def _layers(shape: BertShape, scale: float, random: np.random.Generator) -> dict[str, Float32Array]:
    """The weights of all layers; `scale` is the deviation of one."""
    weights: dict[str, Float32Array] = {}
    for index, part in itertools.product(range(shape.layers), LAYER_PARTS):
        name = f"encoder.layer.{index}.{part}"
        if part.endswith("LayerNorm"):
            weights |= _layer_norm(name, shape.hidden)
            continue
        outputs = _INNER if part == "intermediate.dense" else shape.hidden
        inputs = _INNER if part == "output.dense" else shape.hidden
        weights |= _linear(name, outputs, inputs, scale, random)
    return weights


def _layer_norm(name: str, dim: int) -> dict[str, Float32Array]:
    return {f"{name}.weight": np.ones(dim, dtype=np.float32), f"{name}.bias": np.zeros(dim, dtype=np.float32)}


def _linear(name: str, outputs: int, inputs: int, scale: float, random: np.random.Generator) -> dict[str, Float32Array]:
    weight = (scale * random.standard_normal((outputs, inputs))).astype(np.float32)
    return {f"{name}.weight": weight, f"{name}.bias": np.zeros(outputs, dtype=np.float32)}
