"""Places of memories in the star map: similar memories are close, and new ones do not move existing ones.

A few of the oldest memories are landmarks. They are laid out once, by t-SNE from their principal components, without
randomness. Every memory is then placed among the landmarks it resembles. Landmarks are chosen again when a project has
twice as many memories, up to 2^LAST_LEVEL.

Source: van der Maaten & Hinton, JMLR 9, 2008 (t-SNE); Kobak & Berens, Nature Communications 10, 2019 (the start);
Böhm, Berens & Kobak, JMLR 23, 2022 (nearest neighbours of equal weight); Poličar, Stražar & Zupan, Machine Learning,
2023 (added points as weighted means).
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from hummock.store.views.columns import Columns
from hummock_kernels.cosine import Chunks

MOST_LANDMARKS = 512  # Laying these out takes half a second; twice as many take four times as long.
LAST_LEVEL = 12  # Landmarks are among the oldest 2^12 memories at most, so the map of a larger project never changes.
SPREAD = 0.4  # Largest distance of a memory from its computed place, over the root of the number of landmarks.

_NEIGHBOURS = 12
_EARLY_STEPS, _STEPS = 60, 200
_GOLDEN, _PLASTIC = 0.6180339887498949, 0.7548776662466927  # Multiples of these, modulo 1, fill [0, 1) evenly.

Matrix = NDArray[np.float32]
Ordinals = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Layout:
    """Landmarks, among the oldest 2^level memories: unit vectors (m, dim), places (m, 2), and `beside`'s sharpness."""

    id: str = ""
    level: int = -1
    vectors: Matrix
    places: Matrix
    sharpness: float = 0.0


_NO_LAYOUT = Layout(vectors=np.empty((0, 0), np.float32), places=np.empty((0, 2), np.float32))


class StarPlaces:
    """Computes places on request; stores only the landmarks, shared by all later views of the project. Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self.layout = _NO_LAYOUT

    def at(self, columns: Columns, chunks: Chunks, ordinals: Ordinals) -> tuple[str, Matrix, NDArray[np.bool_]]:
        """The layout's id, places (n, 2), and whether each is from a vector (n,); others are on a ring around it."""
        level = min((columns.live - columns.pending).bit_length() - 1, LAST_LEVEL)
        with self._lock:
            if level > self.layout.level:
                self.layout = make_layout(columns, chunks, level)
            layout = self.layout
        docs = columns.doc[ordinals]
        places = _scattered(docs, 1.1, 1.2)
        vectors, is_sound = unit_vectors(chunks, ordinals)
        is_placed = is_sound & bool(layout.id)
        if is_placed.any():
            own = beside(vectors[is_placed], layout.vectors, layout.places, layout.sharpness)
            # Scattered a little, so that equal memories do not cover each other.
            own += _scattered(docs[is_placed], 0, SPREAD / len(layout.vectors) ** 0.5)
            places[is_placed] = own / np.maximum(np.linalg.norm(own, axis=1), 1)[:, None]
        return layout.id, places, is_placed


def make_layout(columns: Columns, chunks: Chunks, level: int) -> Layout:
    """Layout of landmarks chosen evenly among the oldest 2^level memories."""
    oldest = np.flatnonzero((columns.alive != 0) & (columns.chunk_count > 0))[: 1 << level]
    spread = oldest[np.argsort(columns.doc[oldest] * _GOLDEN % 1, kind="stable")]
    landmarks = np.sort(spread[:MOST_LANDMARKS])
    vectors, is_sound = unit_vectors(chunks, landmarks)
    if not is_sound.any():
        return _NO_LAYOUT
    places, sharpness = lay_out(vectors[is_sound])
    key = blake2b(columns.doc[landmarks[is_sound]].astype("<i8").tobytes(), digest_size=8).hexdigest()
    return Layout(id=key, level=level, vectors=vectors[is_sound], places=places, sharpness=sharpness)


