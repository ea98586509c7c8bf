"""The parts of a store that writes, put together over whatever engine it has."""

from __future__ import annotations

from collections.abc import Callable

from hummock.ports.claims import Claims
from hummock.store.limits import StoreLimits
from hummock.store.settled_clock import SettledClock
from hummock.store.tables.engine import Engine, Room
from hummock.store.views.view_cache import ViewCache
from hummock.store.write.group import GroupCommit
from hummock.store.write.project_removal import Remains
from hummock.store.write.writer import Writer


def start_writer(
    engine: Engine,
    claims: Claims,
    room: Room,
    views: ViewCache,
    clock: SettledClock,
    limits: StoreLimits,
    look: Callable[[], None],
) -> Writer:
    """Start the writer thread, with its background work: views catch up, and removed projects are cleared.

    `look` is called every second or so.
    """
    remains = Remains(engine, claims)
    claims.follow(remains.come)

    def idle() -> bool:
        return views.catch_up_one() or remains.clear_some()

    def removed(project: str) -> None:
        views.forget(project)
        remains.come()

    group = GroupCommit(engine, room, clock, limits)
    return Writer(group, views.publish, idle, limits.group_jobs, removed, look)
