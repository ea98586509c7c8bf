"""The star map: memories as points of a plane, in columns that are packed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hummock.core.stars import Stars
from hummock.memories.garden import Garden
from hummock.rpc.streams import Steps
from hummock_client.v1 import memory_service_pb2 as pb

MOST_STARS = 4096
"""Most stars in one message: 2.5 MiB at most, which takes a worker some tens of milliseconds."""


def map_memories(garden: Garden, project: str, ids: Sequence[str]) -> Steps:
    """The messages of one map. Each part is read anew, so that a slow reader keeps nothing in memory.

    Args:
        garden: Knows the memories' places.
        project: It may be missing.
        ids: Memories to return; empty for all.
    """
    # Read first: what is written from here on is told behind it, whether or not the map has it.
    seq = garden.seq(project)
    yield pb.MapMemoriesResponse(seq=seq, memory_count=garden.memory_count(project))
    numbers: dict[str, int] = {}
    if ids:
        if (some := garden.stars_of(project, ids)).ids:
            yield _response(seq, some, numbers)
        return
    after: int | None = 0
    while after is not None:
        stars = garden.stars(project, after, MOST_STARS)
        if stars.ids:
            yield _response(seq, stars, numbers)
        after = stars.next_after


def _response(seq: int, stars: Stars, numbers: dict[str, int]) -> pb.MapMemoriesResponse:
    """A part as its message; sessions that it names for the first time get the next numbers."""
    known = len(numbers)
    own = [numbers.setdefault(name, len(numbers) + 1) for name in stars.session_ids]
    # A memory without a session has -1, which is the last place.
    sessions = np.array([*own, 0], np.int64)[stars.sessions]
    return pb.MapMemoriesResponse(
        seq=seq,
        layout_id=stars.layout_id,
        ids=stars.ids,
        x=stars.places[:, 0].tolist(),
        y=stars.places[:, 1].tolist(),
        is_placed=stars.is_placed.tolist(),
        kinds=stars.kinds.tolist(),
        origins=stars.origins.tolist(),
        update_unix_s=stars.update_times.astype(np.int64).tolist(),
        sessions=sessions.tolist(),
        session_ids=list(numbers)[known:],
    )
