"""Thousands of projects in one store, of which only a few fit into memory."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from hummock.store import DEFAULT_LIMITS, WritableStore
from tests.ports.asking import ask, ids
from tests.store.opening import MIB, opened
from tests.strategies import Entry, delete_request, put_request

pytestmark = pytest.mark.long

PROJECTS = tuple(f"项目-{number}" for number in range(2000))
BUDGET_BYTES = MIB // 4
_THREADS_OF_A_STORE = 2
"""Threads of a store: its writer, and the one that rebuilds."""


def memory_ids(project: str) -> tuple[str, ...]:
    """Three ids that all projects have, and two that only this one has."""
    return "a", "b", "c", f"of {project}", f"{project} 的"


def entry(project: str, memory_id: str, seed: int) -> Entry:
    return Entry(id=memory_id, words=("tide", project), tags=(project,), seeds=(seed,))


def write_all(store: WritableStore, projects: Sequence[str]) -> None:
    """Five memories to each project, a request each; they share transactions."""
    writes = [
        store.write(project, put_request([entry(project, each, seed) for seed, each in enumerate(memory_ids(project))]))
        for project in projects
    ]
    assert {write.result(60).seq for write in writes} == {1}


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All projects, written by a store that is closed again."""
    directory = tmp_path_factory.mktemp("store")
    with opened(directory, limits=DEFAULT_LIMITS) as store:
        write_all(store, PROJECTS)
    return directory


@pytest.fixture
def store(directory: Path) -> Iterator[WritableStore]:
    with opened(directory, limits=DEFAULT_LIMITS, memory_budget_bytes=BUDGET_BYTES) as store:
        yield store


def test_each_of_many_projects_answers_with_its_own_memories_and_within_the_budget(store: WritableStore) -> None:
    """S0-06, S1-06: loaded on first use, given up by the budget, no thread a project."""
    threads = threading.active_count()
    most_loaded = 0
    for project in PROJECTS:
        found = ask(store, project, seed=1, terms=("tide", project))
        assert ids(found) == set(memory_ids(project))
        assert found.searched == 5
        assert (found.keyword > 0).all()
        status = store.status()
        assert status.loaded_bytes <= BUDGET_BYTES
        most_loaded = max(most_loaded, status.loaded_project_count)
    assert 1 < most_loaded < len(PROJECTS) // 2
    assert threading.active_count() <= threads + _THREADS_OF_A_STORE
    assert store.status().project_count == len(PROJECTS)


def calls_of(work: Callable[[], object]) -> int:
    """Number of functions that this thread calls meanwhile; the garbage collector, which calls some, waits."""
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    gc.disable()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
        gc.enable()
    return calls


def test_a_read_or_a_write_does_no_more_among_many_projects_in_memory_than_among_few(directory: Path) -> None:
    """DESIGN 4."""
    limits = replace(DEFAULT_LIMITS, small_views_share=1.0)
    with opened(directory, limits=limits, memory_budget_bytes=64 * MIB) as store:
        work = {
            "read": lambda: store.views.view(PROJECTS[0]),
            "first read": lambda: store.views.view(PROJECTS[store.status().loaded_project_count + 1]),
            "write": lambda: store.views.publish({PROJECTS[0]: (1, 2)}),
            "status": store.views.usage,
        }
        for project in PROJECTS[:10]:
            store.views.view(project)
        among_few = {name: calls_of(each) for name, each in work.items()}
        for project in PROJECTS[:1500]:
            store.views.view(project)
        assert {name: calls_of(each) for name, each in work.items()} == among_few
        assert store.status().loaded_project_count == 1501


def test_words_of_one_of_many_projects_find_nothing_in_another(store: WritableStore) -> None:
    for mine, other in zip(PROJECTS[::100], PROJECTS[1::100], strict=True):
        assert len(ask(store, mine, terms=(other,))) == 0
        assert store.get(mine, [f"of {other}"], 0, full=True) == [None]


def test_writes_to_projects_that_are_not_in_memory_load_none_and_are_seen(tmp_path: Path) -> None:
    chosen = PROJECTS[:20]
    with opened(tmp_path) as store:
        write_all(store, chosen)
    with opened(tmp_path) as store:
        writes = [store.write(project, delete_request(["a", f"of {project}"])) for project in chosen]
        assert {write.result(30).seq for write in writes} == {2}
        assert {store.generation(project).seq for project in chosen} == {2}
        assert store.status().loaded_project_count == 0
        for project in chosen:
            assert ids(ask(store, project, seed=1)) == {"b", "c", f"{project} 的"}
