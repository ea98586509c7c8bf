"""Runs the same scripts over a faultless network and a bad one: `python -m tests.once.run --rounds 100 --seed 1`."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from tempfile import TemporaryDirectory

from bench import toy_models
from tests.once.proxy import Fate, bad_network
from tests.once.script import AFTER, Script, answered, settle
from tests.once.state import digest, lines
from tests.service.running import Stubs, connected, in_thread, settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Final state, a list of lines a project, and the fates of the calls."""

    faultless: list[list[str]]
    faulty: list[list[str]]
    fates: Counter[Fate]


def run(directory: Path, models_dir: Path, model: str, seed: int, *, projects: int, steps: int) -> Outcome:
    """Runs the scripts of some projects, all at once, on two services.

    Args:
        directory: Empty.
        models_dir: Directory of the model.
        model: Name of the model.
        seed: Seed of scripts and network.
        projects: Callers at once; each has a project of its own.
        steps: Calls of each, at least.
    """
    names = [f"project-{number}" for number in range(projects)]
    left: list[list[list[str]]] = []
    fates: Counter[Fate] = Counter()
    for place in ("faultless", "faulty"):
        (directory / place).mkdir()
        with in_thread(settings(directory / place, models_dir, model)) as direct:
            if place == "faultless":
                _play(direct, direct, names, seed, steps)
            else:
                with bad_network(direct.target, seed) as (network, target):
                    with connected(target) as through:
                        _play(direct, through, names, seed, steps)
                    network.deliver_all()
                fates = network.fates
            for name in names:
                settle(direct, name)
            left.append([lines(direct, name) for name in names])
    return Outcome(faultless=left[0], faulty=left[1], fates=fates)


def _play(direct: Stubs, through: Stubs, names: Sequence[str], seed: int, steps: int) -> None:
    def play(name: str) -> None:
        for step in Script(name, f"{seed}/{name}", steps):
            answered(through, step)
            if step.method in AFTER:
                settle(direct, name)

    with ThreadPoolExecutor(len(names)) as callers:
        list(callers.map(play, names))


def main() -> None:
    """Runs, and says as JSON what came of it; status 1 where anything differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--projects", type=int, default=4)
    parser.add_argument("--steps", type=int, default=200)
    arguments = parser.parse_args()
    fates: Counter[Fate] = Counter()
    different: list[str] = []
    for seed in range(arguments.seed, arguments.seed + arguments.rounds):
        with TemporaryDirectory() as directory:
            place = Path(directory)
            model = toy_models.build_tiny(place / "models").name
            outcome = run(place, place / "models", model, seed, projects=arguments.projects, steps=arguments.steps)
        fates += outcome.fates
        for at, (one, other) in enumerate(zip(outcome.faultless, outcome.faulty, strict=True)):
            if digest(one) != digest(other):
                different.append(f"seed {seed}, project {at}")
                print("\n".join(unified_diff(one, other, "faultless", "faulty", n=0, lineterm="")), file=sys.stderr)
    figures = {"calls": fates.total(), **{fate.value: fates[fate] for fate in Fate}, "different": different}
    print(json.dumps(figures))
    raise SystemExit(bool(different))


if __name__ == "__main__":
    main()
