"""What a project holds as one number, to compare copies by."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from hashlib import sha256

from hummock.store.tables import keys, record_codec
from hummock.store.upkeep.inspection import Snapshot

_OF_MESSAGES = ("message", "message_id")
_LENGTHS = struct.Struct("<II")
_HELD = (
    "memory", "payload", "vector", "token", "by_id", "pending", "settings", "learning", "event", "turn", "usage",
    "link", "session_record", "session_order", "message", "message_id",
)  # fmt: skip # a list of names
"""All that cannot be made anew of the rest."""
_HELD_LATER = ("review",)
"""Likewise; of a project that has none of it the digest is as it was before there was such a table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectDigest:
    """A project at one moment; `digest` is a SHA-256 in hexadecimal over all that it holds, and not over its name."""

    name: str
    seq: int
    memory_count: int
    digest: str


def digests(snapshot: Snapshot) -> tuple[ProjectDigest, ...]:
    """Of all projects, by their numbers."""
    return tuple(_of_project(snapshot, number, record) for number, record in snapshot.projects())


def _of_project(snapshot: Snapshot, number: int, record: record_codec.ProjectRecord) -> ProjectDigest:
    hashed, prefix = sha256(), keys.project_prefix(number)
    # Messages of removed sessions are cleared some time.
    removed = tuple(key for key, _ in snapshot.entries("session_deleted", prefix))
    later = tuple(table for table in _HELD_LATER if any(True for _ in snapshot.entries(table, prefix)))
    for table in (*_HELD, *later):
        hashed.update(table.encode() + b"\n")
        for key, value in snapshot.values(table, prefix):
            if table in _OF_MESSAGES and key.startswith(removed):
                continue
            hashed.update(_LENGTHS.pack(len(key), len(value)) + key[len(prefix) :] + value)
    count = sum(record.kinds.values())
    return ProjectDigest(name=record.name, seq=record.seq, memory_count=count, digest=hashed.hexdigest())
