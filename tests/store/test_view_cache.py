"""Projects in memory: loaded, given up, rebuilt, while others write."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hummock.core.settings import ProjectSettings, TimeSettings
from hummock.store import StoreLimits, WritableStore
from hummock.store.limits import DEFAULT_LIMITS
from hummock.store.views import view_cache
from hummock.store.views.view import ProjectView, catch_up, load, rebuilt
from tests.ports.asking import ask, ids, put
from tests.store.answering import answers, rebuild
from tests.store.opening import EAGER, opened
from tests.strategies import Entry, delete_request, write_request
from tests.sure import sure

OTHER_SETTINGS = ProjectSettings(times=TimeSettings(zone="Asia/Shanghai"))


def held_up(monkeypatch: pytest.MonkeyPatch, step: Callable[..., ProjectView]) -> tuple[Event, Event]:
    """Views stop when they were made by a step, until the second event; the first says that one has come so far."""
    made_one, go_on = Event(), Event()

    def held(*given: object) -> ProjectView:
        made = step(*given)
        made_one.set()
        assert go_on.wait(30)
        return made

    monkeypatch.setattr(view_cache, step.__name__, held)
    return made_one, go_on


@pytest.fixture
def store(tmp_path: Path) -> Iterator[WritableStore]:
    """A store whose one memory has been read."""
    with opened(tmp_path) as store:
        put(store, "p", Entry(id="a"))
        ask(store, seed=1)
        yield store


def test_a_tiny_memory_budget_changes_no_answer(tmp_path: Path) -> None:
    with opened(tmp_path, memory_budget_bytes=1) as store:
        for project in ("p", "q", "r"):
            put(store, project, Entry(id=f"of {project}", words=("tide", project)))
        for _ in range(2):
            for project in ("p", "q", "r"):
                assert ids(ask(store, project, seed=1, terms=["tide"])) == {f"of {project}"}
                assert store.status().loaded_project_count == 1


def test_what_is_given_up_for_want_of_room_is_counted(tmp_path: Path) -> None:
    with opened(tmp_path, memory_budget_bytes=1) as store:
        for project in ("p", "q", "r"):
            put(store, project, Entry(id="a"))
            ask(store, project, seed=1)
        assert store.views.usage() == (1, store.status().loaded_bytes)
        assert store.views.evicted() == 2


def test_how_far_a_view_is_behind_is_told(store: WritableStore) -> None:
    views = store.views
    views.publish({"p": (5, 6)})
    assert store.views.lag() == 5
    views.newer_view("p")
    assert store.views.lag() == 0


def test_a_view_follows_a_write_that_changes_nothing_without_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path) as store:
        seq = put(store, "p", Entry(id="a", words=("tide",)))
        ask(store, "p", seed=1)
        with monkeypatch.context() as patched:
            patched.setattr(view_cache, "catch_up", None)
            for _ in range(2):
                seq += 1
                assert store.write("p", write_request(lambda work: None)).result(30).seq == seq
                assert store.read("p", lambda snapshot: snapshot.seq) == seq
            assert ids(ask(store, "p", seed=1, terms=["tide"])) == {"a"}
        put(store, "p", Entry(id="b", words=("tide",)))
        assert ids(ask(store, "p", seed=1, terms=["tide"])) == {"a", "b"}
        store.write("p", write_request(lambda work: work.set_settings(OTHER_SETTINGS))).result(30)
        assert store.read("p", lambda snapshot: snapshot.settings) == OTHER_SETTINGS


def test_the_project_used_longest_ago_is_given_up_first(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        for project in ("p", "q", "r"):
            put(store, project, Entry(id="a"))
            ask(store, project, seed=1)
        each = store.status().loaded_bytes // 3
    with opened(tmp_path, memory_budget_bytes=2 * each + each // 2) as store:
        for project in ("p", "q", "p", "r"):
            ask(store, project, seed=1)
        loaded = store.views._entries
        assert {name for name, entry in loaded.items() if entry.view is not None} == {"p", "r"}


def test_small_projects_leave_memory_to_large_ones(tmp_path: Path) -> None:
    """DESIGN 4: what is loaded again in milliseconds is given up before what takes a second."""
    large = [Entry(id=str(number), seeds=(number,)) for number in range(60)]
    with opened(tmp_path) as store:
        put(store, "large", *large)
        ask(store, "large", seed=1)
        large_bytes = store.status().loaded_bytes
        for project in "pqr":
            put(store, project, Entry(id="a"))
            ask(store, project, seed=1)
        each = (store.status().loaded_bytes - large_bytes) // 3
    budget_bytes = 4 * large_bytes
    limits = replace(EAGER, small_view_bytes=2 * each, small_views_share=2.5 * each / budget_bytes)
    with opened(tmp_path, memory_budget_bytes=budget_bytes, limits=limits) as store:
        for project in ("large", "p", "q", "p", "r"):
            ask(store, project, seed=1)
        shown = {name for name, entry in store.views._entries.items() if entry.view is not None}
        assert shown == {"large", "p", "r"}
        # One that has grown leaves its share to others.
        put(store, "p", *large)
        ask(store, "p", seed=1)
        ask(store, "q", seed=1)
        assert store.status().loaded_project_count == 4


def test_a_view_in_use_outlives_its_eviction(tmp_path: Path) -> None:
    with opened(tmp_path, memory_budget_bytes=1) as store:
        put(store, "p", Entry(id="a"))
        put(store, "q", Entry(id="b"))
        view = store.views.view("p")
        ask(store, "q", seed=1)
        assert view is not None
        assert view.columns.ids == ["a"]


def test_a_project_is_never_loaded_while_the_writer_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After so many writes during the load that their operations are dropped, it is loaded again, alongside them."""
    with opened(tmp_path, limits=StoreLimits(ops_kept=2, trimmed_entries=64)) as store:
        put(store, "p", Entry(id="a"))
        waits = []

        def loaded_then_outdated(*arguments: Any) -> ProjectView:
            waits.append(store.views._entries["p"].changing.locked())
            view = load(*arguments)
            if len(waits) == 1:
                for number in range(6):
                    put(store, "p", Entry(id=f"m{number}", words=("tide",)))
            return view

        monkeypatch.setattr(view_cache, "load", loaded_then_outdated)
        assert len(ids(ask(store, "p", terms=["tide"]))) == 7
        assert waits == [False, False]


