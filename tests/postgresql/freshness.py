"""Two services over one database: `python -m tests.postgresql.freshness --rounds 10000`.

One learns, the other recalls as soon as the first has answered, and then the other way round: it must find what was
learnt, each time. Both write to the same projects.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

from bench import toy_models
from tests.postgresql.node import running_node
from tests.service.calls import ask, learn
from tests.service.inputs import note
from tests.service.running import Stubs, in_thread, settings

_CALLERS = 4
_A_LINE = 100


def stale_rounds(first: Stubs, second: Stubs, rounds: int, *, says: bool = False) -> int:
    """Number of recalls that did not find what the other service had just learnt."""

    def play(caller: int) -> int:
        stale = 0
        for number in range(caller, rounds, _CALLERS):
            learner, asked = (first, second) if number % 2 else (second, first)
            # A few projects, so that both services write to each, and views of each follow the other.
            project, memory_id = f"project-{number % 3}", f"m{number}"
            learn(learner, project, note(f"word{number} of round {number}", id=memory_id))
            found = {hit.memory.id for hit in ask(asked, project, f"word{number}").hits}
            stale += memory_id not in found
            if says and number % _A_LINE == 0:
                print(f"\r{number} of {rounds} rounds", end="", file=sys.stderr, flush=True)
        return stale

    with ThreadPoolExecutor(_CALLERS) as callers:
        return sum(callers.map(play, range(_CALLERS)))


def main() -> int:
    """Runs, and says what came of it; status 1 where anything was stale."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10_000)
    rounds = parser.parse_args().rounds
    with TemporaryDirectory(prefix="pg-") as name, TemporaryDirectory() as data:
        tiny = toy_models.build_tiny(Path(data))
        with running_node(Path(name)) as node:
            dsn = node.dsn_of("hummock")
            one = settings(Path(data) / "one", Path(data), tiny.name, store=dsn)
            two = settings(Path(data) / "two", Path(data), tiny.name, store=dsn)
            with in_thread(one) as first, in_thread(two) as second:
                stale = stale_rounds(first, second, rounds, says=True)
    print(f"\n{rounds} rounds over two services, {stale} stale")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
