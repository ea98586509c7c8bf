"""The store's numbers, in one place."""

from __future__ import annotations

from dataclasses import dataclass

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanLimits:
    """Limits that choose how the nearest vectors are found; `docs/decisions/007` has the figures they rest on.

    Attributes:
        sign_rows: Vector rows from which a project keeps sign bits; a scan of fewer costs less than an inference.
        exact_rows: So many rows that pass the filter are all scored: about as fast as a prefilter, and exact.
        pool_rows: Fewest rows that the sign bits select for exact scoring: half would do for texts, but not where
            many rows lie equally near.
        pool_per_result: As many rows for each memory that is asked for.
        pool_share: One in so many of the rows that pass is selected at least, since more rows crowd every pool.
        widening: How much wider the second pool is, when the first held too few memories.
        halved_memories: In a project of so many, words are searched for on another core, if one is free.
    """

    sign_rows: int = 32_768
    exact_rows: int = 16_384
    pool_rows: int = 4000
    pool_per_result: int = 40
    pool_share: int = 100
    widening: int = 4
    halved_memories: int = 262_144


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreLimits:
    """Limits of the store's grouping, caching and rebuilding.

    Attributes:
        group_jobs: Writes that share one transaction and one fsync.
        group_bytes: A transaction that has written so much takes no further job.
        bulk_group_bytes: The same behind a bulk write, where no interactive one comes meanwhile.
        request_kept_s: How long a request_id is remembered.
        retired_kept_s: How long the vectors of a text are kept once nobody has it any more.
        retired_bytes: Most that such vectors take; the oldest give way.
        trimmed_entries: Outdated entries of each table that a write removes, besides as many as it adds.
        ops_kept: Writes whose operations are kept, so that a view that lags by fewer is brought up to date by them.
        delta_docs: Most memories outside the inverted index; more of them make a new index beside the old.
        delta_share: The same as a share of those that are inside: a search looks through all that are outside, and an
            index of few is soon made.
        small_delta_docs: Fewer memories than this never make an index.
        dead_share: Share of removed memories from which a view is rebuilt without them, in (0, 1).
        dead_docs: Fewer removed memories than this never make a rebuild.
        saved_view_memories: A project of so many is kept as a file as well, since to load it takes a second.
        saved_view_s: Stopping begins to write no further such file when so much time has gone.
        small_view_bytes: A project that takes less memory is loaded in milliseconds.
        small_views_share: Of the budget of memory, for all such projects together.
        dictionary_bytes: For the numbers of terms that the writer has met lately.
        lease_s: A service that says nothing for so long is taken for dead, where several have one store, and another
            one does its work. It renews its lease four times meanwhile.
        recent_memory_bytes: For memories that were read lately, where each read is a round trip.
        recent_token_bytes: For token vectors, likewise.
        disk_reserve_bytes: Free disk space below which nothing is stored, so that deleting still works.
        map_reserve_share: Share of the map that the quota leaves free for the same reason.
        plans: Of the search for near vectors.
    """

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
