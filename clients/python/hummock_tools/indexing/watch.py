"""Following a repository: what changes on disk is in the project a moment later."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import grpc

from hummock_tools.indexing.folder import Folder
from hummock_tools.indexing.sync import OnProgress, SyncReport, bring
from hummock_tools.indexing.walk import git

# Changes are gathered until none has come for as long as a step, or for as long as the whole.
_STEP_MS = 200
_GATHER_MS = 2_000
_FIRST_LOOK_MS = 1_000
_LOCK_LOOK_S = 0.05
_LOCK_STALE_S = 60.0
_FIRST_RETRY_S = 1.0
_LAST_RETRY_S = 60.0
_PASSING = frozenset(
    {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.RESOURCE_EXHAUSTED}
)

Dial: TypeAlias = Callable[[], AbstractContextManager[grpc.Channel]]
Wait: TypeAlias = Callable[[float], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Result of a batch of changes: how many indexed files were new, different or gone, and the run's report."""

    files_changed: int
    report: SyncReport


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchCallbacks:
    """Callbacks for events between batches; of files that are read the folder tells instead of `on_progress`.

    Attributes:
        on_away: Called once for each absence of the service; it is asked again until it answers.
        on_trouble: Called when the user's rules cannot be read; what they were stays in force.
    """

    on_away: Callable[[grpc.Call], None]
    on_trouble: Callable[[ValueError], None]
    on_progress: OnProgress


class CannotWatch(Exception):
    """The system does not report changes in a folder; the message gives the reason and the remedy."""


class Follower:
    """Keeps a project synchronised with a folder. Several may follow the same folder, or a part of it."""

    def __init__(self, folder: Folder, project: str, dial: Dial, told: WatchCallbacks, wait: Wait = time.sleep) -> None:
        """Reads and sends nothing yet.

        `dial` gives a channel for one batch: one that lost its service would wait longer and longer before it tried
        again. `wait` sleeps for some seconds.
        """
        self._folder = folder
        self._project = project
        self._dial = dial
        self._told = told
        self._wait = wait
        self._is_first = True

    def follow(self, changes: Iterable[frozenset[str]]) -> Iterator[Batch]:
        """Result of each set of changed paths, until these end; errors as of `take`."""
        return filter(None, map(self.take, changes))

    def take(self, touched: frozenset[str]) -> Batch | None:
        """Bring the project up to date; None where nothing that is indexed changed since the last time.

        Waits for as long as the service is away. Touched paths are as of `Folder.look`.

        Raises:
            FileNotFoundError, NotADirectoryError: The folder is not there any more.
            grpc.RpcError: The service refuses the project. What it has acknowledged is kept.
        """
        self._look(touched)
        delay_s = 0.0
        while self._folder.changed or self._is_first:
            try:
                with self._dial() as channel:
                    report = bring(self._folder, self._project, channel, on_progress=self._told.on_progress)
            except grpc.RpcError as error:
                if not isinstance(error, grpc.Call) or error.code() not in _PASSING:
                    raise
                if not delay_s:
                    self._told.on_away(error)
                delay_s = min(delay_s * 2 or _FIRST_RETRY_S, _LAST_RETRY_S)
                self._wait(delay_s)
                self._look(frozenset())
            else:
                self._is_first = False
                changed, self._folder.changed = self._folder.changed, 0
                return Batch(files_changed=changed, report=report)
        return None

    def _look(self, touched: frozenset[str]) -> None:
        try:
            self._folder.look(touched)
        except ValueError as error:  # rules that somebody is just writing
            if self._is_first:
                raise
            self._told.on_trouble(error)


def changes_of(folder: Folder, wait: Wait = time.sleep) -> Iterator[frozenset[str]]:
    """Yield changed paths below the folder, relative to it, without those in skipped folders; endless.

    They are gathered until it is quiet and git is not at work.
    The first set, which may be empty, comes within a second: what changed before it was watched is looked for then.

    Raises:
        ModuleNotFoundError: The extra `code` is not installed.
        CannotWatch: The folder is gone, or there are too many folders in it.
    """
    root = folder.path
    lock = _git_lock(root)
    is_first = True
    for paths in _told_by_the_system(root):
        relative = (os.path.relpath(path, root) for path in paths)
        touched = frozenset(path for path in relative if not folder.is_aside(path))
        if touched or is_first:
            is_first = False
            _await_git(lock, wait)
            yield touched


def _told_by_the_system(root: Path) -> Iterator[set[str]]:
    from watchfiles import watch

    events = watch(
        root,
        watch_filter=None,
        debounce=_GATHER_MS,
        step=_STEP_MS,
        rust_timeout=_FIRST_LOOK_MS,
        yield_on_timeout=True,
        ignore_permission_denied=True,
    )
    try:
        for changes in events:
            yield {path for _, path in changes}
    except (OSError, RuntimeError) as error:
        said = f"{root} cannot be watched: {error}"
        if "limit" in str(error):
            said += "; raise it (Linux: sysctl fs.inotify.max_user_watches) or follow a smaller folder"
        raise CannotWatch(said) from error


def _git_lock(root: Path) -> Path | None:
    """Return git's lock file, which exists while a branch is switched; None outside a work tree."""
    path = git(root, "rev-parse", "--git-path", "index.lock").rstrip(b"\n")
    return root / os.fsdecode(path) if path else None


def _await_git(lock: Path | None, wait: Wait) -> None:
    """Let git finish: a branch is switched in one batch."""
    waited_s = 0.0
    while lock is not None and waited_s < _LOCK_STALE_S and _is_held(lock):
        wait(_LOCK_LOOK_S)
        waited_s += _LOCK_LOOK_S


def _is_held(lock: Path) -> bool:
    """True if git is at work; a lock left by a killed git does not count."""
    try:
        return time.time() - lock.stat().st_mtime < _LOCK_STALE_S
    except OSError:
        return False
