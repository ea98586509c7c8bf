"""A view saved as a file of consecutive arrays, which is mapped instead of being rebuilt.

Each growing array is followed by spare room, a hole in the file, so that the first write after a start copies nothing.
The file has no header: a `SavedView`, stored elsewhere, describes it, with a SHA-256 of each array. A file is used only
after all digests match.
"""

from __future__ import annotations

import math
import mmap
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from importlib.metadata import version
from itertools import pairwise
from typing import Any, BinaryIO

import msgspec
import numpy as np
from numpy.typing import NDArray

from hummock.core.settings import ProjectSettings
from hummock.store.growing import Growing, Lazy, SignBits, TermCounts, capacity
from hummock.store.limits import KIB, MIB, StoreLimits
from hummock.store.views.columns import COLUMNS, Columns, TurnIndex, values_of
from hummock.store.views.domain_names import DomainNames, read_given_names
from hummock.store.views.postings import FrequentTerms, Postings
from hummock.store.views.view import ProjectView
from hummock.text.analyzer import ANALYZER_VERSION
from hummock_kernels.postings import Index, Presence

_FORMAT = 3
"""Increased with every change of an array's content; each version of the package reads only its own files anyway."""

_ALIGNMENT = 64 * KIB
_PIECE_BYTES = MIB
_HASHING = 2  # Number of threads that check digests.

_OF_COLUMNS = ("live", "live_length", "live_pinned", "has_verdicts", "has_writers", "first_expiry")

Arrays = dict[str, NDArray[Any]]


class SavedArray(msgspec.Struct, array_like=True, frozen=True):
    """An array in the file: `rows` of `shape` from byte `start` on, with space for `room` rows in all."""

    name: str
    dtype: str
    rows: int
    shape: tuple[int, ...]
    room: int
    start: int
    sha256: bytes

    @property
    def nbytes(self) -> int:
        """Bytes of all rows."""
        return self.rows * math.prod(self.shape) * np.dtype(self.dtype).itemsize

    @property
    def end(self) -> int:
        """Offset of the end of its room."""
        return self.start + self.room * math.prod(self.shape) * np.dtype(self.dtype).itemsize


class SavedView(msgspec.Struct, array_like=True, frozen=True, kw_only=True):
    """Description of a file with a view at one seq."""

    made_by: str  # Format and versions that wrote it; others do not read it.
    space: int  # The number of the embedding space of its vectors.
    number: int  # The project's number.
    seq: int  # Sequence number of the last write in the view.
    content_seq: int  # The generation of its content.
    size_bytes: int  # Size of the file.
    arrays: tuple[SavedArray, ...]  # Arrays in the file.
    live: int  # See `Columns`.
    live_length: int  # See `Columns`.
    live_pinned: int  # See `Columns`.
    has_verdicts: bool  # See `Columns`.
    has_writers: bool  # See `Columns`.
    first_expiry: float  # See `Columns`.
    base: int  # The first ordinal after the inverted index.
    mean_length: float  # Mean length of the memories in the inverted index.


def made_by() -> str:
    """Format that this version writes and reads."""
    return f"{_FORMAT} {version('hummock')} {ANALYZER_VERSION}"


