"""Embeds what waits in a directory and kills its own process at a point that is counted: `… DIRECTORY POINT`.

Points are: before a text is embedded, before a write changes anything, before it is committed, after its commit.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hummock.core.embedding import Embedding
from hummock.ports.writes import UnitOfWork, WriteRequest
from tests.workplace import workplace


class Killer:
    """Kills the process when it is told for the so many'th time."""

    def __init__(self, point: int) -> None:
        self._left = point

    def point(self) -> None:
        if not self._left:
            os.kill(os.getpid(), signal.SIGKILL)
        self._left -= 1


def run(directory: Path, point: int) -> None:
    killer = Killer(point)
    with workplace(directory) as work:
        embed, write = work.embedder.embed_in_turn, work.store.write

        def embed_in_turn(chunks: Sequence[str]) -> Iterator[Embedding]:
            for embedding in embed(chunks):
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


if __name__ == "__main__":
    run(Path(sys.argv[1]), int(sys.argv[2]))
