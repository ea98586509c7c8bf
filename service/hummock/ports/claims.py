"""Who does what nobody calls for, among all services that share a store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from hummock.core.claims import Claim, Work


class Claims(Protocol):
    """Claims to work. Safe to call from several threads.

    Claims live as long as their service: one that dies, or says nothing for longer than its lease, has none any more,
    and what it was doing is there for others. Whoever asks for the same work twice has a new claim, and the old one is
    void: within a service one object asks for a kind of work.
    """

    def take(self, work: Work, project: str) -> Claim | None:
        """A claim to the work in a project, or in ALL_PROJECTS; None while another service has it."""

    def release(self, claim: Claim) -> None:
        """Leaves the work to whoever asks next. Nothing happens where it was lost."""

    def holds(self, claim: Claim) -> bool:
        """Whether it is this service's still, as far as it knows; a write finds out for certain."""

    def follow(self, follower: Callable[[], None]) -> None:
        """Tells whenever another service has died: what it had to do waits. The follower returns at once."""

    def close(self) -> None:
        """Leaves all that it has to others."""
