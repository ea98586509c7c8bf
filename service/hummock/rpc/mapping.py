"""The star map: memories as points of a plane, in columns that are packed."""

from __future__ import annotations

from collections.abc import Sequence

from hummock.memories.garden import Garden
from hummock.rpc.streams import Steps
from hummock_client.v1 import memory_service_pb2 as pb

MOST_STARS = 4096
"""Stars of one message, which has at most 2.5 MiB then: some tens of milliseconds of a worker."""


def map_memories(garden: Garden, project: str, ids: Sequence[str]) -> Steps:
    """The messages of one map, of all memories where `ids` is empty; the project may be missing.

    Each part is read anew, so that a slow reader keeps nothing in memory.
    """
    # Read first: what is written from here on is told behind it, whether or not the map has it.
    seq = garden.seq(project)
    yield pb.MapMemoriesResponse(seq=seq, memory_count=garden.memory_count(project))
    numbers, after = {"": 0}, 0
    while True:
        stars = garden.stars_of(project, ids) if ids else garden.stars(project, after, MOST_STARS)
        known = len(numbers)
        sessions = [numbers.setdefault(name, len(numbers)) for name in stars.sessions]
        if stars.ids:
            yield pb.MapMemoriesResponse(
                seq=seq,
                layout_id=stars.layout_id,
                ids=stars.ids,
                x=stars.x,
                y=stars.y,
                is_placed=stars.is_placed,
                kinds=stars.kinds,  # type: ignore[arg-type]  # the stubs want numbers of the enum's own type
                origins=stars.origins,  # type: ignore[arg-type]  # they want the enum's type here too
                update_unix_s=stars.update_times,
                sessions=sessions,
                session_ids=list(numbers)[known:],
            )
        if stars.next_after is None:
            return
        after = stars.next_after
