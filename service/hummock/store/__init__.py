"""The embedded store: LMDB holds the truth, memory holds what can be rebuilt from it."""

from hummock.store.embedded import EmbeddedStore, ReadOnlyStore, open_reads, open_store
from hummock.store.environment import recorded_model
from hummock.store.limits import DEFAULT_LIMITS, StoreLimits
from hummock.store.lock import require_free

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
