"""A map of Chinese query vectors into the space of another model, beside which a gloss says what it is about.

It is a versioned data file of the package (`bridges/<name>.npz`: `weights` (dim of the first model + 1, dim of the
second) int8 by column, the last row the bias; `scale` (dim of the second,) float32), fitted by `bench/bridge/fit.py`.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hummock.models.description import PairDescription
from hummock.models.errors import ModelGraphUnsupported

BRIDGES_SHA256: Final[Mapping[str, str]] = {
    "bge-small-zh-v1.5+all-MiniLM-L6-v2.v1": "9ea35349371c3598548a730b0e1d56c776ab16665f53036a5894397ecacb047b",
}
"""Checksums of the package's files, by name."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BridgeMap:
    """A linear map; `weights` is (first dim + 1, second dim) float32, the last row its bias."""

    weights: NDArray[np.float32]

    def __call__(self, vector: NDArray[np.float32]) -> NDArray[np.float32]:
        """The unit vector of a query in the second model's space, (first dim,) -> (second dim,)."""
        mapped = vector @ self.weights[:-1] + self.weights[-1]
        found: NDArray[np.float32] = mapped / np.linalg.norm(mapped)
        return found


def load_bridge_map(pair: PairDescription) -> BridgeMap | None:
    """The map of a pair of models; None for one that has none.

    Raises:
        ModelGraphUnsupported: The file is not the one that this version was made with, or for models of other dims.
    """
    if not pair.bridge:
        return None
    content = resources.files("hummock.models").joinpath("bridges", f"{pair.bridge}.npz").read_bytes()
    digest, expected = hashlib.sha256(content).hexdigest(), BRIDGES_SHA256[pair.bridge]
    if digest != expected:
        raise ModelGraphUnsupported(f"the bridge {pair.bridge} has the SHA-256 {digest}, not {expected}")
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        weights = arrays["weights"].astype(np.float32) * arrays["scale"].astype(np.float32)
    if weights.shape != (pair.first.dim + 1, pair.second.dim):
        raise ModelGraphUnsupported(f"the bridge {pair.bridge} maps {weights.shape}, which does not fit {pair.name}")
    return BridgeMap(weights=np.ascontiguousarray(weights))
