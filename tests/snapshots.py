"""Snapshots for tests that ask one thing at a time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

from hummock.core.recall import Recalled, RecallQuery
from hummock.ports.store import Reads, Snapshot


class _EachAnew:
    """Answers each method call with a snapshot of its own."""

    def __init__(self, store: Reads, project: str, min_seq: int) -> None:
        self._read = partial(store.read, project, min_seq=min_seq)

    def __getattr__(self, method: str) -> Callable[..., Any]:
        return lambda *args, **named: self._read(lambda snapshot: getattr(snapshot, method)(*args, **named))


def at(store: Reads, project: str, min_seq: int = 0) -> Snapshot:
    """The project as it is at each call."""
    return cast("Snapshot", _EachAnew(store, project, min_seq))


def over(store: Reads, recall: Callable[[RecallQuery, Snapshot], Recalled]) -> Callable[[RecallQuery], Recalled]:
    """The recall over a store, each query of a snapshot of its own."""
    return lambda query: store.read(query.project, partial(recall, query), min_seq=query.min_seq)
