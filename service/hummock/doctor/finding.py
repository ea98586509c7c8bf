"""Input and result of the checks."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from hummock.config import Settings
from hummock_client.v1.admin_service_pb2 import GetStatusResponse


class Level(StrEnum):
    """Severity of a finding; an error stops the service from working, or soon will."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Result of a check.

    Attributes:
        level: Severity.
        what: Message, without stored content.
        command: Shell command for the repair; empty if none is needed. Words in capitals are placeholders.
    """

    level: Level
    what: str
    command: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Subject of the checks. The directory and the service may be missing.

    Attributes:
        settings: Settings that a service started now would have.
        version: Version of this Hummock.
        now_s: Unix seconds.
        holder: Process that has the data directory locked; empty if none.
        address: Address of a service with these settings.
        is_listened_at: Whether any process accepts connections there.
        status: Status of the service there; None if it gave none.
        refusal: Why it gave none; empty if it was not asked.
    """

    settings: Settings
    version: str
    now_s: float
    holder: str
    address: str
    is_listened_at: bool
    status: GetStatusResponse | None
    refusal: str

    @property
    def data(self) -> Path:
        """The data directory."""
        return self.settings.data_dir

    @property
    def its_data(self) -> str:
        """Command-line option that names the data directory."""
        return f"--data {shlex.quote(str(self.data))}"

    @property
    def service(self) -> GetStatusResponse | None:
        """Status of the service on this data directory, or None."""
        if self.status is None or Path(self.status.storage.directory).resolve() != self.data.resolve():
            return None
        return self.status


def fine(what: str) -> Finding:
    """A finding of level OK."""
    return Finding(level=Level.OK, what=what)


def warning(what: str, command: str) -> Finding:
    """A finding of level WARNING: it works, but needs attention."""
    return Finding(level=Level.WARNING, what=what, command=command)


def error(what: str, command: str) -> Finding:
    """A finding of level ERROR: it does not work, or soon will not."""
    return Finding(level=Level.ERROR, what=what, command=command)
