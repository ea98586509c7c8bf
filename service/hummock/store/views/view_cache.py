"""Cache of projects in memory, within a budget of bytes; in a reader, of projects that another process writes."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Event, Lock, Thread
from typing import Protocol

from hummock.core.errors import HummockError, StoreUnreachable
from hummock.store.limits import StoreLimits
from hummock.store.lru import Lru
from hummock.store.views.stored import ProjectGone, StoredProject, StoredProjects
from hummock.store.views.view import ProjectView, catch_up, caught_up, is_rebuild_due, is_too_old, load, rebuilt

_log = logging.getLogger(__name__)

_LOADS = 4
"""Times that a project is loaded at most before the writer has to wait for it."""

_MOST_BEHIND = 128
"""Operations that a view may lag, and one group of writes at most: a reader waits some milliseconds for them."""

_LOOK_S = 0.2
"""Between two looks for what another process has written."""

_KEPT_UP = 64
"""Projects that are brought up to date at each look, those that were used last."""


class SavedViews(Protocol):
    """Views that a file holds as well, so that what is large need not be made again after a start."""

    def view(self, stored: StoredProject) -> ProjectView | None:
        """One from which the writes since can be followed; None where there is none that is sound."""

    def takes(self, view: ProjectView) -> bool:
        """Whether the view is large enough to be saved."""

    def is_behind(self, view: ProjectView) -> bool:
        """Whether what is saved of the project soon could not be followed any more, or nothing is."""

    def save(self, view: ProjectView) -> None:
        """Saves it instead of an earlier one; says in the log why not, where that fails."""


class ViewEntry:
    """A project that is in memory, or is being loaded.

    `loading` is held by the one reader that loads; `changing` by whoever replaces the view, which is caught up first.
    `committed` counts operations, and `shown` those of them that the view surely has. The entry is there before its
    load begins to read, so that what is committed meanwhile is counted. `newest_s` is a moment at which the view had
    all writes there were, on the clock of whoever notes it.
    """

    __slots__ = ("changing", "committed", "is_rebuilding", "loading", "newest_s", "project", "shown", "view")

    def __init__(self, project: str) -> None:
        self.project = project
        self.view: ProjectView | None = None
        self.committed = 0
        self.shown = 0
        self.newest_s = 0.0
        self.is_rebuilding = False
        self.loading = Lock()
        self.changing = Lock()


class ViewCache:
    """Views by project name, within a budget of memory. Nothing here takes time by the number of projects."""

    def __init__(
        self,
        projects: StoredProjects,
        budget_bytes: int,
        limits: StoreLimits,
        saved: SavedViews | None = None,
    ) -> None:
        self._projects = projects
        self._limits = limits
        self._saved = saved
        self._entries: dict[str, ViewEntry] = {}
        # Those that have a view; and of these the small ones: loaded in milliseconds, they are not worth as much memory
        # as large ones.
        self._recent = Lru(budget_bytes)
        self._small = Lru(int(budget_bytes * limits.small_views_share))
        # Of all three.
        self._lock = Lock()
        # Projects whose views may be behind: the writer's alone.
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
            # Another reader may have loaded it, before a write that this one must see.
            try:
                view = self._loaded(project, number) or self.loaded_view(project)
            except ProjectGone:
                # There may be another one of its name by now.
                self.forget(project)
        return view

    def number_of(self, project: str) -> int | None:
        """The project's number, that of its view where it is in memory; None when there is no such project."""
        entry = self._entries.get(project)
        view = None if entry is None else entry.view
        return self._projects.number_of(project) if view is None else view.number

    def loaded_view(self, project: str) -> ProjectView | None:
        """The newest view of a project that is in memory; None when it is not."""
        entry = self._entries.get(project)
        if entry is None:
            return None
        if not self._is_newest(entry):
            self._catch_up(entry)
        return self._used(entry)

    def view_at_hand(self, project: str) -> ProjectView | None:
        """The newest view, where no memory needs to be read for it; None elsewhere."""
        entry = self._entries.get(project)
        return self._used(entry) if entry is not None and self._is_newest(entry) else None

    def publish(self, operations: Mapping[str, int], shrunk: Collection[str] = ()) -> None:
        """Lets every read from now on see the last commit, given how many operations each project has in it.

        From the projects that are `shrunk` something was removed; here that makes no difference.
        Projects that are not in memory stay out of it. To bring a view up to date costs as much as ten memories do, so
        that one which nobody reads lets writes add up.
        """
        for project, count in operations.items():
            entry = self._entries.get(project)
            if entry is not None:
                # What is no operation may have changed too: settings, counts of memories.
                entry.committed += max(count, 1)
                self._behind[project] = None
                if entry.committed - entry.shown >= _MOST_BEHIND:
                    self._catch_up(entry)

    def forget(self, project: str) -> None:
        """A project was removed: who asks from now on is given nothing of it."""
        with self._lock:
            if project in self._entries:
                self._forgotten(project)

    def catch_up_one(self) -> bool:
        """Bring a lagging view up to date, so that no reader need do it; False if there is none."""
        while self._behind:
            entry = self._entries.get(self._behind.popitem()[0])
            if entry is not None and entry.shown != entry.committed:
                self._catch_up(entry)
                return True
        return False

    def newer_view(self, project: str) -> None:
        """Brings the view of a project up to date, if it is in memory."""
        entry = self._entries.get(project)
        if entry is not None:
            self._catch_up(entry)

    def used_last(self, count: int) -> list[str]:
        """At most so many projects in memory, the most recently used."""
        with self._lock:
            return self._recent.used_last(count)

    def usage(self) -> tuple[int, int]:
        """Projects in memory, and their bytes."""
        with self._lock:
            return len(self._recent), self._recent.used_bytes

    def evicted(self) -> int:
        """Views that were given up for want of room, so far."""
        return self._evicted

    def lag(self) -> int:
        """Operations that the most lagging view has not taken in yet, of the views used last."""
        with self._lock:
            entries = [self._entries[project] for project in self._recent.used_last(_KEPT_UP)]
        return max(map(self._lag_of, entries), default=0)

    def close(self) -> None:
        """Ends the rebuild that runs, if any, starts no more, and saves what is large and was written to."""
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
        """The view of a project that must be loaded; None where another reader has loaded it meanwhile."""
        with self._lock:
            entry = self._entries.setdefault(project, ViewEntry(project))
        with entry.loading:
            return self._load(entry, number) if entry.view is None else None

    def _load(self, entry: ViewEntry, number: int) -> ProjectView:
        """Load a view while writes go on, then catch up with them; a view that cannot catch up is loaded anew."""
        for attempt in range(1, _LOADS + 1):
            with self._projects.reading(number) as stored:
                found = self._saved.view(stored) if self._saved else None
                loaded = found or load(stored, self._limits)
            with entry.changing, self._projects.reading(number) as stored:
                if attempt < _LOADS and is_too_old(loaded, stored):
                    continue
                view = catch_up(loaded, stored, self._limits)
                self._show(entry, view)
                break
        if self._saved and found is None and self._saved.takes(view):
            # At the close of the store no more is begun, and what is large is saved then.
            with suppress(RuntimeError):
                self._maintenance.submit(self._saved.save, view)
        return view

    def _catch_up(self, entry: ViewEntry) -> None:
        with entry.changing:
            # Before it is read: what is committed from now on may be missed.
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
                # The view is as it was, and whoever must have a newer one is told that there is none.
                raise
            except HummockError as error:
                self._give_up(entry)
                _log.warning("a project's view could not follow a write, and will be loaded anew: %s", error)
                return
            except Exception:
                # The write is durable and must be acknowledged; the next read loads the project anew.
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
        """Rebuild a view while reads and writes go on; they wait only while it catches up."""
        try:
            view = entry.view
            if view is None:
                return
            made = rebuilt(view, self._limits)
            with entry.changing, self._projects.reading(view.number) as stored:
                newest = entry.view
                # One that was loaded meanwhile is as good, and one that cannot be caught up is no better.
                if newest is None or newest.lineage is not view.lineage:
                    return
                if made.lineage is newest.lineage or not is_too_old(made, stored):
                    self._show(entry, caught_up(made, newest, stored, self._limits))
        except Exception:
            _log.exception("a project's view could not be rebuilt; it stays as it is")
        finally:
            entry.is_rebuilding = False

    def _used(self, entry: ViewEntry) -> ProjectView | None:
        """The entry's view, marked as the most recently used."""
        with self._lock:
            self._recent.use(entry.project)
            self._small.use(entry.project)
        return entry.view

    def _show(self, entry: ViewEntry, view: ProjectView) -> None:
        """Lets readers have this view, and gives up those that were used longest ago until all are within the budget.

        The one used last stays whatever its size: otherwise every write would make the next read load it again. An
        entry that was given up meanwhile shows nothing: whoever loaded for it has the view, the next reader loads.
        """
        nbytes = view.nbytes
        with self._lock:
            if self._entries.get(entry.project) is not entry:
                return
            entry.view = view
            self._recent.put(entry.project, nbytes)
            if nbytes < self._limits.small_view_bytes:
                self._small.put(entry.project, nbytes)
            else:
                self._small.drop(entry.project)
            # Quarantined until the lock is released: large arrays take a while to be freed.
            given_up = []
            for some in (self._small, self._recent):
                while (project := some.excess(keep=1)) is not None:
                    given_up.append(self._forgotten(project))
            self._evicted += len(given_up)

    def _give_up(self, entry: ViewEntry) -> None:
        with self._lock:
            if self._entries.get(entry.project) is entry:
                self._forgotten(entry.project)

    def _forgotten(self, project: str) -> ProjectView | None:
        """Remove a view from the cache; a reader that uses it keeps it until done."""
        self._recent.drop(project)
        self._small.drop(project)
        entry = self._entries.pop(project)
        view, entry.view = entry.view, None
        return view


