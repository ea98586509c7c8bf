"""Lets a project's learning live, kills it at any moment, and plays its log again.

`python -m tests.learning.fuzz --events 100000 --seed 1` is a part of `make fuzz`.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from tests.learning.workbench import Workbench
from tests.store.opening import opened


def check(directory: Path, least_events: int) -> int:
    """The events that were kept. Raises AssertionError when one is lost, or they do not give the state."""
    with opened(directory) as store:
        replayed = Workbench(store).replay()
        assert replayed.events >= least_events, f"{least_events} events were acknowledged, {replayed.events} are there"
        assert replayed.matches, f"{replayed.events} events give another state"
        return replayed.events


def live_and_be_killed(directory: Path, seed: str, steps: int) -> int:
    """Lets a process live for so many steps, kills it, and gives the events that it had acknowledged."""
    command = [sys.executable, "-m", "tests.learning.living", str(directory), seed]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = [process.stdout.readline() for _ in range(steps)]
        process.send_signal(signal.SIGKILL)
        # A line that was cut off was never said.
        said += [line for line in process.stdout if line.endswith("\n")]
    return max(int(line) for line in said)


def run(directory: Path, events: int, seed: int, most_steps: int) -> tuple[int, int]:
    """Lives until so many events are there. Returns how many there are, and how often it was killed."""
    random = Random(seed)  # noqa: S311 - to be repeated, not to be secret
    kept, kills = 0, 0
    while kept < events:
        acknowledged = live_and_be_killed(directory, f"{seed}/{kills}", random.randint(1, most_steps))
        kept = check(directory, acknowledged)
        kills += 1
    return kept, kills


def main() -> None:
    """Runs, and says how far it came."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with TemporaryDirectory() as directory:
        kept, kills = run(Path(directory), arguments.events, arguments.seed, most_steps=5000)
    print(f"{kept} events, killed {kills} times: every replay gave the state, nothing acknowledged was lost")


if __name__ == "__main__":
    main()
