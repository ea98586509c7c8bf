"""Views of a process that only reads, against those of the one that writes.

The two share an environment here: LMDB forbids a process to open a directory twice, and a read transaction sees the
same in whatever process it begins.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event, current_thread
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hummock.ports.writes import ProjectRemoval
from hummock.store import StoreLimits, WritableStore
from hummock.store.table_store import StoreReads
from hummock.store.views.view import catch_up
from hummock.store.views.view_cache import FollowingViews
from tests.ports.asking import ask, ids, put
from tests.store.answering import answers
from tests.store.opening import EAGER, MIB, opened
from tests.strategies import Entry, delete_request, entries


def test_a_removed_project_and_the_next_of_its_name_are_told_apart(tmp_path: Path) -> None:
    """A store that only reads notices it at the next read, with a view of the old one in its memory or without."""
    removal = ProjectRemoval(request_id="", fingerprint=b"")
    with opened(tmp_path) as store, beside(store) as (reads, following):
        for round_ in range(4):
            put(store, "p", Entry(id=f"m{round_}", words=("tide",)))
            assert ids(ask(reads, terms=["tide"])) == {f"m{round_}"}
            store.remove_project("p", removal).result(30)
            if round_ % 2:
                assert ids(ask(reads, terms=["tide"])) == set()
                assert reads.generation("p").seq == 0
                assert reads.read_at_once("p", lambda project: project.seq) is None
                assert following.usage()[0] == 0


@contextmanager
def beside(
    store: WritableStore, budget_bytes: int = 64 * MIB, limits: StoreLimits = EAGER
) -> Iterator[tuple[StoreReads, FollowingViews]]:
    following = FollowingViews(store._projects, budget_bytes, limits)
    try:
        yield StoreReads(store._engine, store._projects, following), following
    finally:
        following.close()


@pytest.mark.long
@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    st.lists(
        st.one_of(
            entries("abcdefgh"),
            st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=4),
            st.just("read"),
            st.just("keep up"),
        ),
        max_size=30,
    )
)
def test_a_reader_answers_as_the_writer_does_at_every_moment(history: list[Entry | list[str] | str]) -> None:
    """S4-44: views that lag by few writes, by more than are kept, and by none."""
    with tempfile.TemporaryDirectory() as name, opened(Path(name)) as store, beside(store) as (reads, following):
        for step in history:
            if isinstance(step, Entry):
                put(store, "p", step)
            elif isinstance(step, list):
                store.write("p", delete_request(step)).result(30)
            elif step == "keep up":
                following.keep_up()
            else:
                assert answers(reads) == answers(store)
                assert reads.generation("p") == store.generation("p")
        assert answers(reads) == answers(store)


def test_a_reader_sees_what_has_been_committed_and_not_only_what_the_writer_shows(tmp_path: Path) -> None:
    with opened(tmp_path) as store, beside(store) as (reads, following):
        assert reads.generation("p").seq == 0
        for number in range(1, 9):
            put(store, "p", Entry(id=f"m{number}"))
            assert reads.generation("p").seq == number
            assert len(answers(reads)) == number
        assert [following.loaded_view(project) is not None for project in ("p", "other")] == [True, False]


def test_those_used_last_are_brought_up_to_date_and_no_others(tmp_path: Path) -> None:
    with opened(tmp_path) as store, beside(store) as (reads, following):
        for project in ("first", "second", "third"):
            put(store, project, Entry(id="m"))
            answers(reads, project)
        answers(reads, "first")
        assert following.used_last(2) == ["third", "first"]
        assert following.used_last(9) == ["second", "third", "first"]


def test_who_waits_for_a_load_sees_what_was_written_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """S2-03: another reader loads the project, in a transaction of before the write."""
    with opened(tmp_path) as store, beside(store) as (reads, following):
        put(store, "p", Entry(id="before"))
        has_read, may_show = Event(), Event()

        def held(*arguments: Any) -> Any:
            view = catch_up(*arguments)
            if current_thread().name.startswith("slow"):
                has_read.set()
                assert may_show.wait(30)
            return view

        monkeypatch.setattr("hummock.store.views.view_cache.catch_up", held)
        with ThreadPoolExecutor(1, "slow") as slow, ThreadPoolExecutor(1, "later") as later:
            loading = slow.submit(answers, reads)
            assert has_read.wait(30)
            put(store, "p", Entry(id="acknowledged"))
            waiting = later.submit(answers, reads)
            # It stands before the load, or will; either way it began after the write.
            may_show.set()
            assert set(waiting.result(30)) == {"before", "acknowledged"}
            assert "before" in loading.result(30)
        assert following.used_last(1) == ["p"]
