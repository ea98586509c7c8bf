"""Maps vectors of many dimensions to a plane so that neighbours stay near (t-SNE), and places further ones by those.

The same vectors give the same plane: it begins at their principal components, and nothing is drawn by lot.

Source: van der Maaten & Hinton, JMLR 9, 2008 (t-SNE); Kobak & Berens, Nature Communications 10, 2019 (that beginning);
Belkina et al., Nature Communications 10, 2019 (how far a step goes); Poličar, Stražar & Zupan, Machine Learning, 2023
(others among what has been laid out, as a mean of it).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float32]

_FEWEST = 8
"""Fewer vectors stand where their principal components are: they have no neighbourhoods."""

_NEIGHBOURS = 30
"""Approximate number of neighbours that each vector is drawn to."""

_CLOSE_NEIGHBOURS = 5
"""Number of neighbours whose places determine that of another vector."""

_EARLY_STEPS, _STEPS = 60, 140
_EXAGGERATION = 12.0
_HALVINGS = 18
_LEAST = np.float32(1e-12)
_BEGINNING = 1e-4
"""Width of the plane at first."""


def lay_out(vectors: Matrix) -> tuple[Matrix, float]:
    """Places of vectors, (n, dim) -> (n, 2) float32 at most 1 from the middle, and the sharpness for `beside`.

    Args:
        vectors: Finite, of length 1, at least one. A thousand take a second or two, and twice as many four times that.
    """
    places = _principal(vectors)
    # Of unit vectors: what rounding leaves of equal ones is no distance.
    apart = np.maximum(2 - 2 * (vectors @ vectors.T), 0)
    if len(vectors) < _FEWEST:
        return _within_disc(places), 1 / max(float(apart.mean()), float(_LEAST))
    near = _neighbourhoods(apart, _widths(apart, min(_NEIGHBOURS, len(vectors) / 4)))
    # A cosine counts for half a squared distance.
    sharpness = 2 * float(np.median(_widths(apart, min(_CLOSE_NEIGHBOURS, len(vectors) / 4))))
    return _within_disc(_descended(near, places * (_BEGINNING / max(float(places.std()), float(_LEAST))))), sharpness


def beside(vectors: Matrix, landmarks: Matrix, places: Matrix, sharpness: float) -> Matrix:
    """Places of other vectors: the mean of the landmarks' places, with higher weights for nearer ones.

    Args:
        vectors: (n, dim), of length 1.
        landmarks: (m, dim), likewise.
        places: (m, 2), of the landmarks.
        sharpness: How much more a nearer one counts: e to the power of it for a cosine that is larger by 1.
    """
    weights = vectors @ landmarks.T
    weights -= weights.max(axis=1, keepdims=True)
    weights *= np.float32(sharpness)
    np.exp(weights, out=weights)
    weighted: Matrix = weights @ np.concatenate([places, np.ones((len(places), 1), np.float32)], axis=1)
    means: Matrix = weighted[:, :2] / weighted[:, 2:]
    return means


def _principal(vectors: Matrix) -> Matrix:
    """The two principal components, (n, 2), each so that what is farthest out is positive."""
    centred = vectors - vectors.mean(axis=0)
    # Twice through the covariance of n vectors is cheaper than all of their singular values.
    values, directions = np.linalg.eigh((centred @ centred.T).astype(np.float64))
    places = np.zeros((len(vectors), 2), np.float32)
    for place in range(min(2, len(vectors))):
        direction = directions[:, -1 - place] * np.sqrt(max(values[-1 - place], 0.0))
        places[:, place] = direction * (1 if direction[np.abs(direction).argmax()] >= 0 else -1)
    return places


def _widths(apart: Matrix, neighbours: float) -> Matrix:
    """(n,) how narrow each one's neighbourhood is, so that it holds so many: factors of squared distances."""
    wanted = np.log(neighbours)
    count = len(apart)
    low, high, factors = np.zeros(count), np.full(count, np.inf), np.ones(count)
    for _ in range(_HALVINGS):
        weights = _falling_off(apart, factors.astype(np.float32))
        sums = weights.sum(axis=1) + _LEAST
        entropy = np.log(sums) + factors * np.einsum("ij,ij->i", apart, weights) / sums
        is_wide = entropy > wanted
        low, high = np.where(is_wide, factors, low), np.where(is_wide, high, factors)
        factors = np.where(np.isinf(high), factors * 4, (low + high) / 2)
    return factors.astype(np.float32)


def _falling_off(apart: Matrix, factors: Matrix) -> Matrix:
    weights: Matrix = apart * -factors[:, None]
    np.exp(weights, out=weights)
    np.fill_diagonal(weights, 0)
    return weights


def _neighbourhoods(apart: Matrix, factors: Matrix) -> Matrix:
    """(n, n) how much each two are neighbours; all of it sums to 1."""
    weights = _falling_off(apart, factors)
    weights /= weights.sum(axis=1, keepdims=True) + _LEAST
    weights += weights.T.copy()
    weights /= weights.sum()
    return weights


def _descended(near: Matrix, places: Matrix) -> Matrix:
    """The places after all steps of the descent."""
    step = np.float32(max(len(places) / _EXAGGERATION, 50.0))
    moving, gains = np.zeros_like(places), np.ones_like(places)
    near = near * np.float32(_EXAGGERATION)
    close, pull = np.empty_like(near), np.empty_like(near)
    for number in range(_EARLY_STEPS + _STEPS):
        if number == _EARLY_STEPS:
            near /= np.float32(_EXAGGERATION)
        slope = _slope(near, places, close, pull)
        turns = (slope > 0) != (moving > 0)
        gains = np.where(turns, gains + np.float32(0.2), gains * np.float32(0.8)).clip(np.float32(0.01))
        moving = np.float32(0.5 if number < _EARLY_STEPS else 0.8) * moving - step * gains * slope
        places = places + moving
        places -= places.mean(axis=0)
    return places


def _slope(near: Matrix, places: Matrix, close: Matrix, pull: Matrix) -> Matrix:
    """(n, 2) where the plane says least well who is whose neighbour, uphill. The last two are room for (n, n) each."""
    lengths, ones = np.einsum("ij,ij->i", places, places), np.ones(len(places), np.float32)
    # One more than the squared distances, as one product: each pass over (n, n) takes as long as it does.
    np.matmul(np.c_[-2 * places, lengths, ones], np.c_[places, ones, lengths + 1].T, out=close)
    np.reciprocal(close, out=close)
    np.fill_diagonal(close, 0)
    np.multiply(close, -1 / (ones @ close @ ones), out=pull)
    pull += near
    pull *= close
    slope: Matrix = 4 * ((pull @ ones)[:, None] * places - pull @ places)
    return slope


def _within_disc(places: Matrix) -> Matrix:
    """Places moved to the middle and scaled so that the outermost is 1 from it; all 0 where they coincide.

    Places far out move in by more: a few outliers would leave the others no room.
    """
    centred = places - places.mean(axis=0)
    reach = np.sqrt(np.einsum("ij,ij->i", centred, centred))
    # Half of them lie within half of where one that is infinitely far out would be.
    nearer = 1 / np.maximum(reach + np.median(reach), _LEAST)
    scaled: Matrix = centred * (nearer / max(float((reach * nearer).max()), float(_LEAST)))[:, None]
    return scaled.astype(np.float32)
