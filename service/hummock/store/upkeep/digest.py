"""Digest of a project's contents, to compare copies by."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Protocol

from hummock.store.tables import keys, record_codec
from hummock.store.tables.sessions import clock_key
from hummock.store.upkeep.inspection import Snapshot

_OF_MESSAGES = ("message", "message_id")
_LENGTHS = struct.Struct("<II")
_HELD = (
    "memory", "payload", "vector", "token", "by_id", "pending", "settings", "learning", "event", "turn", "usage",
    "link", "session_record", "session_order", "message", "message_id",
)  # fmt: skip # a list of names
"""All that cannot be made anew of the rest."""
_HELD_LATER = ("review",)
"""Tables that were added later and cannot be made anew either. They count only if the project has entries in them, so
that digests of older projects stay the same."""


_OF_CHUNKS = ("vector", "token")
"""Tables whose keys have the number of a space after the project's."""


class Moment(Protocol):
    """All tables at one moment, of whichever engine."""

    def entries(self, table: str, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Keys that begin so, and what is stored under them, in order."""

    def values(self, table: str, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Entries with this key prefix, in order, without seals; a damaged value is empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectDigest:
    """A project at one moment; `digest` is a SHA-256 in hexadecimal over all that it holds, and not over its name."""

    name: str
    seq: int
    memory_count: int
    digest: str


def digests(snapshot: Snapshot) -> tuple[ProjectDigest, ...]:
    """Digests of all projects, by their numbers."""
    return tuple(digest_of(snapshot, number, record) for number, record in snapshot.projects())


def digest_of(
    moment: Moment, number: int, record: record_codec.ProjectRecord, *, by_any_number: bool = False
) -> ProjectDigest:
    """Digest of one project.

    Args:
        moment: The tables at one moment.
        number: The project's.
        record: The project's.
        by_any_number: Makes the digest independent of the numbers of the project and its space, which copies change.
            Backups keep the numbers, and their digests include them.
    """
    hashed, prefix = sha256(), keys.project_prefix(number)
    # Messages of removed sessions are cleared some time.
    removed = tuple(key for key, _ in moment.entries("session_deleted", prefix))
    later = tuple(table for table in _HELD_LATER if next(moment.entries(table, prefix), None) is not None)
    for table in (*_HELD, *later):
        hashed.update(table.encode() + b"\n")
        cut = 2 * len(prefix) if by_any_number and table in _OF_CHUNKS else len(prefix)
        for key, value in moment.values(table, prefix):
            if table in _OF_MESSAGES and key.startswith(removed):
                continue
            if by_any_number and table == "session_order" and key != clock_key(number):
                # A session's key.
                value = value[len(prefix) :]
            hashed.update(_LENGTHS.pack(len(key), len(value)) + key[cut:] + value)
    count = sum(record.kinds.values())
    return ProjectDigest(name=record.name, seq=record.seq, memory_count=count, digest=hashed.hexdigest())
