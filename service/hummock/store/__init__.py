"""The embedded store: LMDB holds the truth, memory holds what can be rebuilt from it."""

from hummock.store.limits import DEFAULT_LIMITS, StoreLimits
from hummock.store.lmdb.environment import recorded_model
from hummock.store.lmdb.lock import require_free
from hummock.store.lmdb.store import EmbeddedStore, ReadOnlyStore, open_reads, open_store

__all__ = [
    "DEFAULT_LIMITS",
    "EmbeddedStore",
    "ReadOnlyStore",
    "StoreLimits",
    "open_reads",
    "open_store",
    "recorded_model",
    "require_free",
]
