"""Which projects are in memory, within a budget of bytes; in a reader, as another process writes them."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Event, Lock, Thread

import lmdb

from hummock.store.limits import StoreLimits
from hummock.store.lmdb import keys
from hummock.store.lmdb.environment import Environment
from hummock.store.views.view import ProjectView, catch_up, caught_up, is_rebuild_due, is_too_old, load, rebuilt

_log = logging.getLogger(__name__)

_LOADS = 4
"""Times that a project is loaded at most before the writer has to wait for it."""

_MOST_BEHIND = 128
"""Operations that a view lags behind, and one group of writes at most: a reader waits some milliseconds for them."""


class _Slot:
    """A project's place.

    `loading` is held by the one reader that loads; `changing` by whoever replaces the view. Whatever replaces it is
    caught up first, so what was loaded or rebuilt while the writer committed misses nothing: either it sees the
    commit, or the writer waits for `changing` and then finds the view. `committed` counts operations, and `shown` those
    of them that the view surely has.
    """

    __slots__ = ("changing", "committed", "is_rebuilding", "loading", "nbytes", "project", "shown", "view")

    def __init__(self, project: str) -> None:
        self.project = project
        self.view: ProjectView | None = None
        self.nbytes = 0
        self.committed = 0
        self.shown = 0
        self.is_rebuilding = False
        self.loading = Lock()
        self.changing = Lock()


class ResidentProjects:
    """Views by project name, within a budget of memory. Nothing here takes time by the number of projects."""

    def __init__(self, environment: Environment, budget_bytes: int, limits: StoreLimits) -> None:
        self._environment = environment
        self._budget_bytes = budget_bytes
        self._limits = limits
        # Slots are made when a load begins and go with their view.
        self._slots: dict[str, _Slot] = {}
        # Those that have a view, the one used longest ago first. Readers move theirs without a lock.
        self._recent: OrderedDict[str, _Slot] = OrderedDict()
        self._used_bytes = 0
        # Of these the small ones: loaded in milliseconds, they are not worth as much memory as large ones.
        self._small: OrderedDict[str, _Slot] = OrderedDict()
        self._small_bytes = 0
        self._small_budget_bytes = int(budget_bytes * limits.small_views_share)
        self._accounts = Lock()
        # Projects whose views may be behind: the writer's alone.
        self._behind: dict[str, None] = {}
        self._maintenance = ThreadPoolExecutor(1, thread_name_prefix="hummock-maintenance")

    def view(self, project: str) -> ProjectView | None:
        """The newest view; None when there is no such project. Waits only when the project must be loaded."""
        view = self.loaded_view(project)
        return self._loaded(project) if view is None else view

    def loaded_view(self, project: str) -> ProjectView | None:
        """The newest view of a project that is in memory; None when it is not."""
        slot = self._slots.get(project)
        if slot is None:
            return None
        if slot.shown != slot.committed:
            self._catch_up(slot)
        view = slot.view
        if view is not None:
            self._touch(project)
        return view

    def view_at_hand(self, project: str) -> ProjectView | None:
        """The newest view, where nothing needs to be read for it; None elsewhere."""
        slot = self._slots.get(project)
        if slot is None or slot.shown != slot.committed:
            return None
        view = slot.view
        if view is not None:
            self._touch(project)
        return view

    def publish(self, operations: Mapping[str, int]) -> None:
        """Lets every read from now on see the last commit, given how many operations each project has in it.

        Projects that are not in memory stay out of it. To bring a view up to date costs as much as ten memories do, so
        that one which nobody reads lets writes add up.
        """
        for project, count in operations.items():
            slot = self._slots.get(project)
            if slot is not None:
                # What is no operation may have changed too: settings, counts of memories.
                slot.committed += max(count, 1)
                self._behind[project] = None
                if slot.committed - slot.shown >= _MOST_BEHIND:
                    self._catch_up(slot)

    def catch_up_one(self) -> bool:
        """Brings a view that is behind up to date, so that no reader need do it; False when there is none."""
        while self._behind:
            slot = self._slots.get(self._behind.popitem()[0])
            if slot is not None and slot.shown != slot.committed:
                self._catch_up(slot)
                return True
        return False

    def newer_view(self, project: str) -> None:
        """Brings the view of a project up to date, if it is in memory."""
        slot = self._slots.get(project)
        if slot is not None:
            self._catch_up(slot)

    def used_last(self, count: int) -> list[str]:
        """At most so many projects in memory, those that were used last."""
        # In one step: readers move theirs meanwhile, which no iterator survives.
        return list(self._recent)[-count:]

    def usage(self) -> tuple[int, int]:
        """Projects in memory, and their bytes."""
        return len(self._recent), self._used_bytes

    def close(self) -> None:
        """Ends the rebuild that runs, if any, and starts no more."""
        self._maintenance.shutdown(cancel_futures=True)

    def _catch_up(self, slot: _Slot) -> None:
        with slot.changing:
            # Before it is read: what is committed from now on may be missed.
            committed = slot.committed
            view = slot.view
            if view is None:
                return
            try:
                with self._environment.reading() as txn:
                    newer = catch_up(view, self._environment, txn, self._limits)
            except Exception:
                # The write is durable and must be acknowledged; the next read loads the project anew.
                self._give_up(slot)
                _log.exception("a project's view could not follow a write; it will be loaded anew")
                return
            if newer is not view:
                self._show(slot, newer)
            if is_rebuild_due(newer, self._limits) and not slot.is_rebuilding:
                slot.is_rebuilding = True
                self._maintenance.submit(self._rebuild, slot)
            slot.shown = committed

    def _rebuild(self, slot: _Slot) -> None:
        """Beside readers and the writer, who wait only for what was written meanwhile."""
        try:
            view = slot.view
            if view is None:
                return
            made = rebuilt(view, self._limits)
            with slot.changing, self._environment.reading() as txn:
                newest = slot.view
                # One that was loaded meanwhile is as good, and one that cannot be caught up is no better.
                if newest is None or newest.line is not view.line:
                    return
                if made.line is newest.line or not is_too_old(made, self._environment, txn):
                    self._show(slot, caught_up(made, newest, self._environment, txn, self._limits))
        except Exception:
            _log.exception("a project's view could not be rebuilt; it stays as it is")
        finally:
            slot.is_rebuilding = False

    def _loaded(self, project: str) -> ProjectView | None:
        number = self._number(project)
        if number is None:
            return None
        slot = self._slots.setdefault(project, _Slot(project))
        with slot.loading:
            view = slot.view
            return self._load(slot, number) if view is None else view

    def _load(self, slot: _Slot, number: int) -> ProjectView:
        """Beside the writer, who waits only for what was written meanwhile; what cannot be caught up is loaded anew."""
        for attempt in range(1, _LOADS + 1):
            with self._environment.reading() as txn:
                record = self._environment.project_record(txn, number)
                loaded = load(self._environment, txn, number, record, self._limits)
            with slot.changing, self._environment.reading() as txn:
                if attempt < _LOADS and is_too_old(loaded, self._environment, txn):
                    continue
                view = catch_up(loaded, self._environment, txn, self._limits)
                self._show(slot, view)
                break
        return view

    def _number(self, project: str) -> int | None:
        with self._environment.reading() as txn:
            return project_number(txn, self._environment, project)

    def _touch(self, project: str) -> None:
        # The one that was given up since needs no place.
        with suppress(KeyError):
            self._recent.move_to_end(project)
            if project in self._small:
                self._small.move_to_end(project)

    def _show(self, slot: _Slot, view: ProjectView) -> None:
        """Lets readers have this view, and gives up others until all of them are within the budget.

        A slot that was given up meanwhile shows nothing: whoever loaded for it has the view, the next reader loads.
        """
        nbytes = view.nbytes
        with self._accounts:
            if self._slots.get(slot.project) is not slot:
                return
            slot.view = view
            self._recent.setdefault(slot.project, slot)
            self._account(slot, nbytes)
            self._keep_within_budget()

    def _give_up(self, slot: _Slot) -> None:
        with self._accounts:
            if self._recent.get(slot.project) is slot:
                self._forget(slot)

    def _keep_within_budget(self) -> None:
        """Gives up the views that were used longest ago; whoever still reads one keeps it until done.

        The one used last stays whatever its size: otherwise every write would make the next read load it again.
        """
        # `popitem`: readers move theirs meanwhile, which no iterator survives.
        while self._small_bytes > self._small_budget_bytes and len(self._small) > 1:
            self._forget(self._small.popitem(last=False)[1])
        while self._used_bytes > self._budget_bytes and len(self._recent) > 1:
            self._forget(self._recent.popitem(last=False)[1])

    def _account(self, slot: _Slot, nbytes: int) -> None:
        """Takes down what its view takes now; one that stays small keeps its place among the small ones."""
        was_small, is_small = self._is_small(slot.nbytes), self._is_small(nbytes)
        self._used_bytes += nbytes - slot.nbytes
        self._small_bytes += is_small * nbytes - was_small * slot.nbytes
        if is_small:
            self._small.setdefault(slot.project, slot)
        elif was_small:
            self._small.pop(slot.project, None)
        slot.nbytes = nbytes

    def _is_small(self, nbytes: int) -> bool:
        return 0 < nbytes < self._limits.small_view_bytes

    def _forget(self, slot: _Slot) -> None:
        self._recent.pop(slot.project, None)
        self._account(slot, 0)
        slot.view = None
        del self._slots[slot.project]


def project_number(txn: lmdb.Transaction[bytes], environment: Environment, project: str) -> int | None:
    """The number of a project."""
    value = txn.get(keys.project_name_key(project), db=environment.tables.project)
    return None if value is None else keys.unpack_project(value)


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
