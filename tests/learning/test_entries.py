"""Entries as they are kept from turn to turn."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hummock.core.learning import Entry
from hummock.learning.references import Entries
from tests.learning_desk import PROJECT, LearningDesk, learning_desk
from tests.strategies import delete_request, learned_request


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[LearningDesk]:
    with learning_desk(tmp_path) as opened:
        opened.entries("wood", "star")
        yield opened


def set_keywords(desk: LearningDesk, memory_id: str, *keywords: str) -> None:
    desk.place.store.write(PROJECT, learned_request(memory_id, *keywords)).result()


def test_what_is_learnt_is_seen_and_the_memories_are_not_read_again(
    desk: LearningDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = Entries(desk.place.store)
    before = entries.of(PROJECT)
    reads = 0
    page = desk.place.store.page

    def counting(*arguments: object, **named: object) -> object:
        nonlocal reads
        reads += 1
        return page(*arguments, **named)  # type: ignore[arg-type] # as they came

    monkeypatch.setattr(desk.place.store, "page", counting)
    set_keywords(desk, "wood", "timber")
    after = entries.of(PROJECT)
    assert after == (Entry(memory_id="wood", title="wood", keywords=("timber",)), before[1])
    assert after[1] is before[1]
    assert entries.of(PROJECT) is after
    assert reads == 0


def test_an_entry_that_is_new_changed_or_gone_is_seen(desk: LearningDesk) -> None:
    entries = Entries(desk.place.store)
    entries.of(PROJECT)
    set_keywords(desk, "star", "chart")
    entries.of(PROJECT)
    desk.entries("port")
    assert {entry.memory_id: entry.keywords for entry in entries.of(PROJECT)} == {
        "wood": (),
        "star": ("chart",),
        "port": (),
    }
    desk.place.store.write(PROJECT, delete_request(["star"])).result()
    assert [entry.memory_id for entry in entries.of(PROJECT)] == ["wood", "port"]


def test_of_more_projects_than_are_cached_each_still_has_its_own(
    desk: LearningDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hummock.learning.references.MAX_PROJECTS", 1)
    entries = Entries(desk.place.store)
    for _ in range(2):
        assert [entry.memory_id for entry in entries.of(PROJECT)] == ["wood", "star"]
        assert entries.of("another") == ()
