"""The stage of a recall that brings what stands beside its hits, as far as a reply has room for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice

from hummock.core.recall import Degradation, Hit, RecallQuery
from hummock.ports import Recallable
from hummock.recall.gather import Probe
from hummock.recall.hits import with_neighbours

MOST_BYTES = 14 * 1024 * 1024
"""Room for hits and what stands beside them, as they are stored. A reply may have 16 MiB, and names fields, scores and
terms besides; what stands beside several hits is sent with each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """Hits of one group, and the store's number of each."""

    hits: tuple[Hit, ...]
    docs: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Accompanied:
    """Hits of each group with what stands beside them, and what had to be left out."""

    hits: Mapping[str, tuple[Hit, ...]]
    degraded: tuple[Degradation, ...] = ()


def accompanied(store: Recallable, query: RecallQuery, probe: Probe, loaded: Mapping[str, Loaded]) -> Accompanied:
    """The hits with the neighbours that the query asks for; groups share the room, those of the first come first."""
    docs = [doc for group in loaded.values() for doc in group.docs]
    beside = store.beside(query.project, docs, query.context_window, full=query.full, most_bytes=MOST_BYTES)
    given = iter(beside)
    hits = {
        name: with_neighbours(
            group.hits, list(islice(given, len(group.hits))), query.filter.excluded_ids, probe.text_hashes
        )
        for name, group in loaded.items()
    }
    return Accompanied(hits=hits, degraded=_cut(sum(found.is_cut for found in beside), len(docs)))


def _cut(cut: int, count: int) -> tuple[Degradation, ...]:
    if not cut:
        return ()
    message = (
        f"neighbours of {cut} of {count} hits were left out, for the reply would be too large; ask for fewer hits, "
        "fewer neighbours or the INDEX view"
    )
    return (Degradation(path="context_window", reason="REPLY_LIMIT", message=message),)
