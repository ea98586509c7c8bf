"""The BERT encoder in plain NumPy: the twin that a converted graph is held against."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from hummock.models.convert import BertCheckpoint, Float32Array


def last_hidden_state(checkpoint: BertCheckpoint, input_ids: NDArray[np.int64]) -> Float32Array:
    """Contextual vectors of one text's tokens, (n,) -> (n, hidden) float32; token type 0 throughout.

    Source: Devlin et al., NAACL 2019 (post-layer-norm encoder, exact GELU).
    """
    weights = checkpoint.weights
    first = checkpoint.shape.first_position
    state = (
        weights["embeddings.word_embeddings.weight"][input_ids]
        + weights["embeddings.position_embeddings.weight"][first : first + len(input_ids)]
        + weights["embeddings.token_type_embeddings.weight"][0]
    )
    state = _layer_norm(checkpoint, state, "embeddings.LayerNorm")
    for index in range(checkpoint.shape.layers):
        prefix = f"encoder.layer.{index}"
        attended = _linear(checkpoint, _attention(checkpoint, state, prefix), f"{prefix}.attention.output.dense")
        state = _layer_norm(checkpoint, state + attended, f"{prefix}.attention.output.LayerNorm")
        inner = _gelu(_linear(checkpoint, state, f"{prefix}.intermediate.dense"))
        state = _layer_norm(
            checkpoint, state + _linear(checkpoint, inner, f"{prefix}.output.dense"), f"{prefix}.output.LayerNorm"
        )
    return state


def mean_pooled(hidden: Float32Array) -> Float32Array:
    """The unit mean of all token vectors, special tokens included, (n, hidden) -> (hidden,)."""
    mean = hidden.mean(axis=0)
    unit: Float32Array = mean / max(float(np.linalg.norm(mean)), 1e-12)
    return unit


def pair_logit(checkpoint: BertCheckpoint, input_ids: NDArray[np.int64]) -> float:
    """Output of an XLM-R cross-encoder for one pair's tokens: log odds that the text answers the query."""
    first = last_hidden_state(checkpoint, input_ids)[:1]
    inner = np.tanh(_linear(checkpoint, first, "classifier.dense"))
    return float(_linear(checkpoint, inner, "classifier.out_proj")[0, 0])


def _attention(checkpoint: BertCheckpoint, state: Float32Array, prefix: str) -> Float32Array:
    length, hidden = state.shape
    heads = checkpoint.shape.heads
    query, key, value = (
        _linear(checkpoint, state, f"{prefix}.attention.self.{name}")
        .reshape(length, heads, hidden // heads)
        .transpose(1, 0, 2)
        for name in ("query", "key", "value")
    )
    logits = query @ key.transpose(0, 2, 1) / np.float32(math.sqrt(hidden // heads))
    odds = np.exp(logits - logits.max(axis=-1, keepdims=True))
    share = odds / odds.sum(axis=-1, keepdims=True)
    mixed: Float32Array = (share @ value).transpose(1, 0, 2).reshape(length, hidden)
    return mixed


def _linear(checkpoint: BertCheckpoint, state: Float32Array, name: str) -> Float32Array:
    product: Float32Array = state @ checkpoint.weights[f"{name}.weight"].T + checkpoint.weights[f"{name}.bias"]
    return product


def _layer_norm(checkpoint: BertCheckpoint, state: Float32Array, name: str) -> Float32Array:
    centred = state - state.mean(axis=-1, keepdims=True)
    variance = np.square(centred).mean(axis=-1, keepdims=True)
    scaled = centred / np.sqrt(variance + np.float32(checkpoint.shape.layer_norm_epsilon))
    normed: Float32Array = scaled * checkpoint.weights[f"{name}.weight"] + checkpoint.weights[f"{name}.bias"]
    return normed


_ERF = np.vectorize(math.erf, otypes=[np.float64])


def _gelu(state: Float32Array) -> Float32Array:
    gated: Float32Array = (state * 0.5 * (1.0 + _ERF(state / math.sqrt(2.0)))).astype(np.float32)
    return gated
