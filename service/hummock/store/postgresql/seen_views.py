"""Views of projects that other services write to, with the time at which each was last known to be the newest."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from hummock.core.errors import StoreUnreachable
from hummock.store.limits import StoreLimits
from hummock.store.tables.recent import RecentReads
from hummock.store.views.stored import StoredProjects
from hummock.store.views.view import ProjectView
from hummock.store.views.view_cache import ForeignViews, ViewEntry


class SeenViews(ForeignViews):
    """Views that stay when the database is away, for reads that accept stale data."""

    def __init__(
        self,
        projects: StoredProjects,
        budget_bytes: int,
        limits: StoreLimits,
        recent: RecentReads,
        monotonic: Callable[[], float],
    ) -> None:
        """`recent` has reads of the loaded projects; those of evicted views are dropped."""
        super().__init__(projects, budget_bytes, limits)
        self._reads = recent
        self._monotonic = monotonic

    def seen(self, project: str) -> tuple[ProjectView, float] | None:
        """The loaded view and its maximum staleness in seconds, without asking the database."""
        entry = self._entries.get(project)
        view = None if entry is None else self._used(entry)
        return None if entry is None or view is None else (view, self._monotonic() - entry.newest_s)

    def publish(self, operations: Mapping[str, int], shrunk: Collection[str] = ()) -> None:
        """Catch up views with removals, so that no removed memory is visible here once that is acknowledged."""
        for project in shrunk:
            try:
                self.newer_view(project)
            except StoreUnreachable:
                self.forget(project)

    def _is_newest(self, entry: ViewEntry) -> bool:
        began_s = self._monotonic()
        is_newest = super()._is_newest(entry)
        if is_newest:
            entry.newest_s = max(entry.newest_s, began_s)
        return is_newest

    def _catch_up(self, entry: ViewEntry) -> None:
        began_s = self._monotonic()
        super()._catch_up(entry)
        entry.newest_s = max(entry.newest_s, began_s)

    def _load(self, entry: ViewEntry, number: int) -> ProjectView:
        # The entry has no earlier view.
        entry.newest_s = self._monotonic()
        return super()._load(entry, number)

    def _forgotten(self, project: str) -> ProjectView | None:
        view = super()._forgotten(project)
        if view is not None:
            self._reads.forget(view.number)
        return view
