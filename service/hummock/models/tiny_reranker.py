"""A toy cross-encoder for tests: XLM-R's shape and pair template, random weights, the real code path.

Its scores differ by pair and mean nothing.
"""

from __future__ import annotations

import string
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer
from tokenizers.models import Unigram
from tokenizers.normalizers import NFKC
from tokenizers.pre_tokenizers import Metaspace
from tokenizers.processors import TemplateProcessing

from hummock.models.checkpoint import BertCheckpoint, BertShape
from hummock.models.convert import require_converter, write_cross_encoder_int8
from hummock.models.description import (
    GRAPH_FILE,
    TOKENIZER_FILE,
    ModelFile,
    RerankerDescription,
    read_description,
    write_description,
)
from hummock.models.files import is_present, publish, sha256_of, staging, turn, verify
from hummock.models.tiny import encoder_layers, layer_norm, linear

TINY_RERANKER = "tiny-reranker"
DIM = 64
INNER = 128
WINDOW = 64
SHAPE = BertShape(layers=2, heads=4, hidden=DIM, layer_norm_epsilon=1e-5, first_position=2)
SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
LIVELY = 0.2


def build_tiny_reranker(models_directory: Path) -> RerankerDescription:
    """The toy cross-encoder in `<models directory>/tiny-reranker`, built where it is not there yet.

    Raises:
        ConverterMissing: The extra `convert` is not installed.
        ModelFileAltered: It is there, but its files are not those that were built.
        ModelsDirectoryUnusable: Nothing can be written there.
    """
    directory = models_directory / TINY_RERANKER
    there = read_description(models_directory, TINY_RERANKER)
    if isinstance(there, RerankerDescription) and is_present(there, directory):
        verify(there, directory)
        return there
    require_converter()
    with turn(models_directory), staging(TINY_RERANKER, models_directory) as staged:
        _tokenizer().save(str(staged / TOKENIZER_FILE), pretty=False)
        write_cross_encoder_int8(tiny_cross_encoder(), staged / GRAPH_FILE)
        model = RerankerDescription(
            name=TINY_RERANKER,
            licence="Apache-2.0",
            files=tuple(ModelFile(name=name, sha256=sha256_of(staged / name)) for name in (GRAPH_FILE, TOKENIZER_FILE)),
            sources=(),
            max_tokens=WINDOW,
        )
        write_description(model, staged)
        publish(staged, directory)
    return model


def tiny_cross_encoder() -> BertCheckpoint:
    """Its weights, the same every time."""
    random = np.random.default_rng(7421)
    positions = WINDOW + SHAPE.first_position
    tables = {"word": len(_pieces()), "position": positions, "token_type": 1}
    weights = {
        f"embeddings.{table}_embeddings.weight": random.standard_normal((rows, DIM)).astype(np.float32)
        for table, rows in tables.items()
    }
    weights |= layer_norm("embeddings.LayerNorm", DIM) | encoder_layers(SHAPE, INNER, LIVELY, random)
    weights |= linear("classifier.dense", DIM, DIM, LIVELY, random)
    weights |= linear("classifier.out_proj", 1, DIM, LIVELY, random)
    return BertCheckpoint(shape=SHAPE, weights=weights)


def _pieces() -> list[str]:
    """Special tokens, then single characters; all others are unknown."""
    han = [chr(code) for code in range(0x4E00, 0xA000)]
    return [*SPECIAL, "▁", *string.ascii_letters, *string.digits, *string.punctuation, *han]


def _tokenizer() -> Tokenizer:
    tokenizer = Tokenizer(Unigram([(piece, -1.0) for piece in _pieces()], unk_id=SPECIAL.index("<unk>")))
    tokenizer.normalizer = NFKC()
    tokenizer.pre_tokenizer = Metaspace()
    tokenizer.post_processor = TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B </s>",
        special_tokens=[(token, SPECIAL.index(token)) for token in ("<s>", "</s>")],
    )
    tokenizer.add_special_tokens(list(SPECIAL))
    return tokenizer
