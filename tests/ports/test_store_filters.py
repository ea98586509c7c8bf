"""Filters against a plain reading of their rules."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hummock.core import facets
from hummock.core.memory import CodeFragment, Filter, MemoryKind, Origin
from hummock.ports.store import Snapshot
from hummock.text.told_days import told_time
from tests.ports.asking import ask, put
from tests.store.opening import opened
from tests.strategies import IDS, SESSIONS, TAGS, Entry, delete_request, entries

PATHS = ("src/A.java", "test/A.java", "A.java", "src/main/B.kt", "目录/还款.py")
ENDS = ("A.java", "src/A.java", "main/B.kt", "B.kt", "还款.py", "a.java", "va")
SPEAKERS = ("", "Ada", "小明")
WRITERS = ("", "ci", "agent")
TIMES = (1_700_000_000.0, 1_700_000_050.0, 1_700_000_100.0)
MANY_IDS = (*IDS, *(f"m{number}" for number in range(8)))
FACTS = (("env", "prod"), ("env", "Prod"), ("部门", "风控"))
Value = TypeVar("Value")


def dressed() -> st.SearchStrategy[Entry]:
    """Memories with all that a filter may ask for."""
    details = st.sampled_from(PATHS).map(lambda path: CodeFragment(path=path))

    def dress(
        entry: Entry,
        speaker: str,
        detail: CodeFragment | None,
        event_time: float | None,
        metadata: tuple[tuple[str, str], ...],
        writer: str,
        pinned: bool,
    ) -> Entry:
        kind = entry.kind if detail is None else MemoryKind.CODE_FRAGMENT
        told = replace(entry, speaker=speaker, detail=detail, kind=kind, event_time=event_time)
        return replace(told, metadata=metadata, writer=writer, pinned=pinned)

    times, writers = st.none() | st.sampled_from(TIMES), st.sampled_from(WRITERS)
    speakers = st.sampled_from(SPEAKERS)
    facts = some(FACTS)
    return st.builds(dress, entries(MANY_IDS), speakers, st.none() | details, times, facts, writers, st.booleans())


def some(values: Sequence[Value]) -> st.SearchStrategy[tuple[Value, ...]]:
    return st.just(()) | st.lists(st.sampled_from(values), max_size=2, unique=True).map(tuple)


def filters() -> st.SearchStrategy[Filter]:
    """Filters of which most let something through."""
    times = st.none() | st.sampled_from(TIMES)
    return st.builds(
        Filter,
        kinds=st.frozensets(st.sampled_from(list(MemoryKind)), max_size=3),
        origins=st.just(frozenset[Origin]()) | st.frozensets(st.sampled_from(list(Origin)), max_size=4),
        tags=some(TAGS),
        session_ids=some((*SESSIONS, "unknown")),
        paths=some(ENDS),
        speakers=some(SPEAKERS[1:]),
        writers=some(WRITERS[1:]),
        created_after=times,
        created_before=times,
        event_after=times,
        event_before=times,
        excluded_ids=some((*MANY_IDS, "unknown")),
        metadata=some(FACTS),
        pinned=st.booleans(),
    )


def passes(entry: Entry, where: Filter) -> bool:
    told = entry.create_time if entry.event_time is None and entry.session_id else entry.event_time
    path = entry.detail.path if isinstance(entry.detail, CodeFragment) else None
    return (
        (not where.kinds or entry.kind in where.kinds)
        and (entry.pinned or not where.pinned)
        and (not where.origins or entry.origin in where.origins)
        and all(tag in entry.tags for tag in where.tags)
        and (not where.session_ids or entry.session_id in where.session_ids)
        and (not where.paths or (path is not None and any(f"/{path}".endswith(f"/{end}") for end in where.paths)))
        and (not where.speakers or entry.speaker in where.speakers)
        and (not where.writers or entry.writer in where.writers)
        and (where.created_after is None or entry.create_time >= where.created_after)
        and (where.created_before is None or entry.create_time < where.created_before)
        and (where.event_after is None or (told is not None and told >= where.event_after))
        and (where.event_before is None or (told is not None and told < where.event_before))
        and entry.id not in where.excluded_ids
        and all(fact in entry.metadata for fact in where.metadata)
    )


def pinned_ids(where: Filter, snapshot: Snapshot) -> list[str]:
    return [memory.id for memory in snapshot.pinned(where, 3)]


def is_pinned_for(entry: Entry, where: Filter) -> bool:
    """Whether prompts with the filter have it: kinds, origins, paths and times do not count."""
    scope = Filter(tags=where.tags, writers=where.writers, excluded_ids=where.excluded_ids, metadata=where.metadata)
    return (
        entry.pinned
        and passes(entry, scope)
        and (not where.speakers or entry.speaker in ("", *where.speakers))
        and (not where.session_ids or entry.session_id in ("", *where.session_ids))
    )


@pytest.mark.long
@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    batches=st.lists(st.lists(dressed(), min_size=1, max_size=8), min_size=1, max_size=4),
    removed=st.lists(st.sampled_from(MANY_IDS), max_size=3),
    where=st.lists(filters(), min_size=1, max_size=6),
)
def test_a_filter_lets_through_what_its_rules_say(
    batches: list[list[Entry]], removed: list[str], where: list[Filter]
) -> None:
    """S0-06, S4-17, S4-23."""
    kept: dict[str, Entry] = {}
    with tempfile.TemporaryDirectory() as name, opened(Path(name)) as store:
        for batch in batches:
            put(store, "p", *batch)
            put(store, "other", *batch)
            ask(store, seed=1)
            for entry in batch:
                kept.pop(entry.id, None)
                kept[entry.id] = entry
        store.write("p", delete_request(removed)).result(30)
        expected = [entry for entry in kept.values() if entry.id not in removed]
        for one in where:
            allowed = [entry.id for entry in expected if passes(entry, one)]
            found = ask(store, seed=1, terms=["tide", "还款"], where=one)
            assert found.searched == len(allowed)
            assert set(found.memory_id) <= set(allowed)
            assert {entry.id for entry in expected if entry.seeds and entry.id in allowed} <= set(found.memory_id)
            assert [memory.id for memory in store.page("p", one, 0, 100, full=False).memories] == allowed
            newest = [entry.id for entry in reversed(expected) if is_pinned_for(entry, one)]
            assert store.read("p", partial(pinned_ids, one)) == newest[:3]


@pytest.mark.long
@settings(max_examples=200, deadline=None, derandomize=True)
@given(entry=dressed(), where=filters())
def test_one_memory_passes_a_filter_as_it_does_among_others(entry: Entry, where: Filter) -> None:
    assert facets.passes(entry.memory(), where, told_time) == passes(entry, where)
