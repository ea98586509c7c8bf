"""Cache of project views within a memory budget, also for projects that other processes write."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from threading import Event, Lock, Thread
from typing import Protocol

from hummock.core.errors import HummockError, StoreUnreachable
from hummock.store.errors import ProjectGone
from hummock.store.limits import StoreLimits
from hummock.store.lru import Lru
from hummock.store.tables.keys import NO_PROJECT
from hummock.store.tables.reads import TableProject, TableProjects
from hummock.store.views.row_graph import GraphSlot
from hummock.store.views.view import ProjectView, catch_up, caught_up, is_rebuild_due, is_too_old, load, rebuilt

_log = logging.getLogger(__name__)

_LOADS = 4  # Attempts to load a project; during the last one's catch-up the writer has to wait.

_MOST_BEHIND = 128
"""Operations that a view may lag, plus one group of writes, before the writer catches it up: a reader applies so many
in some milliseconds."""

_LOOK_S = 0.2  # Seconds between two checks for writes of another process.
_KEPT_UP = 64  # Number of recently used projects that each check brings up to date.


class SavedViews(Protocol):
    """Views saved to files, so that large ones need not be rebuilt after a start."""

    def view(self, stored: TableProject) -> ProjectView | None:
        """A saved view that can catch up with the project; None if there is none that is intact."""

    def takes(self, view: ProjectView) -> bool:
        """Whether the view is large enough to be saved."""

    def is_behind(self, view: ProjectView) -> bool:
        """Whether the saved view is missing or may soon be too old to catch up."""

    def save(self, view: ProjectView) -> None:
        """Save the view, replacing an earlier one; a failure is logged."""


class Graphs(Protocol):
    """Graphs of large projects, built beside the readers of their views."""

    def slot(self) -> GraphSlot:
        """The place of a project's graph."""

    def close(self) -> None:
        """Stop building, within some seconds."""


class ViewEntry:
    """A project that is loaded or being loaded. It exists before its load reads, so that commits are counted."""

    __slots__ = ("changing", "committed", "is_rebuilding", "loading", "newest_s", "project", "shown", "view")

    def __init__(self, project: str) -> None:
        self.project = project
        self.view: ProjectView | None = None
        self.committed = 0  # Operations committed.
        self.shown = 0  # Of these those known to be in the view.
        self.newest_s = 0.0  # A time at which the view had all writes, on the clock of the code that sets it.
        self.is_rebuilding = False
        self.loading = Lock()  # Held by the reader that loads.
        self.changing = Lock()  # Held by the thread that replaces the view, which catches up first.


