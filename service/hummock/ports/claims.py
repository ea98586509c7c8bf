"""Claims: leases on background work that several services could do, and who gives them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

from hummock.core.errors import Unavailable

ALL_PROJECTS: Final = ""
"""Stands for a project's name where work is the whole store's: no project has it."""


class Work(StrEnum):
    """Kinds of work. Those that take long are claimed project by project, the others for the whole store."""

    EMBED = "embed"
    LEARN = "learn"
    SCAN = "scan"
    EXPIRE = "expire"
    RETAIN = "retain"
    CLEAR = "clear"
    REANALYSE = "reanalyse"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The right to do a kind of work in a project, or in all of them.

    Attributes:
        project: A name, or ALL_PROJECTS.
        fence: No other claim has it or had it. A write that is made under the claim is refused once another one took
            its place.
        holder: The service's lease under which it was taken; empty where there is one service alone.
    """

    work: Work
    project: str
    fence: int
    holder: str = ""


class ClaimLost(Unavailable):
    """A write was made under a claim that has run out: another service does that work, or may by now."""

    reason = "CLAIM_LOST"

    def __init__(self, claim: Claim) -> None:
        where = f"in project {claim.project}" if claim.project else "in all projects"
        super().__init__(f"this service has no claim to {claim.work} {where} any more; nothing was written")
        self.work = claim.work.value


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
