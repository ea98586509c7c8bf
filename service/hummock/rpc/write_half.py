"""Calls of two halves: one that computes, and one that waits for the disk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from google.protobuf.message import Message


@dataclass(frozen=True, slots=True)
class WriteHalf:
    """The second half of a call. It runs where writes run, so that no worker of the reads waits for the disk."""

    finish: Callable[[], Message]
