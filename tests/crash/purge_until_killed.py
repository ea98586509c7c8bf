"""Purges and kills its own process at a point that is counted: `… DATA POINT`.

Points are after each table that is copied, around the new file's name, and around each file that is removed.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hummock.store.upkeep import purge
from tests.crash.embed_until_killed import Killer


def run(data: Path, point: int) -> None:
    killer = Killer(point)
    replace, unlink = Path.replace, Path.unlink

    def killing_replace(path: Path, target: Path) -> Path:
        killer.point()
        replaced = replace(path, target)
        killer.point()
        return replaced

    def killing_unlink(path: Path, **options: Any) -> None:
        killer.point()
        unlink(path, **options)
        killer.point()

    Path.replace = killing_replace  # type: ignore[method-assign,assignment] # a fault from outside
    Path.unlink = killing_unlink  # type: ignore[method-assign,assignment] # the same
    purge(data, 1e9, lambda done, total: killer.point())


if __name__ == "__main__":
    run(Path(sys.argv[1]), int(sys.argv[2]))
