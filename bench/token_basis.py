"""`python -m bench.token_basis MODEL MODELS_DIRECTORY TARGET.npz < TEXTS`: fits a late-interaction basis on lines."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hummock.models.basis import TOKEN_DIM
from hummock.models.description import ModelDescription
from hummock.models.encoder import Encoder
from hummock.models.files import verify
from hummock.models.registry import find


def fit(encoder: Encoder, texts: Iterable[str]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Mean (dim,) and projection (dim, 64) of the texts' unit token vectors, both float32.

    Each column's sign is fixed (its largest component is positive), so that a fit can be repeated.
    """
    count, total, outer = 0, np.zeros(0), np.zeros((0, 0))
    for text in texts:
        hidden = encoder.encode(text).hidden.astype(np.float64)
        if not hidden.size:
            continue
        unit = hidden / np.linalg.norm(hidden, axis=1, keepdims=True)
        if not count:
            total, outer = np.zeros(unit.shape[1]), np.zeros((unit.shape[1], unit.shape[1]))
        count, total, outer = count + len(unit), total + unit.sum(axis=0), outer + unit.T @ unit
    if count <= TOKEN_DIM:
        raise ValueError(f"{count} tokens are too few for {TOKEN_DIM} directions")
    mean = total / count
    # eigh gives the largest last.
    directions = np.linalg.eigh(outer / count - np.outer(mean, mean))[1][:, ::-1][:, :TOKEN_DIM]
    largest = np.take_along_axis(directions, np.abs(directions).argmax(axis=0)[np.newaxis, :], axis=0)
    return mean.astype(np.float32), (directions * np.sign(largest)).astype(np.float32)


def save(target: Path, mean: NDArray[np.float32], projection: NDArray[np.float32]) -> None:
    """Write the basis as package data, in float16: it is a choice of directions, not a measurement."""
    np.savez_compressed(target, mean=mean.astype(np.float16), projection=projection.astype(np.float16))


def main(arguments: list[str]) -> None:
    """Fit on the lines of standard input."""
    name, models_directory, target = arguments
    model = find(name, Path(models_directory))
    if not isinstance(model, ModelDescription):
        raise SystemExit(f"{name} is two models; each has its own basis")
    directory = Path(models_directory) / model.name
    verify(model, directory)
    mean, projection = fit(Encoder(model, directory), (line.rstrip("\n") for line in sys.stdin))
    save(Path(target), mean, projection)


if __name__ == "__main__":
    main(sys.argv[1:])
