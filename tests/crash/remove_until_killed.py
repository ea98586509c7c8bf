"""Removes a project and kills its own process at a point that is counted: `… DIRECTORY POINT`.

Points are: before the removal is a part of a transaction, after that, after its commit, and around each slice that is
cleared: before it, within its transaction, after its commit.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hummock.ports.writes import ProjectRemoval
from hummock.store.write.group import GroupTransaction
from hummock.store.write.project_removal import Remains
from tests.crash.embed_until_killed import Killer
from tests.store.opening import opened

SLICE = 16


def run(directory: Path, point: int) -> None:
    killer = Killer(point)
    remove = GroupTransaction.remove

    def killing_remove(group: GroupTransaction, *args: Any) -> Any:
        killer.point()
        removed = remove(group, *args)
        killer.point()
        return removed

    GroupTransaction.remove = killing_remove  # type: ignore[method-assign,assignment] # a fault from outside
    Remains.clear_some = lambda remains: False  # type: ignore[method-assign,assignment] # by hand, below
    with opened(directory) as store:
        store.remove_project("p", ProjectRemoval(request_id="", fingerprint=b"p")).result()
        killer.point()
        remains = KillingRemains(store._engine, store.claims, SLICE)
        remains.killer = killer
        while remains.step():
            killer.point()


class KillingRemains(Remains):
    """Clears by slices, with a point before each and one inside its transaction."""

    killer: Killer

    def step(self) -> bool:
        """One slice."""
        with self._engine.reading() as txn:
            number = next(self._numbers(txn), None)
        if number is None:
            return False
        self.killer.point()
        with self._engine.writing() as txn:
            self._clear(txn, number)
            self.killer.point()
        return True


if __name__ == "__main__":
    run(Path(sys.argv[1]), int(sys.argv[2]))
