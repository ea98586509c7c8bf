"""The cross-encoders that Hummock knows, as data."""

from __future__ import annotations

from pathlib import Path

from hummock.models.custom import read_description
from hummock.models.description import GRAPH_FILE, TOKENIZER_FILE, Hub, Model, ModelFile, RerankerDescription
from hummock.models.errors import ModelUnknown
from hummock.models.registry import find

__all__ = ["RERANKERS", "find_any", "find_reranker"]

_BGE_RERANKER_BASE = RerankerDescription(
    name="bge-reranker-base",
    licence="MIT",
    files=(
        ModelFile(
            name=GRAPH_FILE,
            sha256="15b9a8c3da82eddf263df571281166e00e9308fe19d077084b642ebfcaf06d2b",
            size_bytes=1_112_459_588,
        ),
        ModelFile(
            name=TOKENIZER_FILE,
            sha256="9eb652ac4e40cc093272bbbe0f55d521cf67570060227109b5cdc20945a4489e",
            size_bytes=17_098_107,
        ),
    ),
    sources=(
        Hub(
            repository="BAAI/bge-reranker-base",
            revision="580465186bcc87f862a9b2f9003d720af2377980",
            paths={GRAPH_FILE: "onnx/model.onnx", TOKENIZER_FILE: "tokenizer.json"},
        ),
    ),
    max_tokens=512,
)

_BGE_RERANKER_V2_M3 = RerankerDescription(
    name="bge-reranker-v2-m3",
    licence="Apache-2.0",
    files=(
        ModelFile(
            name=GRAPH_FILE,
            sha256="912fc1215c2dbff6499700534bd8d31253af01573861abbfc43afd1fab6cce5d",
            size_bytes=570_727_094,
        ),
        ModelFile(
            name=TOKENIZER_FILE,
            sha256="8bf8afbfd11306bd872018c53bfdf2e160a56f8edbcf49933324404791c148d3",
            size_bytes=17_082_900,
        ),
    ),
    sources=(
        Hub(
            repository="onnx-community/bge-reranker-v2-m3-ONNX",
            revision="6f5ff65298512715a1e669753bc754d2bc8f367b",
            paths={GRAPH_FILE: "onnx/model_int8.onnx", TOKENIZER_FILE: "tokenizer.json"},
        ),
    ),
    # Its window is 8192; a pair of that length takes a CPU many seconds.
    max_tokens=512,
)

RERANKERS: dict[str, RerankerDescription] = {model.name: model for model in (_BGE_RERANKER_BASE, _BGE_RERANKER_V2_M3)}


def find_reranker(name: str, models_directory: Path) -> RerankerDescription:
    """The cross-encoder of that name: of the registry, else one whose directory describes itself.

    Raises:
        ModelUnknown: There is none.
    """
    known = RERANKERS.get(name) or read_description(models_directory, name)
    if not isinstance(known, RerankerDescription):
        raise ModelUnknown(name, [*RERANKERS])
    return known


def find_any(name: str, models_directory: Path) -> Model:
    """The model of that name, whatever it is for.

    Raises:
        ModelUnknown: There is none.
    """
    try:
        return find_reranker(name, models_directory)
    except ModelUnknown as unknown:
        try:
            return find(name, models_directory)
        except ModelUnknown as error:
            raise ModelUnknown(name, [*error.known, *unknown.known]) from None
