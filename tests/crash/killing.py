"""Works on a directory and kills its own process at a point that is counted: `… VERB POINT PATHS`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from hummock.core.embedding import Embedding
from hummock.ports.writes import ProjectRemoval, UnitOfWork, WriteRequest
from hummock.store.moving import copy_between
from hummock.store.moving.landing import Landing
from hummock.store.upkeep import Backups
from hummock.store.upkeep import purge as purge_directory
from hummock.store.upkeep import restore as restore_directory
from hummock.store.write.group import GroupTransaction
from hummock.store.write.project_removal import Remains
from tests.store.opening import opened
from tests.workplace import workplace

SLICE = 16


def is_killed(verb: str, point: int, *paths: Path | str) -> bool:
    """Whether a process reached the point, which killed it; otherwise it has done all."""
    command = [sys.executable, "-m", "tests.crash.killing", verb, str(point), *map(str, paths)]
    status = subprocess.run(command, check=False).returncode
    assert status in (0, -signal.SIGKILL)
    return status != 0


class Killer:
    """Kills the process when it is told for the so many'th time."""

    def __init__(self, point: int) -> None:
        self._left = point

    def point(self, *_: object) -> None:
        if not self._left:
            os.kill(os.getpid(), signal.SIGKILL)
        self._left -= 1

    def around(self, owner: type, name: str) -> None:
        """Puts a point before each call of a method, and one after it."""
        method = getattr(owner, name)

        def killing(*given: Any, **named: Any) -> Any:
            self.point()
            result = method(*given, **named)
            self.point()
            return result

        setattr(owner, name, killing)


def backup(killer: Killer, data: str, backups: str) -> None:
    """Points: around the name of each file that is written durably, and after each block."""
    killer.around(Path, "replace")
    Backups(Path(backups)).make(Path(data), 2.0, "0.0", 1, killer.point)


def restore(killer: Killer, data: str, backups: str) -> None:
    """Points: those of a backup."""
    killer.around(Path, "replace")
    restore_directory(Backups(Path(backups)), Path(data), None, killer.point)


def purge(killer: Killer, data: str) -> None:
    """Points: after each table that is copied, around the new file's name, and around each file that is removed."""
    killer.around(Path, "replace")
    killer.around(Path, "unlink")
    purge_directory(Path(data), 1e9, killer.point)


def copy(killer: Killer, source: str, target: str) -> None:
    """Points: around each transaction that writes to the target."""
    writing = Landing._writing

    @contextmanager
    def killing(landing: Landing, *given: Any, **named: Any) -> Iterator[Any]:
        killer.point()
        with writing(landing, *given, **named) as txn:
            yield txn
        killer.point()

    Landing._writing = killing  # type: ignore[method-assign,assignment] # a fault from outside
    copy_between(source, target, map_bytes=1 << 28)


def embed(killer: Killer, directory: str) -> None:
    """Points: before a text is embedded, before a write changes anything, before its commit, after that."""
    with workplace(Path(directory)) as work:
        embed_all, write = work.embedder.embed_in_turn, work.store.write

        def embed_in_turn(chunks: Sequence[str]) -> Iterator[Embedding]:
            for embedding in embed_all(chunks):
                killer.point()
                yield embedding

        def killing_write(project: str, request: WriteRequest[Any]) -> Any:
            def apply(unit: UnitOfWork) -> Any:
                killer.point()
                reply = request.apply(unit)
                killer.point()
                return reply

            written = write(project, replace(request, apply=apply))
            written.result()
            killer.point()
            return written

        work.embedder.embed_in_turn = embed_in_turn  # type: ignore[method-assign] # a fault from outside
        work.store.write = killing_write  # type: ignore[assignment] # it is given no removal
        work.backfill.wake("p")
        work.embed_pending()


def remove(killer: Killer, directory: str) -> None:
    """Points: around the removal in its transaction, after its commit, and before, within and after each slice."""
    killer.around(GroupTransaction, "remove")
    Remains.clear_some = lambda remains: False  # type: ignore[method-assign,assignment] # by hand, below
    with opened(Path(directory)) as store:
        store.remove_project("p", ProjectRemoval(request_id="", fingerprint=b"p")).result()
        killer.point()
        remains = Remains(store._engine, store.claims, SLICE)
        while _clear_slice(remains, killer):
            killer.point()


def _clear_slice(remains: Remains, killer: Killer) -> bool:
    with remains._engine.reading() as txn:
        number = next(remains._numbers(txn), None)
    if number is None:
        return False
    killer.point()
    with remains._engine.writing() as txn:
        remains._clear(txn, number)
        killer.point()
    return True


VERBS: Final[dict[str, Callable[..., None]]] = {
    verb.__name__: verb for verb in (backup, restore, purge, copy, embed, remove)
}

if __name__ == "__main__":
    VERBS[sys.argv[1]](Killer(int(sys.argv[2])), *sys.argv[3:])