def write_view(view: ProjectView, space: int, file: BinaryIO) -> SavedView:
    """Write a view to an empty file and return its description. Raises: OSError."""
    saved: list[SavedArray] = []
    start = 0
    growing = {name: grown.values for name, grown in _growing(view).items()}
    for name, values in (_fixed(view) | growing).items():
        room = capacity(len(values), 0, values.shape[1:], values.dtype) if name in growing else len(values)
        saved.append(_written(file, name, values, room, start))
        start = -(-saved[-1].end // _ALIGNMENT) * _ALIGNMENT
    # At least one page, as an empty file cannot be mapped, and no page after the arrays.
    size_bytes = max(start, _ALIGNMENT)
    file.truncate(size_bytes)
    return SavedView(
        made_by=made_by(),
        space=space,
        number=view.number,
        seq=view.seq,
        content_seq=view.content_seq,
        size_bytes=size_bytes,
        arrays=tuple(saved),
        **{name: getattr(view.columns, name) for name in _OF_COLUMNS},
        base=view.postings.base,
        mean_length=view.postings.frequent.mean_length,
    )


def read_view(saved: SavedView, descriptor: int, settings: ProjectSettings, limits: StoreLimits) -> ProjectView | None:
    """Map the view of an open file, which must not change later. None if it differs. Raises: OSError."""
    if os.fstat(descriptor).st_size != saved.size_bytes or not _is_sound(saved, descriptor):
        return None
    # Copy-on-write: changes stay in this process.
    mapped = mmap.mmap(descriptor, saved.size_bytes, access=mmap.ACCESS_COPY)
    arrays: Arrays = {
        one.name: np.ndarray((one.room, *one.shape), one.dtype, buffer=mapped, offset=one.start) for one in saved.arrays
    }
    return _view(saved, arrays, settings, limits)


def _written(file: BinaryIO, name: str, values: NDArray[Any], room: int, start: int) -> SavedArray:
    content = np.ascontiguousarray(values).reshape(-1).view(np.uint8).data
    digest = sha256()
    file.seek(start)
    for at in range(0, len(content), _PIECE_BYTES):
        # A copy: a newer view may change the last block of sign bits concurrently.
        piece = content[at : at + _PIECE_BYTES].tobytes()
        file.write(piece)
        digest.update(piece)
    return SavedArray(name, values.dtype.str, len(values), values.shape[1:], room, start, digest.digest())


def _is_sound(saved: SavedView, descriptor: int) -> bool:
    """Whether all digests match. Read, not mapped: a lost page raises OSError instead of killing the process."""

    def is_sound(one: SavedArray) -> bool:
        digest, at, end = sha256(), one.start, one.start + one.nbytes
        while at < end:
            piece = os.pread(descriptor, min(_PIECE_BYTES, end - at), at)
            if not piece:
                return False
            digest.update(piece)
            at += len(piece)
        return digest.digest() == one.sha256

    with ThreadPoolExecutor(_HASHING, "saved-view") as pool:
        # The largest first, so that the others are checked in parallel with it.
        return all(pool.map(is_sound, sorted(saved.arrays, key=lambda one: one.nbytes, reverse=True)))


def _fixed(view: ProjectView) -> Arrays:
    """Arrays that never grow, or are copied when they do."""
    postings, ids = view.postings, view.columns.ids[: len(view.columns)]
    return {
        "ids": np.frombuffer("".join(ids).encode(), np.uint8),
        "id_ends": np.cumsum(np.fromiter(map(len, ids), np.int64, len(ids))),
        "by_sign": view.columns.by_sign,
        "signs": np.empty(0, np.uint64) if view.signs is None else view.signs.used_blocks,
        "indptr": postings.index.indptr,
        "post_doc": postings.index.doc,
        "post_weight": postings.index.weight,
        "greatest": postings.frequent.greatest,
        "numbers": postings.frequent.numbers,
        "held": postings.frequent.presence.held,
        "before": postings.frequent.presence.before,
        "df_place": postings.df.place,
    }


def _growing(view: ProjectView) -> Mapping[str, Growing[Any]]:
    postings = view.postings
    return {
        **{f"column_{name}": column for name, column in view.columns.grown.items()},
        "vectors": view.vectors,
        "row_doc": view.row_doc,
        "fwd_indptr": postings.fwd_indptr,
        "fwd_term": postings.fwd_term,
        "fwd_counts": postings.fwd_counts,
        "df_pages": postings.df.pages,
    }


def _view(saved: SavedView, arrays: Arrays, settings: ProjectSettings, limits: StoreLimits) -> ProjectView:
    rows = {one.name: one.rows for one in saved.arrays}

    def growing(name: str) -> Growing[Any]:
        return Growing(arrays[name], rows[name], arrays[name][: rows[name]])

    text = arrays["ids"].tobytes().decode()
    columns = {name: growing(f"column_{name}") for name in COLUMNS}
    postings = Postings(
        index=Index(arrays["indptr"], arrays["post_doc"], arrays["post_weight"]),
        base=saved.base,
        frequent=FrequentTerms(
            greatest=arrays["greatest"],
            mean_length=saved.mean_length,
            numbers=arrays["numbers"],
            presence=Presence(arrays["held"], arrays["before"]),
        ),
        fwd_indptr=growing("fwd_indptr"),
        fwd_term=growing("fwd_term"),
        fwd_counts=growing("fwd_counts"),
        df=TermCounts(pages=growing("df_pages"), place=arrays["df_place"]),
    )
    return ProjectView(
        number=saved.number,
        seq=saved.seq,
        content_seq=saved.content_seq,
        settings=settings,
        columns=Columns(
            **values_of(columns),
            grown=columns,
            turns=TurnIndex.of(columns["session"].values, columns["session_position"].values),
            ids=[text[start:end] for start, end in pairwise([0, *arrays["id_ends"].tolist()])],
            by_sign=arrays["by_sign"],
            **{name: getattr(saved, name) for name in _OF_COLUMNS},
        ),
        vectors=growing("vectors"),
        row_doc=growing("row_doc"),
        postings=postings,
        domain_names=Lazy(DomainNames.read),
        given_names=Lazy(read_given_names),
        plans=limits.plans,
        signs=SignBits(arrays["signs"], rows["vectors"]) if rows["signs"] else None,
    )
