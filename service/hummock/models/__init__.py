"""Embedding models: their descriptions, their files, and how they are run."""

from __future__ import annotations

from hummock.models.calibrate import Measured, measure
from hummock.models.description import ModelDescription
from hummock.models.directory import install, is_present, verify
from hummock.models.embedder import OnnxEmbedder, load
from hummock.models.pull import PulledModel, pull, pull_first
from hummock.models.registry import AUTO, REGISTRY, candidates, find
from hummock.models.tiny import TINY, build_tiny

__all__ = [
    "AUTO",
    "REGISTRY",
    "TINY",
    "Measured",
    "ModelDescription",
    "OnnxEmbedder",
    "PulledModel",
    "build_tiny",
    "candidates",
    "find",
    "install",
    "is_present",
    "load",
    "measure",
    "pull",
    "pull_first",
    "verify",
]
