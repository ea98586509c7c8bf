"""Opens the configured store: LMDB in the data directory, or a PostgreSQL database."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from hummock import store
from hummock.config import Settings
from hummock.core.embedding import EmbeddingSpace
from hummock.core.settings import IndexPolicy
from hummock.ports.models import Clock
from hummock.store.upkeep.moment import ready_spaces
from hummock.wiring.model_choice import RecordedModel
from hummock.wiring.parts import Say


def recorded(settings: Settings) -> RecordedModel | None:
    """Return what the store says of its vectors; None if it holds none yet. Read-only.

    Raises: StartError: another service has the data directory, or the store cannot be read.
    """
    store.require_free(settings.data_dir)
    if settings.store is None:
        return recorded_in(settings.data_dir)
    from hummock.store.postgresql.opening import recorded_model_of

    # Other services may use the database with its present model.
    name = recorded_model_of(settings.store.get_secret_value())
    return None if name is None else RecordedModel(name=name)


def recorded_in(directory: Path, *, is_in_use: bool = False) -> RecordedModel | None:
    """Return what a data directory says of its vectors; None if it holds none yet. Read-only. Raises: StartError."""
    name = store.recorded_model(directory, is_in_use=is_in_use)
    return None if name is None else RecordedModel(name=name, ready=ready_spaces(directory), switches=True)


def index_of(settings: Settings) -> IndexPolicy:
    """The index of vectors in large projects."""
    return IndexPolicy[settings.index.upper()]


@contextmanager
def opened(
    settings: Settings, space: EmbeddingSpace, clock: Clock, readers: int, say: Say
) -> Iterator[store.WritableStore]:
    """The store, which at most so many threads read at once; closed at the end. Raises: StartError."""
    if settings.index == "graph" and not store.has_hnswlib():
        say("warning: index is graph, but hnswlib is not installed; sign bits serve (make setup builds it)")
    if settings.store is not None:
        with _database(settings, settings.store.get_secret_value(), space, clock, readers, say) as made:
            yield made
        return
    with closing(
        store.open_store(
            settings.data_dir,
            space=space,
            clock=clock,
            map_bytes=settings.storage.map_bytes,
            quota_bytes=settings.storage.quota_bytes,
            memory_budget_bytes=settings.storage.memory_budget_bytes,
            index=index_of(settings),
            say=say,
        )
    ) as made:
        say(f"store {settings.data_dir}, {made.status().project_count} projects")
        _warn_of_others(settings.data_dir, say)
        yield made


@contextmanager
def _database(
    settings: Settings, dsn: str, space: EmbeddingSpace, clock: Clock, readers: int, say: Say
) -> Iterator[store.WritableStore]:
    # Its packages come with an extra that few install.
    from hummock.store.postgresql.opening import open_shared_store

    # The directory still holds tokens, the audit log and sockets, so it belongs to one service.
    with (
        store.held(settings.data_dir),
        closing(
            open_shared_store(
                dsn,
                space=space,
                clock=clock,
                quota_bytes=settings.storage.quota_bytes,
                memory_budget_bytes=settings.storage.memory_budget_bytes,
                readers=readers,
                index=index_of(settings),
                say=say,
            )
        ) as made,
    ):
        say(f"store {made.status().directory}, {made.status().project_count} projects")
        _warn_of_others(settings.data_dir, say)
        yield made


def _warn_of_others(data_dir: Path, say: Say) -> None:
    """Warn if other users can read an existing data directory; one that we create is private."""
    mode = stat.S_IMODE(data_dir.stat().st_mode)
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        say(f"warning: other users may look into {data_dir} (mode {mode:o}); chmod 700 {data_dir}")
