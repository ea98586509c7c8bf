"""Policies for secrets in texts to be stored, and reports on those found."""

from __future__ import annotations

from enum import IntEnum

from msgspec import Struct


class SecretPolicy(IntEnum):
    """OFF looks for none, WARN says what it found and stores all as given, REDACT replaces what it found."""

    OFF = 1
    WARN = 2
    REDACT = 3


class SecretsFound(Struct, frozen=True, kw_only=True):
    """Number of secrets of one kind, at least 1, and whether they were replaced; never their text."""

    kind: str
    count: int
    redacted: bool
