"""Shapes of recalls: all that a client's requests have in common, so that it is checked and parsed once."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final, TypeVar

from hummock_client.v1.recall_pb2 import RecallRequest

PER_CALL: Final = ("project", "query_text", "query_vector", "session_id", "min_seq", "as_of")
"""Fields of a recall that differ from call to call; all others are its shape."""

_KEPT: Final = 256
_LARGEST_KEPT_BYTES: Final = 4096

Value = TypeVar("Value")


def shape_of(request: RecallRequest) -> bytes:
    """The request without its fields `PER_CALL`, as bytes that are equal for equal shapes."""
    rest = RecallRequest()
    rest.CopyFrom(request)
    for name in PER_CALL:
        rest.ClearField(name)
    return rest.SerializeToString(deterministic=True)


def once_a_shape(make: Callable[[RecallRequest], Value]) -> Callable[[bytes], Value]:
    """`make` of a shape, whose results are kept; those of large shapes are not, and neither are errors."""

    def of(shape: bytes) -> Value:
        return make(RecallRequest.FromString(shape))

    kept = lru_cache(_KEPT)(of)
    return lambda shape: kept(shape) if len(shape) <= _LARGEST_KEPT_BYTES else of(shape)
