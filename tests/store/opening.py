"""Opening stores for tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event

from hummock.core.embedding import EmbeddingSpace
from hummock.core.settings import IndexPolicy
from hummock.ports.models import Clock
from hummock.ports.writes import UnitOfWork
from hummock.store import StoreLimits, WritableStore, open_store
from hummock.store.postgresql.opening import SharedStore, open_shared_store
from tests.fakes import FakeClock
from tests.strategies import SPACE, write_request

MIB = 1024 * 1024

EAGER = StoreLimits(delta_docs=3, dead_docs=2, dead_share=0.2, ops_kept=5, trimmed_entries=8, small_views_share=1.0)
"""Rebuilds and trims after a few writes, so that small tests see it; small projects may fill the memory."""


@contextmanager
def opened(
    directory: Path,
    *,
    clock: Clock | None = None,
    space: EmbeddingSpace = SPACE,
    map_bytes: int = 256 * MIB,
    quota_bytes: int = 128 * MIB,
    memory_budget_bytes: int = 64 * MIB,
    limits: StoreLimits = EAGER,
    index: IndexPolicy = IndexPolicy.SIGNS,
    say: Callable[[str], None] = lambda line: None,
) -> Iterator[WritableStore]:
    """A store that is closed at the end."""
    store = open_store(
        directory,
        space=space,
        clock=clock or FakeClock(),
        map_bytes=map_bytes,
        quota_bytes=quota_bytes,
        memory_budget_bytes=memory_budget_bytes,
        limits=limits,
        index=index,
        say=say,
    )
    try:
        yield store
    finally:
        store.close()


@contextmanager
def opened_shared(
    dsn: str,
    *,
    clock: Clock | None = None,
    space: EmbeddingSpace = SPACE,
    quota_bytes: int = 1024 * MIB,
    memory_budget_bytes: int = 64 * MIB,
    limits: StoreLimits = EAGER,
    say: Callable[[str], None] = lambda line: None,
) -> Iterator[SharedStore]:
    """A store over PostgreSQL that is closed at the end."""
    store = open_shared_store(
        dsn,
        space=space,
        clock=clock or FakeClock(),
        quota_bytes=quota_bytes,
        memory_budget_bytes=memory_budget_bytes,
        readers=4,
        limits=limits,
        say=say,
    )
    try:
        yield store
    finally:
        store.close()


class Blocker:
    """Holds the writer inside a write, so that what follows makes one group."""

    def __init__(self, store: WritableStore) -> None:
        self._open = Event()
        self._entered = Event()
        self.written = store.write("blocker", write_request(self._wait))
        assert self._entered.wait(30)

    def release(self) -> None:
        """Lets the writer go on."""
        self._open.set()

    def _wait(self, unit: UnitOfWork) -> None:
        self._entered.set()
        assert self._open.wait(30)
