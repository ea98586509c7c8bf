"""Which notes that tell a change the store finds, and which older ones with each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hummock.core.memory import MemoryKind, Origin
from hummock.ports.store import Alike
from tests.ports.asking import put
from tests.snapshots import at
from tests.store.opening import opened
from tests.strategies import Entry

START = 1_700_000_000.0
HOUR = 3600.0
ALIKE = Alike(least_cosine=0.9, least_age_s=HOUR, count=3)


def entry(id: str, words: str = "the branch is master", hours: float = 0, seed: int = 1, **more: Any) -> Entry:
    return Entry(
        id=id, words=tuple(words.split()), create_time=START + hours * HOUR, seeds=(seed,), **{"supersedes": (), **more}
    )


def change(hours: float = 9, **more: Any) -> Entry:
    return entry("new", "it was renamed to main", hours, **more)


def older_of(path: Path, *told: Entry) -> dict[str, list[str]]:
    """Ids of the older notes of each that tells a change."""
    with opened(path) as store:
        put(store, "p", *told)
        snapshot = at(store, "p")
        page = snapshot.changes(0, 10, ALIKE)
        assert page.next_after is None
        numbers = [number for one in page.changes for number in (one.doc, *one.older)]
        names = dict(zip(numbers, [memory.id for memory in snapshot.load(numbers, full=False) if memory], strict=True))
        assert all(cosine == pytest.approx(1, abs=1e-3) for one in page.changes for cosine in one.older.values())
        return {names[one.doc]: [names[number] for number in one.older] for one in page.changes}


CASES: Mapping[str, tuple[list[Entry], dict[str, list[str]]]] = {
    "an older note like it": ([entry("old"), change()], {"new": ["old"]}),
    "by the time of the event": ([entry("old", event_time=START + 20 * HOUR), change()], {"new": []}),
    "unlike": ([entry("old", seed=2), change()], {"new": []}),
    "told within the hour": ([entry("old"), change(0.9)], {"new": []}),
    "a question": ([entry("old", "is the branch master?"), change()], {"new": []}),
    "no note": ([entry("old", kind=MemoryKind.ENTRY), change(kind=MemoryKind.ENTRY)], {}),
    "another speaker": ([entry("old", speaker="Ada"), change(speaker="Bo")], {"new": []}),
    "no speaker known": ([entry("old"), change(speaker="Bo")], {"new": ["old"]}),
    "the model and its user": ([entry("old"), change(origin=Origin.AI_OUTPUT)], {"new": []}),
    "a writer nobody vouches for": (
        [entry("mine"), entry("own", origin=Origin.SUMMARY, writer="ci"), change(origin=Origin.SUMMARY, writer="ci")],
        {"new": ["own"]},
    ),
    "a vouched writer": ([entry("old", origin=Origin.SUMMARY, writer="ci"), change()], {"new": ["old"]}),
    "replaced already": ([entry("old"), change(supersedes=("old",))], {"new": []}),
    "without vectors": ([Entry(id="old", words=("x",), seeds=(), supersedes=()), change()], {"new": []}),
}


@pytest.mark.parametrize(("told", "found"), CASES.values(), ids=list(CASES))
def test_a_change_comes_with_what_it_may_replace(
    tmp_path: Path, told: list[Entry], found: dict[str, list[str]]
) -> None:
    assert older_of(tmp_path, *told) == found


def test_pages_go_on_where_the_last_one_ended(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        put(store, "p", entry("old"), *map(named, range(3)))
        snapshot = at(store, "p")
        after, sizes = 0, []
        while True:
            page = snapshot.changes(after, 2, ALIKE)
            sizes.append(len(page.changes))
            if page.next_after is None:
                break
            after = page.next_after
        assert sizes == [2, 1]
        assert not at(store, "nobody").changes(0, 2, ALIKE).changes


def named(place: int) -> Entry:
    return entry(f"new-{place}", "it was renamed to main", 9 + place)
