"""How the service is, as a value."""

from __future__ import annotations

from dataclasses import dataclass

from hummock.core.embedding import EmbeddingSpace


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreStatus:
    """How full a store is. Bytes of the directory in use and allowed; bytes of the indexes in memory."""

    directory: str
    used_bytes: int
    quota_bytes: int
    project_count: int
    loaded_project_count: int
    loaded_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceStatus:
    """What runs, on what, and how full it is; `advice` says what could be better, empty when there is nothing."""

    version: str
    uptime_s: float
    space: EmbeddingSpace
    advice: str
    store: StoreStatus