class ViewCache:
    """Views by project name, within a memory budget. No operation depends on the number of projects."""

    def __init__(
        self,
        projects: TableProjects,
        budget_bytes: int,
        limits: StoreLimits,
        saved: SavedViews | None = None,
        graphs: Graphs | None = None,
    ) -> None:
        """Without `graphs` large projects are searched by sign bits alone."""
        self._projects = projects
        self._limits = limits
        self._saved = saved
        self._graphs = graphs
        self._entries: dict[str, ViewEntry] = {}
        # All projects with a view, and the small ones among them: loaded in milliseconds, these get less memory than
        # large ones.
        self._recent = Lru(budget_bytes)
        self._small = Lru(int(budget_bytes * limits.small_views_share))
        # Guards the three above.
        self._lock = Lock()
        # Projects whose views may lag; used by the writer's thread only.
        self._behind: dict[str, None] = {}
        self._evicted = 0
        self._maintenance = ThreadPoolExecutor(1, thread_name_prefix="hummock-maintenance")

    def view(self, project: str) -> ProjectView | None:
        """The newest view; None when there is no such project. Waits only when the project must be loaded."""
        view = self.loaded_view(project)
        while view is None:
            number = self._projects.number_of(project)
            if number is None:
                return None
            # Another reader may have loaded it before a write that this reader must see.
            try:
                view = self._loaded(project, number) or self.loaded_view(project)
            except ProjectGone:
                # A new project may have the same name by now.
                self.forget(project)
        return view

    @cached_property
    def empty(self) -> ProjectView:
        """The view of a project that does not exist."""
        with self._projects.reading(NO_PROJECT) as stored:
            return load(stored, self._limits)

    def number_of(self, project: str) -> int | None:
        """The project's number, taken from its view if loaded; None if the project does not exist."""
        entry = self._entries.get(project)
        view = None if entry is None else entry.view
        return self._projects.number_of(project) if view is None else view.number

    def loaded_view(self, project: str) -> ProjectView | None:
        """The newest view of a loaded project, otherwise None."""
        entry = self._entries.get(project)
        if entry is None:
            return None
        if not self._is_newest(entry):
            self._catch_up(entry)
        return self._used(entry)

    def view_at_hand(self, project: str) -> ProjectView | None:
        """The view if it is loaded and up to date, otherwise None."""
        entry = self._entries.get(project)
        return self._used(entry) if entry is not None and self._is_newest(entry) else None

    def publish(self, written: Mapping[str, tuple[int, int]], shrunk: Collection[str] = ()) -> None:
        """Make the last commit visible to all later reads, given its number of operations, and its seq, by project.

        `shrunk` are the projects with removals; unused here. Projects that are not loaded stay so. Catching up costs
        as much as writing ten memories, so a view that nobody reads lets operations add up. Where nothing changed, as
        after most turns, there is nothing to read.
        """
        for project, (operations, seq) in written.items():
            entry = self._entries.get(project)
            if entry is not None and (operations or not self._moved(entry, seq)):
                entry.committed += max(operations, 1)
                self._behind[project] = None
                if entry.committed - entry.shown >= _MOST_BEHIND:
                    self._catch_up(entry)

    def _moved(self, entry: ViewEntry, seq: int) -> bool:
        """Move a view to a write that changed nothing in it; False if it lags, or is being replaced."""
        if not self._is_newest(entry) or not entry.changing.acquire(blocking=False):
            return False
        try:
            view = entry.view
            if view is not None and view.seq < seq:
                newer = view.at_seq(seq)
                with self._lock:
                    entry.view = newer if self._entries.get(entry.project) is entry else None
            return view is not None
        finally:
            entry.changing.release()

    def forget(self, project: str) -> None:
        """Remove a project from the cache."""
        with self._lock:
            if project in self._entries:
                self._forgotten(project)

    def catch_up_one(self) -> bool:
        """Bring one lagging view up to date before a reader needs it; False if there is none."""
        while self._behind:
            entry = self._entries.get(self._behind.popitem()[0])
            if entry is not None and entry.shown != entry.committed:
                self._catch_up(entry)
                return True
        return False

    def newer_view(self, project: str) -> None:
        """Bring the view of a project up to date, if loaded."""
        entry = self._entries.get(project)
        if entry is not None:
            self._catch_up(entry)

    def used_last(self, count: int) -> list[str]:
        """The `count` most recently used loaded projects, the latest last."""
        with self._lock:
            return self._recent.used_last(count)

    def usage(self) -> tuple[int, int]:
        """Number of loaded projects, and their bytes."""
        with self._lock:
            return len(self._recent), self._recent.used_bytes

    def evicted(self) -> int:
        """Number of views evicted so far."""
        return self._evicted

    def lag(self) -> int:
        """Largest lag in operations among the recently used views."""
        with self._lock:
            entries = [self._entries[project] for project in self._recent.used_last(_KEPT_UP)]
        return max(map(self._lag_of, entries), default=0)

    def close(self) -> None:
        """Wait for a running rebuild, start no more, and save large views whose saved copies are outdated."""
        if self._graphs is not None:
            self._graphs.close()
        self._maintenance.shutdown(cancel_futures=True)
        if self._saved is None:
            return
        until_s = time.monotonic() + self._limits.saved_view_s
        for view in [entry.view for entry in self._entries.values()]:
            if time.monotonic() >= until_s:
                break
            if view is not None and self._saved.takes(view) and self._saved.is_behind(view):
                self._saved.save(view)

    def _is_newest(self, entry: ViewEntry) -> bool:
        return entry.shown == entry.committed

    def _lag_of(self, entry: ViewEntry) -> int:
        return max(0, entry.committed - entry.shown)

    def _loaded(self, project: str, number: int) -> ProjectView | None:
        """Load a project's view; None if another reader has loaded it meanwhile."""
        with self._lock:
            entry = self._entries.setdefault(project, ViewEntry(project))
        with entry.loading:
            return self._load(entry, number) if entry.view is None else None

    def _load(self, entry: ViewEntry, number: int) -> ProjectView:
        """Load a view while writes go on, then catch up; a view that cannot catch up is loaded again."""
        for attempt in range(1, _LOADS + 1):
            with self._projects.reading(number) as stored:
                found = self._saved.view(stored) if self._saved else None
                loaded = found or load(stored, self._limits)
            with entry.changing, self._projects.reading(number) as stored:
                if attempt < _LOADS and is_too_old(loaded, stored):
                    continue
                view = catch_up(loaded, stored, self._limits)
                view = self._show(entry, view)
                break
        if self._saved and found is None and self._saved.takes(view):
            # The executor refuses new work once the store closes; `close` itself saves large views.
            with suppress(RuntimeError):
                self._maintenance.submit(self._saved.save, view)
        return view

    def _catch_up(self, entry: ViewEntry) -> None:
        with entry.changing:
            # Read before the transaction begins, which may miss later commits.
            committed = entry.committed
            view = entry.view
            if view is None:
                return
            try:
                with self._projects.reading(view.number) as stored:
                    newer = catch_up(view, stored, self._limits)
            except ProjectGone:
                self._give_up(entry)
                return
            except StoreUnreachable:
                # The view stays as it is, and a reader that needs a newer one gets the error.
                raise
            except HummockError as error:
                self._give_up(entry)
                _log.warning("a project's view could not follow a write, and will be loaded anew: %s", error)
                return
            except Exception:
                # The write is durable and must be acknowledged; the next read loads the project again.
                self._give_up(entry)
                _log.exception("a project's view could not follow a write; it will be loaded anew")
                return
            if newer is not view:
                self._show(entry, newer)
            if is_rebuild_due(newer, self._limits) and not entry.is_rebuilding:
                entry.is_rebuilding = True
                self._maintenance.submit(self._rebuild, entry)
            entry.shown = committed

    def _rebuild(self, entry: ViewEntry) -> None:
        """Rebuild a view while reads and writes go on; they wait only for its catch-up."""
        try:
            view = entry.view
            if view is None:
                return
            made = rebuilt(view, self._limits)
            with entry.changing, self._projects.reading(view.number) as stored:
                newest = entry.view
                # A view that was loaded meanwhile is as good; a rebuilt one that cannot catch up is useless.
                if newest is None or newest.lineage is not view.lineage:
                    return
                if made.lineage is newest.lineage or not is_too_old(made, stored):
                    self._show(entry, caught_up(made, newest, stored, self._limits))
        except Exception:
            _log.exception("a project's view could not be rebuilt; it stays as it is")
        finally:
            entry.is_rebuilding = False

    def _used(self, entry: ViewEntry) -> ProjectView | None:
        with self._lock:
            self._recent.use(entry.project)
            self._small.use(entry.project)
        return entry.view

    def _show(self, entry: ViewEntry, view: ProjectView) -> ProjectView:
        """Publish this view to readers, and evict the least recently used ones until all fit the budget.

        Returns the view with a place for its graph, if it is large enough for one. The most recently used view stays
        whatever its size: otherwise every write would make the next read load it again. For an entry evicted meanwhile
        nothing is published: its loader has the view, the next reader loads.
        """
        if self._graphs is not None and view.graph is None and view.signs is not None:
            view = replace(view, graph=self._graphs.slot())
        nbytes = view.nbytes
        with self._lock:
            if self._entries.get(entry.project) is not entry:
                return view
            entry.view = view
            self._recent.put(entry.project, nbytes)
            if nbytes < self._limits.small_view_bytes:
                self._small.put(entry.project, nbytes)
            else:
                self._small.drop(entry.project)
            # Kept alive until the lock is released: freeing large arrays takes a while.
            given_up = []
            for some in (self._small, self._recent):
                while (project := some.excess(keep=1)) is not None:
                    given_up.append(self._forgotten(project))
            self._evicted += len(given_up)
        return view

    def _give_up(self, entry: ViewEntry) -> None:
        with self._lock:
            if self._entries.get(entry.project) is entry:
                self._forgotten(entry.project)

    def _forgotten(self, project: str) -> ProjectView | None:
        """Remove a view from the cache and return it; readers that use it keep it alive."""
        self._recent.drop(project)
        self._small.drop(project)
        entry = self._entries.pop(project)
        view, entry.view = entry.view, None
        return view


