"""One hash of all that a project has learnt, so that two states can be compared."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import astuple
from hashlib import sha256

from hummock.ports.learning import LearningRows


def digest(learning: LearningRows) -> str:
    """SHA-256 in hexadecimal over the project's state, its scopes with their turns and usage, and its profiles.

    It depends on nothing but these values: not on the order of events that led to them, nor on the store.
    """
    hashed = sha256()
    for row in _rows(learning):
        hashed.update(json.dumps(row).encode())
        hashed.update(b"\n")
    return hashed.hexdigest()


def _rows(learning: LearningRows) -> Iterator[tuple[object, ...]]:
    yield ("state", *astuple(learning.state()))
    for scope, turn in sorted(learning.scopes()):
        yield ("scope", scope, turn)
        for memory_id, usage in learning.usage(scope).items():
            yield ("usage", memory_id, usage.frequency, usage.last_sent_turn)
    for memory_id, profile in learning.profiles():
        yield ("profile", memory_id, profile.keywords, profile.last_analyzed_turn, profile.miss_count)
