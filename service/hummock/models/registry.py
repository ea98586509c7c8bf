"""The models and cross-encoders that Hummock knows: those of `registry.toml`, and several of them as one."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from pathlib import Path

import msgspec

from hummock.core.embedding import Across, Calibration
from hummock.models.description import (
    EmbeddingModel,
    Model,
    ModelDescription,
    PairDescription,
    RerankerDescription,
    TrioDescription,
    read_description,
)
from hummock.models.errors import ModelUnknown
from hummock.models.files import is_here

AUTO = "auto"
"""Name for the first available model of `AUTO_ORDER`."""


class _Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    models: tuple[ModelDescription, ...]
    rerankers: tuple[RerankerDescription, ...]


_TABLE = msgspec.toml.decode(resources.files("hummock.models").joinpath("registry.toml").read_bytes(), type=_Table)
REGISTRY: dict[str, ModelDescription] = {model.name: model for model in _TABLE.models}
RERANKERS: dict[str, RerankerDescription] = {model.name: model for model in _TABLE.rerankers}

# How the weights were found: docs/decisions/013.
_ZH_MINILM = PairDescription(
    first=REGISTRY["bge-small-zh-v1.5"],
    second=REGISTRY["all-MiniLM-L6-v2"],
    first_weight_latin=0.2,
    first_weight_han=1.0,
    calibration=Calibration(unrelated_latin=0.133, unrelated_han=0.281, near_twin_bar=0.88),
)
_ZH_EN = PairDescription(
    first=REGISTRY["bge-small-zh-v1.5"],
    second=REGISTRY["bge-small-en-v1.5"],
    first_weight_latin=0.2,
    first_weight_han=1.0,
    calibration=Calibration(unrelated_latin=0.436, unrelated_han=0.284, near_twin_bar=0.885),
)
PAIRS: dict[str, PairDescription] = {pair.name: pair for pair in (_ZH_MINILM, _ZH_EN)}
"""Two models of the registry as one; their files are those of the two."""

_ZH_MINILM_USE = TrioDescription(
    first=REGISTRY["bge-small-zh-v1.5"],
    second=REGISTRY["all-MiniLM-L6-v2"],
    common=REGISTRY["use-multilingual-v3"],
    calibration=Calibration(unrelated_latin=0.058, unrelated_han=0.214, near_twin_bar=0.88, one_thing=0.35),
    across=Across(unrelated=0.05, words=0.9, as_similar=0.7),
)
TRIOS: dict[str, TrioDescription] = {_ZH_MINILM_USE.name: _ZH_MINILM_USE}
"""Three models of the registry as one."""

RERANKER_ORDER = (RERANKERS["bge-reranker-v2-m3"], RERANKERS["bge-reranker-base"])
"""Cross-encoders, best first. The first one reads a hundred languages and is half of the other's size."""

AUTO_ORDER = (_ZH_MINILM_USE, _ZH_MINILM, _ZH_MINILM.first, _ZH_MINILM.second)


def find(name: str, models_directory: Path) -> EmbeddingModel:
    """Find an embedding model by name in the registry, else in a directory with a description. Raises: ModelUnknown."""
    known = REGISTRY.get(name) or PAIRS.get(name) or TRIOS.get(name) or read_description(models_directory, name)
    if known is None or isinstance(known, RerankerDescription):
        raise ModelUnknown(name, [AUTO, *REGISTRY, *PAIRS, *TRIOS])
    return known


def find_reranker(name: str, models_directory: Path) -> RerankerDescription:
    """Find a cross-encoder by name in the registry, else in a directory with a description. Raises: ModelUnknown.

    An empty name stands for the best that is here, or for the best of all if none is.
    """
    if not name:
        here = (model for model in RERANKER_ORDER if is_here(model, models_directory))
        return next(here, RERANKER_ORDER[0])
    known = RERANKERS.get(name) or read_description(models_directory, name)
    if not isinstance(known, RerankerDescription):
        raise ModelUnknown(name, [*RERANKERS])
    return known


def find_any(name: str, models_directory: Path) -> Model:
    """Find the model of that name, of any kind. Raises: ModelUnknown."""
    try:
        return find_reranker(name, models_directory)
    except ModelUnknown as unknown:
        try:
            return find(name, models_directory)
        except ModelUnknown as error:
            raise ModelUnknown(name, [*error.known, *unknown.known]) from None


def candidates(name: str, models_directory: Path) -> tuple[EmbeddingModel, ...]:
    """The models that a configured name stands for, best first: several for "auto", else one. Raises: ModelUnknown."""
    return AUTO_ORDER if name == AUTO else (find(name, models_directory),)


def that_will_do(wanted: Sequence[EmbeddingModel], models_directory: Path) -> EmbeddingModel | None:
    """The best of the wanted models that is here, unless a better one is worth fetching; None where one is.

    Only a model that knows no Chinese is worth it: a start that could be had without the network shall be.
    """
    here = next((model for model in wanted if is_here(model, models_directory)), None)
    return here if here is not None and (here is wanted[0] or "han" in here.scripts) else None
