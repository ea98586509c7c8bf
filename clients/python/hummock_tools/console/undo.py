"""Memories as they were before they were changed or removed here, for as long as this process runs."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from typing import Final, NamedTuple

from hummock_client.v1.memory_pb2 import Memory

_MAX_KEPT: Final = 64
_OUTPUT_ONLY: Final = ("text", "update_time", "content_hash", "token_count", "chunk_count", "superseded_by", "writer")


class Kept(NamedTuple):
    """A memory that can be learnt again.

    Attributes:
        project: Project of the memory.
        memory: The memory before the change.
        left_as: The version in which it was left, so that nothing is lost that others have written since; empty where
            it was removed.
    """

    project: str
    memory: Memory
    left_as: str


class UndoShelf:
    """The last 64 of them, each under a key that nobody can guess."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Kept] = OrderedDict()

    def __contains__(self, key: str) -> bool:
        return key in self._kept

    def keep(self, project: str, memory: Memory, left_as: str) -> str:
        """The key of a memory in the RAW view, of which nothing that the service makes itself is kept."""
        own = Memory()
        own.CopyFrom(memory)
        for name in _OUTPUT_ONLY:
            own.ClearField(name)
        key = secrets.token_urlsafe(16)
        self._kept[key] = Kept(project, own, left_as)
        if len(self._kept) > _MAX_KEPT:
            self._kept.popitem(last=False)
        return key

    def find(self, key: str) -> Kept | None:
        """The value kept under a key, or None."""
        return self._kept.get(key)

    def drop(self, key: str) -> None:
        """Forgets it: it was restored."""
        self._kept.pop(key, None)
