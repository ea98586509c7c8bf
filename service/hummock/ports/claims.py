"""Claims: leases on background work that several services could do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

from hummock.core.errors import Unavailable

ALL_PROJECTS: Final = ""  # Takes the place of a project's name for work on the whole store; no project has this name.


class Work(StrEnum):
    """Kinds of background work. Long ones are claimed per project, the others for the whole store."""

    EMBED = "embed"
    LEARN = "learn"
    SCAN = "scan"
    EXPIRE = "expire"
    RETAIN = "retain"
    CLEAR = "clear"
    REANALYSE = "reanalyse"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The right to do a kind of work in a project, or in all of them."""

    work: Work
    project: str  # A name, or ALL_PROJECTS.
    # Unique among all claims ever made. A write under the claim is refused once another claim has replaced it.
    fence: int
    holder: str = ""  # The lease of the service that took it; empty if there is only one service.


class ClaimLost(Unavailable):
    """A write was made under a claim that has run out: another service does that work, or may by now."""

    reason = "CLAIM_LOST"

    def __init__(self, claim: Claim) -> None:
        where = f"in project {claim.project}" if claim.project else "in all projects"
        super().__init__(f"this service has no claim to {claim.work} {where} any more; nothing was written")
        self.work = claim.work.value


class Claims(Protocol):
    """Claims to work. Safe to call from several threads.

    Claims live as long as their service: one that dies, or does not renew its lease in time, loses them, and others can
    take over its work. Taking the same work twice gives a new claim and voids the old one, so within a service only one
    object takes each kind of work.
    """

    def take(self, work: Work, project: str) -> Claim | None:
        """A claim to the work in a project, or in ALL_PROJECTS; None while another service has it."""

    def release(self, claim: Claim) -> None:
        """Release the work for others. Does nothing if the claim was lost."""

    def holds(self, claim: Claim) -> bool:
        """Whether it is this service's still, as far as it knows; a write finds out for certain."""

    def follow(self, follower: Callable[[], None]) -> None:
        """Call the follower whenever another service has died and left work. The follower must return at once."""

    def close(self) -> None:
        """Leaves all that it has to others."""
