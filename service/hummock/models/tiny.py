"""A toy model for tests and for machines without a real one: random weights, the real code path.

It knows letters, not meaning: its vectors are close where texts share words or Chinese characters. Token vectors are
the random embeddings of pieces of words, which two almost idle layers leave nearly as they are; the mean of a text is
thus a random projection of its bag of pieces.
"""

from __future__ import annotations

import itertools
import string
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import TemplateProcessing

from hummock.core.embedding import Calibration
from hummock.models.checkpoint import LAYER_PARTS, BertCheckpoint, BertShape, Float32Array
from hummock.models.convert import require_converter, write_int8
from hummock.models.description import (
    GRAPH_FILE,
    TOKENIZER_FILE,
    ModelDescription,
    ModelFile,
    Pooling,
    read_description,
    write_description,
)
from hummock.models.files import is_present, publish, sha256_of, staging, turn, verify


def encoder_layers(shape: BertShape, inner: int, scale: float, random: np.random.Generator) -> dict[str, Float32Array]:
    """The weights of all layers; `inner` is the width of the feed-forward part, `scale` the deviation of a weight."""
    weights: dict[str, Float32Array] = {}
    for index, part in itertools.product(range(shape.layers), LAYER_PARTS):
        name = f"encoder.layer.{index}.{part}"
        if part.endswith("LayerNorm"):
            weights |= layer_norm(name, shape.hidden)
            continue
        outputs = inner if part == "intermediate.dense" else shape.hidden
        inputs = inner if part == "output.dense" else shape.hidden
        weights |= linear(name, outputs, inputs, scale, random)
    return weights


def layer_norm(name: str, dim: int) -> dict[str, Float32Array]:
    """A normalisation that neither scales nor shifts."""
    return {f"{name}.weight": np.ones(dim, dtype=np.float32), f"{name}.bias": np.zeros(dim, dtype=np.float32)}


def linear(name: str, outputs: int, inputs: int, scale: float, random: np.random.Generator) -> dict[str, Float32Array]:
    """A random matrix, and no bias."""
    weight = (scale * random.standard_normal((outputs, inputs))).astype(np.float32)
    return {f"{name}.weight": weight, f"{name}.bias": np.zeros(outputs, dtype=np.float32)}


TINY = "tiny"
DIM = 64
INNER = 128
WINDOW = 128
SHAPE = BertShape(layers=2, heads=4, hidden=DIM, layer_norm_epsilon=1e-12)
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
IDLE = 0.02
FAINT = 0.002


def build_tiny(models_directory: Path) -> ModelDescription:
    """The toy model in `<models directory>/tiny`, built where it is not there yet; the same on every run.

    Raises:
        ConverterMissing: The extra `convert` is not installed.
        ModelFileAltered: It is there, but its files are not those that were built.
        ModelsDirectoryUnusable: Nothing can be written there.
    """
    there = _there(models_directory)
    if there is not None:
        return there
    require_converter()
    with turn(models_directory):
        return _there(models_directory) or _build(models_directory)


def _there(models_directory: Path) -> ModelDescription | None:
    model = read_description(models_directory, TINY)
    if not isinstance(model, ModelDescription) or not is_present(model, models_directory / TINY):
        return None
    verify(model, models_directory / TINY)
    return model


def _build(models_directory: Path) -> ModelDescription:
    vocabulary = _vocabulary()
    with staging(TINY, models_directory) as staged:
        _tokenizer(vocabulary).save(str(staged / TOKENIZER_FILE), pretty=False)
        write_int8(_checkpoint(len(vocabulary)), staged / GRAPH_FILE, Pooling.MEAN)
        model = _description(sha256_of(staged / GRAPH_FILE), sha256_of(staged / TOKENIZER_FILE))
        write_description(model, staged)
        publish(staged, models_directory / TINY)
    return model


def _description(graph_sha256: str, tokenizer_sha256: str) -> ModelDescription:
    return ModelDescription(
        name=TINY,
        licence="Apache-2.0",
        files=(
            ModelFile(name=GRAPH_FILE, sha256=graph_sha256),
            ModelFile(name=TOKENIZER_FILE, sha256=tokenizer_sha256),
        ),
        sources=(),
        pooling=Pooling.MEAN,
        dim=DIM,
        max_tokens=WINDOW,
        query_prefix="",
        scripts=frozenset({"han", "latin"}),
        # Measured as for the registry's models.
        calibration=Calibration(unrelated_latin=0.11, unrelated_han=0.11, near_twin_bar=0.9),
    )


def _vocabulary() -> dict[str, int]:
    """Chinese characters, and runs of up to three letters so that English words keep much of their identity."""
    letters = string.ascii_lowercase
    runs = ["".join(run) for size in (1, 2, 3) for run in itertools.product(letters, repeat=size)]
    pieces = [*runs, *string.digits]
    han = [chr(code) for code in range(0x4E00, 0xA000)]
    marks = [*string.punctuation, *"，。！？；：、（）《》【】“”‘’…—·￥"]
    tokens = [*SPECIAL, *pieces, *(f"##{piece}" for piece in pieces), *marks, *han]
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
    words = random.standard_normal((vocabulary_size, DIM)).astype(np.float32)
    words[[SPECIAL.index(token) for token in ("[PAD]", "[CLS]", "[SEP]")]] = 0  # They take on what the text says.
    weights = {
        "embeddings.word_embeddings.weight": words,
        "embeddings.position_embeddings.weight": np.zeros((WINDOW, DIM), dtype=np.float32),
        "embeddings.token_type_embeddings.weight": np.zeros((2, DIM), dtype=np.float32),
        **layer_norm("embeddings.LayerNorm", DIM),
    }
    # Gives the empty text a direction too.
    weights["embeddings.LayerNorm.bias"] = (FAINT * random.standard_normal(DIM)).astype(np.float32)
    weights |= encoder_layers(SHAPE, INNER, IDLE, random)
    return BertCheckpoint(shape=SHAPE, weights=weights)
