"""What a test is sure of."""

from __future__ import annotations

from typing import TypeVar

Value = TypeVar("Value")


def sure(value: Value | None) -> Value:
    """The value, which must be there."""
    assert value is not None
    return value
