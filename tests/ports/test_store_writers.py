"""Writers of unconfirmed memories, as candidates have them; one writer's flood leaves others their candidates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hummock.core.candidates import Candidates
from hummock.core.memory import Origin
from hummock.ports.store import Store
from tests.ports.asking import ask, ids, put
from tests.strategies import Entry


def wrote(number: int, writer: str, origin: Origin = Origin.SUMMARY) -> Entry:
    words = ("tide", f"w{number}")
    return Entry(id=f"{writer}-{number}", words=words, seeds=(number,), writer=writer, origin=origin)


def writers(found: Candidates) -> dict[str, int]:
    """Writers by memory id; empty if there are none."""
    return dict(zip(found.memory_id, found.writer.tolist(), strict=True)) if len(found.writer) else {}


def test_what_one_writer_wrote_has_one_number_and_what_a_person_wrote_has_none(store: Store) -> None:
    put(store, "p", wrote(1, "ci"), wrote(2, "ci", origin=Origin.AI_OUTPUT), wrote(3, "agent"))
    put(store, "p", wrote(4, "ci", origin=Origin.MANUAL), Entry(id="no-token", origin=Origin.SUMMARY))
    found = writers(ask(store, seed=1))
    assert found["ci-1"] == found["ci-2"] > 0
    assert found["agent-3"] not in {0, found["ci-1"]}
    assert found["ci-4"] == found["no-token"] == 0


def test_where_all_is_of_one_writer_nothing_is_told(store: Store) -> None:
    put(store, "p", *(wrote(number, "ci") for number in range(1, 5)))
    assert writers(ask(store, seed=1)) == {}
    put(store, "p", Entry(id="by-hand", seeds=(9,)))
    assert writers(ask(store, seed=1))["by-hand"] == 0


def test_a_flood_leaves_others_ten_candidates_a_path(store: Store) -> None:
    flood = [replace(wrote(number, "mallory"), seeds=(1,)) for number in range(1, 41)]
    others = [wrote(number, "carol") for number in range(101, 121)]
    put(store, "p", *flood, *others)
    by_vector = ask(store, seed=1, pool=5)
    theirs = {one for one in ids(by_vector) if one.startswith("carol")}
    assert len(theirs) >= 10
    by_words = ask(store, terms=["tide"], pool=5)
    assert sum(one.startswith("carol") for one in ids(by_words)) >= 10
    # Nothing is brought twice, and the filter holds.
    assert len(by_vector.memory_id) == len(ids(by_vector))
    assert np.isfinite(by_vector.cosine).all()