def unit_vectors(chunks: Chunks, ordinals: Ordinals) -> tuple[Matrix, NDArray[np.bool_]]:
    """The first chunk of each memory as float32 of length 1, and which are finite and not zero; no chunk is zero."""
    vectors = np.zeros((len(ordinals), chunks.rows.shape[1]), np.float32)
    has_any = chunks.size[ordinals] > 0
    vectors[has_any] = chunks.rows[chunks.start[ordinals[has_any]]].view(np.float16)
    lengths = np.linalg.norm(vectors, axis=1)
    is_sound = np.isfinite(lengths) & (lengths > 0)
    vectors[is_sound] /= lengths[is_sound, None]
    return vectors, is_sound


def lay_out(vectors: Matrix) -> tuple[Matrix, float]:
    """Places for vectors, (n, dim) -> (n, 2) float32 at most 1 from the middle, and the sharpness for `beside`.

    Vectors are finite, of length 1, at least one. The same vectors in the same order give the same places.
    """
    cosines = vectors @ vectors.T
    np.fill_diagonal(cosines, -2)
    nearest = np.argsort(-cosines, axis=1, kind="stable")[:, : min(_NEIGHBOURS, max(len(vectors) // 4, 1))]
    best = np.take_along_axis(cosines, nearest, axis=1)
    # The nearest counts e^6 times as much as the last of the neighbours.
    sharpness = 6 / max(float(np.median(best[:, 0] - best[:, -1])), 0.01)
    centred = vectors - vectors.mean(axis=0)
    _, axes = np.linalg.eigh(centred.T @ centred)
    places = centred @ axes[:, :-3:-1]
    # Fewer than eight vectors have no neighbourhoods for t-SNE.
    return _within_disc(places if len(vectors) < 8 else _descended(nearest, places)), sharpness


def beside(vectors: Matrix, landmarks: Matrix, places: Matrix, sharpness: float) -> Matrix:
    """Places of other vectors, (n, dim) -> (n, 2): means of landmarks' places, weighted by e^(sharpness * cosine)."""
    weights = vectors @ landmarks.T
    weights -= weights.max(axis=1, keepdims=True)
    np.exp(weights * np.float32(sharpness), out=weights)
    means: Matrix = (weights @ places) / weights.sum(axis=1, keepdims=True)
    return means


def _descended(nearest: Ordinals, places: Matrix) -> Matrix:
    """Places after t-SNE's gradient descent, (n, 2); `nearest` (n, k) are the points that attract each."""
    count = len(places)
    near = np.zeros((count, count), np.float32)
    np.put_along_axis(near, nearest, np.float32(1), axis=1)
    near = (near + near.T) / near.sum() / 2
    early = near * np.float32(12)
    places *= np.float32(1e-4) / max(places.std(), np.float32(1e-12))
    step, moving, gains = np.float32(max(count / 12, 50)), np.zeros_like(places), np.ones_like(places)
    for number in range(_STEPS):
        is_early = number < _EARLY_STEPS
        lengths = np.einsum("ij,ij->i", places, places)
        close = (-2 * places) @ places.T
        close += lengths + (lengths + 1)[:, None]
        np.reciprocal(close, out=close)
        np.fill_diagonal(close, 0)
        pull = (early if is_early else near) - close / close.sum()
        pull *= close
        slope = 4 * (pull.sum(axis=1)[:, None] * places - pull @ places)
        gains = np.where((slope > 0) != (moving > 0), gains + np.float32(0.2), gains * np.float32(0.8))
        gains = np.maximum(gains, np.float32(0.01))
        moving = np.float32(0.5 if is_early else 0.8) * moving - step * gains * slope
        places = places + moving
        places -= places.mean(axis=0)
    return places


def _within_disc(places: Matrix) -> Matrix:
    """Centred places, the outermost at 1. Large distances shrink most, so that outliers leave room for the rest."""
    places = places - places.mean(axis=0)
    reach = np.linalg.norm(places, axis=1, keepdims=True)
    places = places / np.maximum(reach + np.median(reach), 1e-12)
    inside: Matrix = places / max(np.linalg.norm(places, axis=1).max(), 1e-12)
    return inside.astype(np.float32)


def _scattered(docs: NDArray[np.int64], inner: float, outer: float) -> Matrix:
    """A fixed point for each document, at a distance of inner to outer from the middle, (n,) -> (n, 2)."""
    angle, radius = 2 * np.pi * (docs * _GOLDEN % 1), inner + (outer - inner) * (docs * _PLASTIC % 1)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).astype(np.float32)
