"""What a project does with secrets in what is sent to be stored, and what is said of those that were found."""

from __future__ import annotations

from enum import IntEnum

from msgspec import Struct


class SecretPolicy(IntEnum):
    """OFF looks for none, WARN says what it found and stores all as given, REDACT replaces what it found."""

    OFF = 1
    WARN = 2
    REDACT = 3


class SecretsFound(Struct, frozen=True, kw_only=True):
    """How many secrets of one kind were found, at least 1, and whether they were replaced; never their text."""

    kind: str
    count: int
    redacted: bool