def test_writes_during_a_load_are_in_the_view(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Acknowledged = recallable by the next call, whoever is loading meanwhile."""
    with opened(tmp_path) as store:
        put(store, "p", Entry(id="a"))
        loading, go_on = held_up(monkeypatch, load)
        with ThreadPoolExecutor(2) as threads:
            reading = threads.submit(ask, store, seed=1)
            assert loading.wait(30)
            put(store, "p", Entry(id="b"))
            store.write("p", delete_request(["a"])).result(30)
            go_on.set()
            assert ids(reading.result(30)) == {"b"}
        assert ids(ask(store, seed=1, min_seq=3)) == {"b"}


def test_a_load_that_lags_behind_the_kept_operations_is_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path, limits=StoreLimits(ops_kept=2, trimmed_entries=100)) as store:
        put(store, "p", Entry(id="a"))
        has_lagged: list[bool] = []

        def lagging_load(*arguments: Any) -> ProjectView:
            loaded = load(*arguments)
            if not has_lagged:
                has_lagged.append(True)
                writer = Thread(target=lambda: [put(store, "p", Entry(id=f"m{number}")) for number in range(6)])
                writer.start()
                writer.join(30)
            return loaded

        monkeypatch.setattr(view_cache, "load", lagging_load)
        assert ids(ask(store, seed=1)) == {"a", *(f"m{number}" for number in range(6))}


def test_writes_during_a_rebuild_are_in_the_view(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path) as store:
        put(store, "p", Entry(id="a"), Entry(id="b"))
        ask(store, seed=1)
        rebuilding, go_on = held_up(monkeypatch, rebuilt)
        put(store, "p", *(Entry(id=f"m{number}") for number in range(4)))
        assert rebuilding.wait(30)
        put(store, "p", Entry(id="gone"), Entry(id="a", words=("core",)))
        store.write("p", delete_request(["gone", "m0"])).result(30)
        before = answers(store)
        go_on.set()
        rebuild(store)
        assert sure(store.views.view("p")).postings.base == 6
        assert answers(store) == before
        assert set(before) == {"a", "b", "m1", "m2", "m3"}


def test_a_rebuild_that_fails_changes_nothing(
    store: WritableStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:

    def broken(*arguments: object) -> ProjectView:
        raise MemoryError

    monkeypatch.setattr(view_cache, "rebuilt", broken)
    put(store, "p", *(Entry(id=f"m{number}") for number in range(4)))
    rebuild(store)
    assert len(ask(store, seed=1)) == 5
    assert "could not be rebuilt" in caplog.text


def test_one_project_is_loaded_once_however_many_ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path) as store:
        put(store, "p", Entry(id="a"))
        loads: list[ProjectView] = []

        def counted_load(*arguments: Any) -> ProjectView:
            loads.append(load(*arguments))
            return loads[-1]

        monkeypatch.setattr(view_cache, "load", counted_load)
        with ThreadPoolExecutor(8) as threads:
            found = list(threads.map(lambda _: ids(ask(store, seed=1)), range(32)))
        assert found == [{"a"}] * 32
        assert len(loads) == 1


def test_a_view_that_cannot_follow_is_loaded_anew(
    store: WritableStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(store._writer, "_idle", lambda: False)
    failures = iter([MemoryError()])

    def broken_once(*arguments: Any) -> ProjectView:
        for failure in failures:
            raise failure
        return catch_up(*arguments)

    monkeypatch.setattr(view_cache, "catch_up", broken_once)
    seq = put(store, "p", Entry(id="b"))
    assert ids(ask(store, seed=1, min_seq=seq)) == {"a", "b"}
    assert "loaded anew" in caplog.text
    assert "tide" not in caplog.text


def test_writes_that_nobody_reads_add_up_and_the_next_read_sees_them_all(
    store: WritableStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store._writer, "_idle", lambda: False)
    monkeypatch.setattr(view_cache, "_MOST_BEHIND", 4)
    changes: list[int] = []

    def noted(view: ProjectView, *arguments: Any) -> ProjectView:
        newer = catch_up(view, *arguments)
        changes.append(newer.seq - view.seq)
        return newer

    monkeypatch.setattr(view_cache, "catch_up", noted)
    for number in range(10):
        seq = put(store, "p", Entry(id=f"m{number}"))
    assert changes == [4, 4]
    assert len(ids(ask(store, seed=1, min_seq=seq))) == 11
    assert changes == [4, 4, 2]


def test_a_reader_beside_one_that_catches_up_sees_what_was_acknowledged(
    store: WritableStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store._writer, "_idle", lambda: False)
    put(store, "p", Entry(id="b"))
    catching_up, go_on = held_up(monkeypatch, catch_up)
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(ask, store, seed=1)
        assert catching_up.wait(30)
        second = threads.submit(ask, store, seed=1)
        go_on.set()
        assert ids(first.result(30)) == ids(second.result(30)) == {"a", "b"}


@pytest.mark.long
@settings(max_examples=15, deadline=None, derandomize=True)
@given(
    sizes=st.lists(st.integers(1, 12), min_size=5, max_size=5),
    steps=st.lists(st.tuples(st.sampled_from("pqrst"), st.booleans()), max_size=30),
    share=st.sampled_from([0.3, 0.6]),
)
def test_memory_stays_within_the_budget_and_every_answer_is_that_of_unlimited_memory(
    sizes: list[int], steps: list[tuple[str, bool]], share: float
) -> None:
    """DESIGN 4: only the project that was used last may be larger than the budget."""
    with tempfile.TemporaryDirectory() as place, tempfile.TemporaryDirectory() as other:
        with opened(Path(place)) as store:
            for project, size in zip("pqrst", sizes, strict=True):
                put(store, project, *(Entry(id=f"{project}{number}", seeds=(number,)) for number in range(size)))
                ask(store, project, seed=1)
            budget_bytes = int(share * store.status().loaded_bytes)
        shutil.copytree(place, other, dirs_exist_ok=True)
        with opened(Path(place), memory_budget_bytes=budget_bytes) as store, opened(Path(other)) as unlimited:
            for number, (project, is_write) in enumerate(steps):
                for each in (store, unlimited):
                    if is_write:
                        put(each, project, Entry(id=f"new{number}", seeds=(number,)))
                assert is_write or answers(store, project) == answers(unlimited, project)
                status = store.status()
                assert status.loaded_bytes <= budget_bytes or status.loaded_project_count == 1
                # The writer, when idle, and a rebuild may show a newer view at any time.
                with store.views._lock:
                    shown = [entry.view for entry in store.views._entries.values()]
                    assert store.views._recent.used_bytes == sum(view.nbytes for view in shown if view is not None)


def test_a_view_that_was_loaded_anew_during_a_rebuild_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rebuilt view shares arrays with the one that has been given up."""
    with opened(tmp_path, memory_budget_bytes=1) as store:
        put(store, "p", Entry(id="a"))
        put(store, "q", Entry(id="b"))
        ask(store, "p", seed=1)
        rebuilding, go_on = held_up(monkeypatch, rebuilt)
        put(store, "p", *(Entry(id=f"m{number}") for number in range(4)))
        assert rebuilding.wait(30)
        ask(store, "q", seed=1)
        put(store, "p", Entry(id="late"))
        ask(store, "p", seed=1)
        anew = store.views.view("p")
        go_on.set()
        rebuild(store)
        assert store.views.view("p") is anew
        assert ids(ask(store, "p", seed=1)) == {"a", "late", *(f"m{number}" for number in range(4))}


def test_an_index_made_in_the_background_copies_no_vectors(store: WritableStore) -> None:
    """Readers and writers would wait for it, and memory would hold them twice."""
    put(store, "p", *(Entry(id=f"m{number}") for number in range(4)))
    before = store.views.view("p")
    rebuild(store)
    after = sure(store.views.view("p"))
    assert before is not None
    assert (after.postings.base, after.postings.delta) == (5, 0)
    assert after.vectors.buffer is before.vectors.buffer


@pytest.mark.long
def test_the_words_of_a_small_project_are_indexed_too(tmp_path: Path) -> None:
    """Each search looks through all that stands outside the index."""
    with opened(tmp_path, limits=DEFAULT_LIMITS) as store:
        found = []
        for begin, end in ((0, 200), (200, 300), (300, 500), (500, 600)):
            put(store, "p", *(Entry(id=f"m{number}") for number in range(begin, end)))
            ask(store, seed=1)
            rebuild(store)
            view = sure(store.views.view("p"))
            found.append((view.postings.base, view.postings.delta))
        assert found == [(0, 200), (300, 0), (300, 200), (600, 0)]
    with opened(tmp_path, limits=DEFAULT_LIMITS) as store:
        ask(store, seed=1)
        view = sure(store.views.view("p"))
        assert (view.postings.base, view.postings.delta) == (600, 0)


@pytest.mark.parametrize(("inside", "outside"), [(0, 256), (1024, 256), (2000, 500), (8000, 2000), (1_000_000, 2000)])
def test_the_smaller_an_index_the_fewer_stand_outside(inside: int, outside: int) -> None:
    assert DEFAULT_LIMITS.most_outside(inside) == outside


def test_a_project_that_is_larger_than_the_budget_stays_while_it_is_the_last_one_read(tmp_path: Path) -> None:
    """Were it given up at each write, each read in between would load all of it."""
    with opened(tmp_path, memory_budget_bytes=1) as store:
        put(store, "p", Entry(id="a"))
        ask(store, "p", seed=1)
        view = store.views.view("p")
        put(store, "q", Entry(id="b"))
        assert store.views.view("p") is view
        put(store, "p", Entry(id="c"))
        assert store.status().loaded_project_count == 1
        assert ids(ask(store, "p", seed=1)) == {"a", "c"}
