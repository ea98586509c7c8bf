"""Vectors for requests, without NumPy."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable

from hummock.v1.memory_pb2 import Vector


def vector(values: Iterable[float], emb_space: str) -> Vector:
    """A vector as the service reads it.

    Args:
        values: Components, rounded to float32; need not have length 1.
        emb_space: The space in which they may be compared, as AdminService.Status names it.
    """
    components = array("f", values)
    if sys.byteorder == "big":
        components.byteswap()
    return Vector(values=components.tobytes(), emb_space=emb_space)


def components(sent: Vector) -> list[float]:
    """The components of a vector."""
    read = array("f")
    read.frombytes(sent.values)
    if sys.byteorder == "big":
        read.byteswap()
    return read.tolist()
