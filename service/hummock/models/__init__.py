"""Embedding models and cross-encoders: their descriptions, their files, and how they are run."""

from __future__ import annotations

from hummock.models.calibrate import (
    Measured,
    TextPair,
    calibrated,
    measure,
    measure_scripts,
    read_calibration,
    read_pairs,
    write_calibration,
)
from hummock.models.description import (
    EmbeddingModel,
    Model,
    ModelDescription,
    PairDescription,
    PublishedModel,
    RerankerDescription,
    TrioDescription,
)
from hummock.models.embedder import OnnxEmbedder, load, open_embedder
from hummock.models.files import is_here, is_present, verify
from hummock.models.fusion import served
from hummock.models.pull import PulledModel, pull, pull_first
from hummock.models.registry import (
    AUTO,
    AUTO_ORDER,
    PAIRS,
    REGISTRY,
    RERANKERS,
    TRIOS,
    candidates,
    find,
    find_any,
    find_reranker,
    that_will_do,
)
from hummock.models.reranker import OnnxReranker, load_reranker

__all__ = [
    "AUTO", "AUTO_ORDER", "PAIRS", "REGISTRY", "RERANKERS", "TRIOS", "EmbeddingModel", "Measured", "Model",
    "ModelDescription", "OnnxEmbedder", "OnnxReranker", "PairDescription", "PublishedModel", "PulledModel",
    "RerankerDescription", "TextPair", "TrioDescription", "calibrated", "candidates", "find", "find_any",
    "find_reranker", "is_here", "is_present", "load", "load_reranker", "measure", "measure_scripts",
    "open_embedder", "pull", "pull_first", "read_calibration", "read_pairs", "served", "that_will_do", "verify",
    "write_calibration",
]  # fmt: skip # a list of names
