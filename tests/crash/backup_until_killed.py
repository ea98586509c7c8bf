"""Backs up or restores, and kills its own process at a point that is counted: `… VERB DATA BACKUPS POINT`.

Points are before and after the name of each file that is written durably, and after each block.
"""

from __future__ import annotations

import sys
from pathlib import Path

from hummock.store.upkeep import Backups, restore
from tests.crash.embed_until_killed import Killer


def run(verb: str, data: Path, backups: Path, point: int) -> None:
    killer = Killer(point)
    replace = Path.replace

    def killing_replace(path: Path, target: Path) -> Path:
        killer.point()
        replaced = replace(path, target)
        killer.point()
        return replaced

    Path.replace = killing_replace  # type: ignore[method-assign,assignment] # a fault from outside

    def progress(done: int, total: int) -> None:
        killer.point()

    if verb == "backup":
        Backups(backups).make(data, 2.0, "0.0", 1, progress)
    else:
        restore(Backups(backups), data, None, progress)


if __name__ == "__main__":
    run(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]))