class ForeignViews(ViewCache):
    """Views of projects that other processes write too; each read checks for newer writes."""

    def publish(self, written: Mapping[str, tuple[int, int]], shrunk: Collection[str] = ()) -> None:
        """Does nothing: each read checks for newer writes, from any process."""

    def reach(self, project: str, seq: int) -> None:
        """Bring a loaded project up to a write announced by another process."""
        entry = self._entries.get(project)
        view = None if entry is None else entry.view
        if view is not None and view.seq < seq:
            # The next reader tries again and gets the error.
            with suppress(StoreUnreachable):
                self.newer_view(project)

    def _is_newest(self, entry: ViewEntry) -> bool:
        """Whether the view has the store's sequence number: commits of other processes are not counted here."""
        view = entry.view
        try:
            return view is not None and self._projects.seq(view.number) == view.seq
        except ProjectGone:
            return False

    def _lag_of(self, entry: ViewEntry) -> int:
        view = entry.view
        try:
            return 0 if view is None else max(0, self._projects.seq(view.number) - view.seq)
        except (ProjectGone, HummockError):  # unknown while the store does not answer
            return 0


class FollowingViews(ForeignViews):
    """Views of projects that others write without notices: a thread keeps the recently used up to date."""

    def __init__(
        self,
        projects: TableProjects,
        budget_bytes: int,
        limits: StoreLimits,
        saved: SavedViews | None = None,
        graphs: Graphs | None = None,
    ) -> None:
        super().__init__(projects, budget_bytes, limits, saved, graphs)
        self._closing = Event()
        self._thread = Thread(target=self._follow, name="hummock-follow", daemon=True)
        self._thread.start()

    def keep_up(self) -> None:
        """Bring the recently used projects up to date."""
        for project in self.used_last(_KEPT_UP):
            self.newer_view(project)

    def close(self) -> None:
        """Stop the thread, then close the cache."""
        self._closing.set()
        self._thread.join()
        super().close()

    def _follow(self) -> None:
        seen = self._projects.last_commit()
        while not self._closing.wait(_LOOK_S):
            newest = self._projects.last_commit()
            if newest != seen:
                seen = newest
                self.keep_up()
