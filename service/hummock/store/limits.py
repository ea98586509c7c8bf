"""Limits and tuning constants of the store."""

from __future__ import annotations

from dataclasses import dataclass

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanLimits:
    """Limits that choose the plan of a nearest-vector search; `docs/decisions/007` has the figures behind them."""

    # Vector rows from which a project keeps sign bits; a scan of fewer costs less than an inference.
    sign_rows: int = 32_768
    # Up to this many rows that pass the filter are all scored: as fast as a prefilter, and exact.
    exact_rows: int = 16_384
    # Rows that the sign bits select first for exact scoring. As many again are added until none of them is among the
    # best: 2,000 rows of a million answer most questions, and few need the largest pool.
    pool_rows: int = 1000
    pool_per_result: int = 20  # Minimum rows of the first pool per requested memory.
    pool_growth: int = 8  # The largest pool has at most this many times the rows of the first,
    pool_share: int = 50  # or one in this many of the rows that pass, where that is more.
    pool_margin: float = 1.5  # The best of which none may be added, as a factor of the number of requested memories.
    widening: int = 4  # Factor of the largest pool's size as long as it has too few memories.
    halved_memories: int = 262_144  # Project size from which keyword search uses a second core, if one is free.


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreLimits:
    """Limits of the store's grouping, caching and rebuilding."""

    group_jobs: int = 256  # Writes that share one transaction and one fsync.
    group_bytes: int = 64 * MIB  # Bytes after which a transaction takes no further job.
    bulk_group_bytes: int = 256 * KIB  # The same limit after a bulk write, until an interactive one arrives.
    request_kept_s: float = 24 * 3600.0  # Retention of a request_id.
    retired_kept_s: float = 30 * 24 * 3600.0  # Retention of the vectors of a text that no memory uses any more.
    retired_bytes: int = 256 * MIB  # Upper bound on the size of such vectors; the oldest are removed first.
    trimmed_entries: int = 64  # Outdated entries of each table that a write removes, in addition to as many as it adds.
    ops_kept: int = 1024  # Writes whose operations are kept; a view that lags by fewer is brought up to date from them.
    delta_docs: int = 2000  # Upper bound on memories outside the inverted index; above it a new index is built.
    # Upper bound on unindexed memories as a share of the indexed ones: a search scans all unindexed memories, and a
    # small index is built quickly.
    delta_share: float = 0.25
    small_delta_docs: int = 256  # Fewer unindexed memories than this never trigger an index build.
    dead_share: float = 0.2  # Share of removed memories from which a view is rebuilt without them, in (0, 1).
    dead_docs: int = 256  # Fewer removed memories than this never trigger a rebuild.
    # Project size from which its view is also saved to a file, as loading takes a second.
    saved_view_memories: int = 131_072
    saved_view_s: float = 10.0  # Time after which closing starts to save no further view.
    small_view_bytes: int = MIB  # Views below this size load in milliseconds.
    small_views_share: float = 0.125  # Share of the memory budget for all small views together.
    dictionary_bytes: int = 64 * MIB  # Cache of term numbers that the writer used recently.
    # Time without a renewal after which a service that shares the store is considered dead and another takes over its
    # work. A lease is renewed four times in this time.
    lease_s: float = 10.0
    recent_memory_bytes: int = 64 * MIB  # Cache of recently read memories, for engines where each read is a round trip.
    recent_token_bytes: int = 64 * MIB  # Cache of token vectors, for the same engines.
    disk_reserve_bytes: int = 64 * MIB  # Free disk space below which nothing is stored, so that deleting still works.
    map_reserve_share: float = 0.125  # Share of the map that the quota leaves free for the same reason.
    plans: PlanLimits = PlanLimits()  # Limits of the nearest-vector search.

    def most_outside(self, inside: int) -> int:
        """Upper bound on unindexed memories next to an inverted index of `inside` memories."""
        return min(self.delta_docs, max(self.small_delta_docs, int(self.delta_share * inside)))


DEFAULT_LIMITS = StoreLimits()

MAP_BYTES = 64 * GIB
MAX_READERS = 1024
MAX_QUERY_TERMS = 32

MAX_SUBSTRING_BYTES = 32 * MIB
"""Upper bound on record bytes that one group's substring search reads: some tenths of a second."""

FREQUENT_ONE_IN = 32
"""A term in at least one of this many memories gets a bitmap of all: at most 6 bytes per memory that contains it."""

MOST_HOLDERS = 3  # Up to this many memories that contain a whole name are looked up directly instead of searched for.

MOST_READ_FOR_A_NAME = 128
"""Up to this many memories with all terms of a name have their texts checked for the name as written."""

NEIGHBOURS_OF = 10  # Number of best memories per path whose session neighbours become candidates too.
DECODED_MEMORY_BYTES = 64 * MIB  # Cache of memories that recalls loaded lately, decoded and as they are sent.
EVENT_PAGE_BYTES = MIB  # Upper bound on memory bytes read at once for watches; a single write may exceed it.

EXPORT_PAGE_BYTES = MIB // 4
"""Upper bound on bytes of memories and vectors read at once for an export; a single memory may exceed it."""
