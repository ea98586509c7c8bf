"""Random weights of toy encoders."""

from __future__ import annotations

import itertools

import numpy as np

from hummock.models.checkpoint import LAYER_PARTS, BertShape, Float32Array

__all__ = ["encoder_layers", "layer_norm", "linear"]


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
