"""The time."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """The time. Tests move it by hand."""

    def now(self) -> float:
        """Unix seconds."""

    def monotonic(self) -> float:
        """Seconds from some start; never goes back."""
