"""Copies a store, and kills its own process at a point that is counted: `… FROM TO POINT`.

Points are before and after each transaction that writes to the target.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hummock.store.moving import copy_between
from hummock.store.moving.landing import Landing
from tests.crash.embed_until_killed import Killer


def run(source: str, target: str, point: int) -> None:
    killer, writing = Killer(point), Landing._writing

    @contextmanager
    def killing(landing: Landing, *given: Any, **named: Any) -> Iterator[Any]:
        killer.point()
        with writing(landing, *given, **named) as txn:
            yield txn
        killer.point()

    Landing._writing = killing  # type: ignore[method-assign,assignment] # a fault from outside
    copy_between(source, target, map_bytes=1 << 28)


if __name__ == "__main__":
    run(sys.argv[1], sys.argv[2], int(sys.argv[3]))
