"""Calls of two parts, of which each runs where it does not stand in others' way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from google.protobuf.message import Message


@dataclass(frozen=True, slots=True)
class Rest:
    """What is left of a call for another gate: of one that computes, what waits for the disk; of a long one, all."""

    finish: Callable[[], Message]
