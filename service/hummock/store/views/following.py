"""The projects in memory of a process that only reads: another one writes."""

from __future__ import annotations

from threading import Event, Thread

from hummock.store.environment import Environment
from hummock.store.limits import StoreLimits
from hummock.store.views.residents import ResidentProjects
from hummock.store.views.view import ProjectView

_REST_S = 0.2
"""Between two looks for what was written."""

_KEPT_UP = 64
"""Projects that are brought up to date at each look, those that were used last."""


class FollowingProjects(ResidentProjects):
    """Views that follow the operations of another process; whoever reads one has the newest.

    The projects that were used last are brought up to date beside the readers, so that no reader has much to do.
    """

    def __init__(self, environment: Environment, budget_bytes: int, limits: StoreLimits) -> None:
        super().__init__(environment, budget_bytes, limits)
        self._closing = Event()
        self._thread = Thread(target=self._follow, name="hummock-follow", daemon=True)
        self._thread.start()

    def loaded_view(self, project: str) -> ProjectView | None:
        """The newest view of a project that is in memory; None when it is not."""
        view = super().loaded_view(project)
        if view is None or self._is_newest(view):
            return view
        self.newer_view(project)
        return super().loaded_view(project)

    def view_at_hand(self, project: str) -> ProjectView | None:
        """The newest view, where it is in memory; None elsewhere."""
        view = super().view_at_hand(project)
        return view if view is not None and self._is_newest(view) else None

    def keep_up(self) -> None:
        """Brings the projects that were used last up to date."""
        for project in self.used_last(_KEPT_UP):
            self.newer_view(project)

    def close(self) -> None:
        """Follows no longer."""
        self._closing.set()
        self._thread.join()
        super().close()

    def _loaded(self, project: str) -> ProjectView | None:
        while True:
            view = super()._loaded(project)
            if view is None or self._is_newest(view):
                return view
            # Another reader has loaded it, before a write that this one must see.
            view = self.loaded_view(project)
            if view is not None:
                return view

    def _is_newest(self, view: ProjectView) -> bool:
        with self._environment.reading() as txn:
            return self._environment.project_record(txn, view.number).seq == view.seq

    def _follow(self) -> None:
        seen = self._environment.last_commit()
        while not self._closing.wait(_REST_S):
            newest = self._environment.last_commit()
            if newest == seen:
                continue
            seen = newest
            self.keep_up()
