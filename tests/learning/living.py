"""A life of a project's learning, made of chance: every operation there is, in any order.

`python -m tests.learning.living DIRECTORY SEED` lives until it is killed. Each line of its output is a number of events
that were acknowledged.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

from hummock.core.learning import KeywordsSet
from hummock.core.learning_requests import SettingsChanges
from hummock.core.memory import MemoryKind
from tests.learning.workbench import TITLES, Workbench, entry_id, uuid
from tests.store.opening import opened

SCOPES = ("", "s", "第二局")
WORDS = ("硬木头", "harbour wood", "灯油", "pale", "north")

Step = Callable[[Workbench, Random], None]


def say(bench: Workbench, random: Random) -> None:
    """A turn that refers to some entries, by title or keyword; half of them are sent twice."""
    text = " ".join(random.sample((*TITLES, *WORDS), random.randint(0, 3)))
    number, room, request_id = turn(bench, random), random.randint(0, 6), uuid(random.randrange(10**9))
    shown = bench.say(text, number, request_id=request_id, room=room)
    if random.random() < 0.5:
        assert bench.say(text, number, request_id=request_id, room=room) == shown


def turn(bench: Workbench, random: Random, scope: str = "") -> int:
    """Mostly the next turn; now and then the same again, or one long past or far ahead."""
    last = bench.store.read_learning(bench.project, lambda learning: learning.turn(scope)) or 0
    return random.choice((last + 1, last + 1, last + 1, last, max(0, last - 7), last + 13))


def speak(bench: Workbench, random: Random) -> None:
    scope = random.choice(SCOPES)
    text = " ".join(random.sample(TITLES, random.randint(0, 2)))
    bench.say(text, turn(bench, random, scope), scope=scope, room=random.randint(0, 6))


def observe(bench: Workbench, random: Random) -> None:
    """Some turns at once, as after a while without a connection."""
    scope = random.choice(SCOPES)
    first = turn(bench, random, scope)
    bench.observe(range(first, first + random.randint(1, 30)), random.choice(WORDS), scope)


def learn(bench: Workbench, random: Random) -> None:
    title, *others = random.sample(TITLES, 3)
    bench.learn(title, *random.sample(WORDS, random.randint(0, 2)), analyzed=others)


def write_keywords(bench: Workbench, random: Random) -> None:
    title = random.choice(TITLES)
    bench.put(title)
    words = tuple(random.sample(WORDS, random.randint(0, 3)))
    bench.update(keywords=[KeywordsSet(memory_id=entry_id(title), keywords=words)])


def switch(bench: Workbench, random: Random) -> None:
    bench.update(enabled=random.random() < 0.8)


def tune(bench: Workbench, random: Random) -> None:
    mid = random.randint(0, 4)
    bench.update(
        changes=SettingsChanges(
            mid_above=mid, high_above=mid + random.randint(0, 8), low_cooldown_turns=random.randint(0, 12)
        )
    )


def judge(bench: Workbench, random: Random) -> None:
    bench.judge(random.choice(TITLES), is_useful=random.random() < 0.5)


def put(bench: Workbench, random: Random) -> None:
    bench.put(*random.sample(TITLES, 2), kind=random.choice((MemoryKind.ENTRY, MemoryKind.ENTRY, MemoryKind.NOTE)))


def remove(bench: Workbench, random: Random) -> None:
    bench.remove(*random.sample(TITLES, random.randint(1, 2)))


STEPS: Sequence[tuple[Step, int]] = (
    (say, 6), (speak, 6), (observe, 4), (learn, 3), (write_keywords, 1), (switch, 1), (tune, 1), (judge, 1), (put, 2),
    (remove, 1),
)  # fmt: skip


def live(bench: Workbench, random: Random) -> None:
    """One operation more."""
    (step,) = random.choices([step for step, _ in STEPS], [weight for _, weight in STEPS])
    step(bench, random)


def begin(bench: Workbench) -> None:
    """Creates the entries and enables learning."""
    bench.put(*TITLES)
    bench.update(enabled=True)


def main() -> None:
    """Lives for ever."""
    random = Random(sys.argv[2])  # noqa: S311 - to be repeated, not to be secret
    with opened(Path(sys.argv[1])) as store:
        bench = Workbench(store)
        begin(bench)
        for _ in itertools.count():
            live(bench, random)
            print(bench.state().events, flush=True)


if __name__ == "__main__":
    main()
