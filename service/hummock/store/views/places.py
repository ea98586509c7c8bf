"""Places of a project's memories in its star map, which stay stable over time.

A few of the oldest memories are landmarks, which are laid out once. Every other memory stands among the landmarks that
it is like, so that a memory that comes moves none that is there. There are new landmarks when a project has twice as
many memories, up to a certain size, and from then on none.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from hummock.store.views.columns import Columns
from hummock.store.views.layout import Matrix, beside, lay_out
from hummock_kernels.cosine import Chunks, best_chunks

MOST_LANDMARKS = 512
"""They take half a second to lay out; twice as many would take two."""

LAST_LEVEL = 12
"""Landmarks are among the oldest 2^12 memories at most: a project that is larger is laid out no more."""

_AT_ONCE = 2048
_FINEST = 0.004
"""Memories of equal texts stand apart by about so much at least."""

_NO_QUERY = np.empty(0, np.float32)
_NO_LEVEL = -1

Ordinals = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Layout:
    """The landmarks of a project.

    Attributes:
        id: Of these landmarks.
        level: They are among the oldest 2^level memories that had vectors.
        vectors: (m, dim) float32, of length 1.
        places: (m, 2) float32.
        sharpness: Of `beside`.
        grain: How far landmarks stand apart: no place says more than that.
    """

    id: str = ""
    level: int = _NO_LEVEL
    vectors: Matrix
    places: Matrix
    sharpness: float
    grain: float = 0.0


_NOTHING = _Layout(vectors=np.empty((0, 0), np.float32), places=np.empty((0, 2), np.float32), sharpness=0.0)


class StarPlaces:
    """Finds the places of memories and keeps them. Views of one lineage share it, and the next lineage has its layout.

    It takes 8 bytes a memory, and what the landmarks' vectors take, which no budget counts and which go with the view.
    Safe to use from several threads: one makes what the others wait for.
    """

    def __init__(self, layout: _Layout = _NOTHING) -> None:
        self._lock = Lock()
        self._layout = layout
        self._places = np.empty((0, 2), np.float32)

    def renumbered(self) -> StarPlaces:
        """An equal map, for views whose memories have other ordinals."""
        return StarPlaces(self._layout)

    def at(self, columns: Columns, chunks: Chunks, ordinals: Ordinals) -> tuple[str, Matrix, NDArray[np.bool_]]:
        """The layout's id, where memories stand, (n, 2), and whether it is their vectors that say so, (n,).

        Args:
            columns: Of a view of the lineage.
            chunks: Of the same view.
            ordinals: (n,), each once.
        """
        with self._lock:
            level = _level_of(columns)
            if level > self._layout.level:
                self._layout = _layout(columns, chunks, level)
                self._places = self._places[:0]
            self._make_room(len(columns))
            unknown = ordinals[np.isnan(self._places[ordinals, 0]) & (columns.chunk_count[ordinals] > 0)]
            for start in range(0, len(unknown) if self._layout.id else 0, _AT_ONCE):
                self._place(columns, chunks, unknown[start : start + _AT_ONCE])
            layout_id, places = self._layout.id, self._places[ordinals]
        is_placed = ~np.isnan(places[:, 0])
        waiting = columns.doc[ordinals[~is_placed]]
        places[~is_placed] = _around(waiting)
        return layout_id, places, is_placed

    def _make_room(self, count: int) -> None:
        missing = count - len(self._places)
        if missing > 0:
            self._places = np.concatenate([self._places, np.full((missing, 2), np.nan, np.float32)])

    def _place(self, columns: Columns, chunks: Chunks, ordinals: Ordinals) -> None:
        vectors, is_sound = _unit_vectors(chunks, ordinals)
        layout, sound = self._layout, ordinals[is_sound]
        places = beside(vectors[is_sound], layout.vectors, layout.places, layout.sharpness)
        self._places[sound] = _inside(places + _jitter(columns.doc[sound], layout.grain))


def _level_of(columns: Columns) -> int:
    """The largest whose power of two the project has memories with vectors; -1 where it has none."""
    return min((columns.live - columns.pending).bit_length() - 1, LAST_LEVEL)


def _layout(columns: Columns, chunks: Chunks, level: int) -> _Layout:
    """Lay out some of the oldest memories, evenly spread: the first in an order that does not depend on their age."""
    embedded = np.flatnonzero((columns.alive != 0) & (columns.chunk_count > 0))[: 1 << level]
    spread = embedded[np.argsort(_mixed(columns.doc[embedded]), kind="stable")]
    landmarks = np.sort(spread[:MOST_LANDMARKS])
    vectors, is_sound = _unit_vectors(chunks, landmarks)
    if not is_sound.any():
        return _NOTHING
    vectors = vectors[is_sound]
    places, sharpness = lay_out(vectors)
    docs = columns.doc[landmarks[is_sound]]
    layout_id = blake2b(docs.astype("<i8").tobytes(), digest_size=8).hexdigest()
    return _Layout(id=layout_id, level=level, vectors=vectors, places=places, sharpness=sharpness, grain=_grain(places))


def _unit_vectors(chunks: Chunks, ordinals: Ordinals) -> tuple[Matrix, NDArray[np.bool_]]:
    """The first chunk of each memory as float32 of length 1, and which of them say anything."""
    _, _, vectors = best_chunks(chunks, ordinals, _NO_QUERY)
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    is_sound = np.isfinite(lengths) & (lengths > 0)
    vectors[is_sound] /= lengths[is_sound, None]
    return vectors, is_sound


def _mixed(docs: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Numbers that look like chance, one of each document. Source: Steele, Lea & Flood, OOPSLA 2014 (SplitMix64)."""
    mixed = docs.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _parts(docs: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Two numbers in [0, 1) of each document."""
    mixed = _mixed(docs)
    half = np.float64(1 << 32)
    return (mixed >> np.uint64(32)) / half, (mixed & np.uint64(0xFFFFFFFF)) / half


def _on_circle(part: NDArray[np.float64], radius: NDArray[np.float64]) -> Matrix:
    angle = 2 * np.pi * part
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).astype(np.float32)


def _grain(places: Matrix) -> float:
    """The usual distance of a landmark from the next one."""
    apart = np.linalg.norm(places[:, None] - places[None], axis=2)
    np.fill_diagonal(apart, np.inf)
    nearest = apart.min(axis=1)
    return max(float(np.median(nearest)), _FINEST) if len(places) > 1 else _FINEST


def _jitter(docs: NDArray[np.int64], reach: float) -> Matrix:
    """A little to a side, denser near the middle, so that what is alike is seen as many and not as one."""
    part, share = _parts(docs)
    return _on_circle(part, reach * share)


def _around(docs: NDArray[np.int64]) -> Matrix:
    """Places of those that wait for their vectors: on a ring about the map."""
    part, share = _parts(docs)
    return _on_circle(part, 1.1 + 0.1 * share)


def _inside(places: Matrix) -> Matrix:
    reach = np.sqrt(np.einsum("ij,ij->i", places, places))
    inside: Matrix = places / np.maximum(reach, np.float32(1))[:, None]
    return inside
