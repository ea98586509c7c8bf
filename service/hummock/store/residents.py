"""The projects in memory: loaded on first use, kept up to date by the writer, given up when memory is short."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

import lmdb

from hummock.store import codec, keys
from hummock.store.environment import Environment
from hummock.store.limits import StoreLimits
from hummock.store.view import ProjectView, catch_up, is_rebuild_due, load, rebuilt

_log = logging.getLogger(__name__)


class _Slot:
    """A project's place.

    `loading` is held by the one reader that loads; `changing` by whoever replaces the view. Whatever replaces it is
    caught up first, so what was loaded or rebuilt while the writer committed misses nothing: either it sees the
    commit, or the writer waits for `changing` and then finds the view.
    """

    __slots__ = ("_shown", "changing", "is_rebuilding", "last_use", "loading")

    def __init__(self) -> None:
        # One value: a view is given up without `changing`, and must not be counted with another one's bytes.
        self._shown: tuple[ProjectView | None, int] = (None, 0)
        self.last_use = 0
        self.is_rebuilding = False
        self.loading = Lock()
        self.changing = Lock()

    @property
    def view(self) -> ProjectView | None:
        """What readers have."""
        return self._shown[0]

    @property
    def nbytes(self) -> int:
        """Bytes of the view; 0 without one, and only then."""
        return self._shown[1]

    def show(self, view: ProjectView | None) -> None:
        """Lets readers have this view, or none."""
        self._shown = (view, 0 if view is None else view.nbytes)


class ResidentProjects:
    """Views by project name, within a budget of memory."""

    def __init__(self, environment: Environment, budget_bytes: int, limits: StoreLimits) -> None:
        self._environment = environment
        self._budget_bytes = budget_bytes
        self._limits = limits
        self._slots: dict[str, _Slot] = {}
        self._uses = itertools.count(1)
        self._maintenance = ThreadPoolExecutor(1, thread_name_prefix="hummock-maintenance")

    def view(self, project: str) -> ProjectView | None:
        """The newest view; None when there is no such project. Waits only when the project must be loaded."""
        view = self.loaded_view(project)
        return self._loaded(project) if view is None else view

    def loaded_view(self, project: str) -> ProjectView | None:
        """The newest view of a project that is in memory; None when it is not."""
        slot = self._slots.get(project)
        view = slot.view if slot is not None else None
        if slot is not None and view is not None:
            slot.last_use = next(self._uses)
        return view

    def publish(self, projects: Iterable[str]) -> None:
        """Brings the views of these projects up to the last commit; those not in memory stay out of it."""
        for project in projects:
            slot = self._slots.get(project)
            if slot is not None:
                self._publish(slot)
        self._keep_within_budget()

    def usage(self) -> tuple[int, int]:
        """Projects in memory, and their bytes."""
        sizes = [slot.nbytes for slot in self._slots.copy().values()]
        return sum(size > 0 for size in sizes), sum(sizes)

    def close(self) -> None:
        """Ends the rebuild that runs, if any, and starts no more."""
        self._maintenance.shutdown(cancel_futures=True)

    def _publish(self, slot: _Slot) -> None:
        with slot.changing:
            view = slot.view
            if view is None:
                return
            try:
                with self._environment.reading() as txn:
                    newer = catch_up(view, self._environment, txn, self._limits)
            except Exception:
                # The write is durable and must be acknowledged; the next read loads the project anew.
                slot.show(None)
                _log.exception("a project's view could not follow a write; it will be loaded anew")
                return
            slot.show(newer)
        if is_rebuild_due(newer, self._limits) and not slot.is_rebuilding:
            slot.is_rebuilding = True
            self._maintenance.submit(self._rebuild, slot)

    def _rebuild(self, slot: _Slot) -> None:
        """Beside readers and the writer, who wait only for what was written meanwhile."""
        try:
            view = slot.view
            if view is None:
                return
            copy = rebuilt(view)
            with slot.changing, self._environment.reading() as txn:
                if slot.view is not None:
                    slot.show(catch_up(copy, self._environment, txn, self._limits))
        except Exception:
            _log.exception("a project's view could not be rebuilt; it stays as it is")
        finally:
            slot.is_rebuilding = False

    def _loaded(self, project: str) -> ProjectView | None:
        number = self._number(project)
        if number is None:
            return None
        slot = self._slots.setdefault(project, _Slot())
        with slot.loading:
            view = slot.view
            if view is None:
                view = self._load(slot, number)
        slot.last_use = next(self._uses)
        self._keep_within_budget()
        return view

    def _load(self, slot: _Slot, number: int) -> ProjectView:
        tables = self._environment.tables
        with self._environment.reading() as txn:
            record = codec.decode_project(txn.get(keys.project_number_key(number), b"", db=tables.project))
            loaded = load(self._environment, txn, number, record, self._limits)
        with slot.changing, self._environment.reading() as txn:
            view = catch_up(loaded, self._environment, txn, self._limits)
            slot.show(view)
        return view

    def _number(self, project: str) -> int | None:
        with self._environment.reading() as txn:
            return project_number(txn, self._environment, project)

    def _keep_within_budget(self) -> None:
        """Gives up the views that were used longest ago; whoever still reads one keeps it until done.

        The one used last stays whatever its size: otherwise every write would make the next read load it again.
        """
        used = self.usage()[1]
        if used <= self._budget_bytes:
            return
        loaded = [slot for slot in self._slots.copy().values() if slot.nbytes]
        for slot in sorted(loaded, key=lambda each: each.last_use)[:-1]:
            if used <= self._budget_bytes:
                return
            used -= slot.nbytes
            slot.show(None)


def project_number(txn: lmdb.Transaction[bytes], environment: Environment, project: str) -> int | None:
    """The number of a project."""
    value = txn.get(keys.project_name_key(project), db=environment.tables.project)
    return None if value is None else keys.unpack_project(value)
