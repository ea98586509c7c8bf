"""The store: durable data in an engine of tables, and views in memory that can be rebuilt from it."""

from hummock.store.limits import DEFAULT_LIMITS, StoreLimits
from hummock.store.lmdb.environment import recorded_model
from hummock.store.lmdb.files import held, holder, require_free
from hummock.store.lmdb.opening import open_reads, open_store
from hummock.store.table_store import StoreReads, WritableStore
from hummock.store.views.row_graph import has_hnswlib

__all__ = [
    "DEFAULT_LIMITS", "StoreLimits", "StoreReads", "WritableStore", "has_hnswlib", "held", "holder", "open_reads",
    "open_store", "recorded_model", "require_free",
]  # fmt: skip # a list of names
