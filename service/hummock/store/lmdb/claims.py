"""Claims where one service alone writes."""

from __future__ import annotations

from collections.abc import Callable

from hummock.ports.claims import Claim, Work


class OnlyWriter:
    """`ports.Claims` of a data directory: all work is the one service's that has it."""

    def take(self, work: Work, project: str) -> Claim:
        """Always a claim."""
        return Claim(work=work, project=project, fence=0)

    def release(self, claim: Claim) -> None:
        """Nobody else waits for it."""

    def holds(self, claim: Claim) -> bool:
        """Always."""
        return True

    def follow(self, follower: Callable[[], None]) -> None:
        """There is no other service that could die."""

    def close(self) -> None:
        """There is nothing to end."""