class ForeignViews(ViewCache):
    """Views of projects that other processes write to as well; a read gets the newest."""

    def publish(self, operations: Mapping[str, int], shrunk: Collection[str] = ()) -> None:
        """Does nothing: each read checks for newer writes, from any process."""

    def reach(self, project: str, seq: int) -> None:
        """Bring a project that is in memory up to a write that was notified."""
        entry = self._entries.get(project)
        view = None if entry is None else entry.view
        if view is not None and view.seq < seq:
            # Whoever reads it tries again, and is told.
            with suppress(StoreUnreachable):
                self.newer_view(project)

    def _is_newest(self, entry: ViewEntry) -> bool:
        """Compare with the sequence number in the store, as this process does not count the commits of others."""
        view = entry.view
        try:
            return view is not None and self._projects.seq(view.number) == view.seq
        except ProjectGone:
            return False

    def _lag_of(self, entry: ViewEntry) -> int:
        view = entry.view
        try:
            return 0 if view is None else max(0, self._projects.seq(view.number) - view.seq)
        except (ProjectGone, HummockError):  # nobody knows, where the store does not answer
            return 0


class FollowingViews(ForeignViews):
    """Views of projects that other processes write to without a notice.

    The projects that were used last are brought up to date alongside the readers, so that no reader has much to do.
    """

    def __init__(
        self,
        projects: StoredProjects,
        budget_bytes: int,
        limits: StoreLimits,
        saved: SavedViews | None = None,
    ) -> None:
        super().__init__(projects, budget_bytes, limits, saved)
        self._closing = Event()
        self._thread = Thread(target=self._follow, name="hummock-follow", daemon=True)
        self._thread.start()

    def keep_up(self) -> None:
        """Brings the projects that were used last up to date."""
        for project in self.used_last(_KEPT_UP):
            self.newer_view(project)

    def close(self) -> None:
        """Follows no longer."""
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
