"""What the checks are given, and what each of them gives."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from hummock.config import Settings
from hummock_client.v1.admin_service_pb2 import GetStatusResponse


class Level(StrEnum):
    """How a check has ended; an error keeps the service from its work, or soon will."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a check has found.

    Attributes:
        level: How bad it is.
        what: In words, without anything that is stored.
        command: What mends it, in a shell; empty where nothing needs to be mended. Words in capitals are to be chosen.
    """

    level: Level
    what: str
    command: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What is examined. Nothing of it needs to be there.

    Attributes:
        settings: As a service that starts now would have them.
        version: Of this Hummock.
        now_s: Unix seconds.
        holder: The process that has the data directory; empty while there is none.
        address: Where a service listens by these settings.
        is_listened_at: Whether anybody takes connections there.
        status: What the service there says; None where it says nothing.
        refusal: Why it says nothing; empty where nobody was asked.
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
        """The option that names the data directory, in a command."""
        return f"--data {shlex.quote(str(self.data))}"

    @property
    def service(self) -> GetStatusResponse | None:
        """What the service on this data directory says, if one answers."""
        if self.status is None or Path(self.status.storage.directory).resolve() != self.data.resolve():
            return None
        return self.status


def fine(what: str) -> Finding:
    """Nothing is wrong."""
    return Finding(level=Level.OK, what=what)


def warning(what: str, command: str) -> Finding:
    """It works, and somebody should know."""
    return Finding(level=Level.WARNING, what=what, command=command)


def error(what: str, command: str) -> Finding:
    """It does not work, or is about to stop."""
    return Finding(level=Level.ERROR, what=what, command=command)
