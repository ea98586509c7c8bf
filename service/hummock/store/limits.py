"""The store's numbers, in one place."""

from __future__ import annotations

from dataclasses import dataclass

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanLimits:
    """Limits that choose how the nearest vectors are found; `docs/decisions/007` has the figures they rest on."""

    sign_rows: int = 32_768
    exact_rows: int = 16_384
    pool_rows: int = 4000
    pool_per_result: int = 40
    pool_share: int = 100
    widening: int = 4
    halved_memories: int = 262_144


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreLimits:
    """Limits of the store's grouping, caching and rebuilding."""

    group_jobs: int = 256
    group_bytes: int = 64 * MIB
    bulk_group_bytes: int = 256 * KIB
    request_kept_s: float = 24 * 3600.0
    retired_kept_s: float = 30 * 24 * 3600.0
    retired_bytes: int = 256 * MIB
    trimmed_entries: int = 64
    ops_kept: int = 1024
    delta_docs: int = 2000
    delta_share: float = 0.25
    small_delta_docs: int = 256
    dead_share: float = 0.2
    dead_docs: int = 256
    saved_view_memories: int = 131_072
    saved_view_s: float = 10.0
    small_view_bytes: int = MIB
    small_views_share: float = 0.125
    dictionary_bytes: int = 64 * MIB
    lease_s: float = 10.0
    recent_memory_bytes: int = 64 * MIB
    recent_token_bytes: int = 64 * MIB
    disk_reserve_bytes: int = 64 * MIB
    map_reserve_share: float = 0.125
    plans: PlanLimits = PlanLimits()

    def most_outside(self, inside: int) -> int:
        """Most memories outside an inverted index that so many are in."""
        return min(self.delta_docs, max(self.small_delta_docs, int(self.delta_share * inside)))


DEFAULT_LIMITS = StoreLimits()

MAP_BYTES = 64 * GIB
MAX_READERS = 1024
MAX_QUERY_TERMS = 32

MAX_SUBSTRING_BYTES = 32 * MIB
"""Most bytes of records that one group is searched for substrings in: some tenths of a second."""

FREQUENT_ONE_IN = 32
"""A term that one in so many memories holds has a bit for every memory: 6 bytes for each that holds it, at most."""

MOST_HOLDERS = 3
"""Memories that hold all of a name, up to which they are looked up rather than searched for."""

MOST_READ_FOR_A_NAME = 128
"""Memories that hold all terms of a name, up to which their texts are read for the name as it is written."""

NEIGHBOURS_OF = 10
"""The best of each path, whose neighbours in their sessions are candidates too."""

EVENT_PAGE_BYTES = MIB
"""Most bytes of memories that are read at once for watches; one write may exceed it."""

EXPORT_PAGE_BYTES = MIB // 4
"""Most bytes of memories and vectors that are read at once for an export; one memory may exceed it."""
