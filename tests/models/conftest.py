"""The toy model, built once a session."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file
from tokenizers import Tokenizer, pre_tokenizers, processors
from tokenizers.models import WordPiece

from bench.toy_models import build_tiny
from hummock.models import ModelDescription, OnnxEmbedder, load
from hummock.models.convert import LAYER_PARTS, Float32Array


@pytest.fixture(scope="session")
def models_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="session")
def tiny(models_directory: Path) -> ModelDescription:
    return build_tiny(models_directory)


@pytest.fixture(scope="session")
def tiny_files(tiny: ModelDescription, models_directory: Path) -> Path:
    return models_directory / tiny.name


@pytest.fixture(scope="session")
def embedder(tiny: ModelDescription, tiny_files: Path) -> Iterator[OnnxEmbedder]:
    embedder = load(tiny, tiny_files, slots=2)
    yield embedder
    embedder.close()


HIDDEN, INNER, VOCABULARY = 64, 128, 97
CONFIG = {
    "model_type": "bert", "hidden_act": "gelu", "hidden_size": HIDDEN, "num_attention_heads": 4, "num_hidden_layers": 3,
    "layer_norm_eps": 1e-12,
}  # fmt: skip


@pytest.fixture(scope="session")
def bert_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random BERT as it is published: config.json, model.safetensors, tokenizer.json."""
    directory = tmp_path_factory.mktemp("bert")
    (directory / "config.json").write_text(json.dumps(CONFIG))
    save_file({f"bert.{name}": weight for name, weight in _weights().items()}, directory / "model.safetensors")
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *(chr(code) for code in range(33, 126))]
    vocabulary = {token: index for index, token in enumerate(tokens)}
    tokenizer = Tokenizer(WordPiece(vocabulary, unk_token="[UNK]"))  # noqa: S106
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.save(str(directory / "tokenizer.json"))
    return directory


def _weights() -> dict[str, Float32Array]:
    random = np.random.default_rng(11)
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (VOCABULARY, HIDDEN),
        "embeddings.position_embeddings.weight": (40, HIDDEN),
        "embeddings.token_type_embeddings.weight": (2, HIDDEN),
        "embeddings.LayerNorm.weight": (HIDDEN,),
        "embeddings.LayerNorm.bias": (HIDDEN,),
    }
    for index, part in itertools.product(range(3), LAYER_PARTS):
        outputs = INNER if part == "intermediate.dense" else HIDDEN
        inputs = INNER if part == "output.dense" else HIDDEN
        name = f"encoder.layer.{index}.{part}"
        shapes[f"{name}.weight"] = (HIDDEN,) if part.endswith("LayerNorm") else (outputs, inputs)
        shapes[f"{name}.bias"] = (outputs,)
    drawn = {name: 0.1 * random.standard_normal(shape) for name, shape in shapes.items()}
    return {name: (value + name.endswith("LayerNorm.weight")).astype(np.float32) for name, value in drawn.items()}
