"""Claims: leases on background work that several services could do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

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
