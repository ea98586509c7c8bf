"""Views in memory against the truth on disk."""

from __future__ import annotations

import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import lmdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from hummock.core.candidates import GroupQuery
from hummock.core.errors import Unavailable
from hummock.core.memory import Filter, MemoryKind
from hummock.store import DEFAULT_LIMITS, StoreLimits, WritableStore
from hummock.store.growing import Growing
from hummock.store.tables import keys
from hummock.store.views.view import ProjectView
from tests.ports.asking import ask, gather, ids, put
from tests.snapshots import at
from tests.store.answering import answers, rebuild
from tests.store.opening import EAGER, MIB, opened
from tests.strategies import Entry, delete_request, domain, entries, fragment
from tests.sure import sure

SINCE_EVER = Filter(created_after=0.0)
"""All pass; it is asked of a view."""


@pytest.mark.long
@settings(max_examples=15, deadline=None, derandomize=True)
@given(
    first=st.lists(entries("abcdefgh"), min_size=1, max_size=12),
    removed=st.lists(st.sampled_from("abcdefgh"), max_size=4),
    then=st.lists(entries("abcdefgh"), max_size=4),
)
def test_scores_are_the_same_bits_after_a_restart_and_after_rebuilds(
    first: list[Entry], removed: list[str], then: list[Entry]
) -> None:
    """S4-44."""
    seen = []
    for limits in (DEFAULT_LIMITS, EAGER):
        with tempfile.TemporaryDirectory() as name:
            with opened(Path(name), limits=limits) as store:
                put(store, "p", *first)
                answers(store)
                store.write("p", delete_request(removed)).result(30)
                for entry in then:
                    put(store, "p", entry)
                seen.append(answers(store))
                rebuild(store)
                seen.append(answers(store))
            with opened(Path(name), limits=limits) as store:
                seen.append(answers(store))
    assert all(each == seen[0] for each in seen)


def test_a_view_never_changes(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        put(store, "p", *(Entry(id=f"m{number}", seeds=(number, number + 1)) for number in range(3)))
        view = sure(store.views.view("p"))
        terms = np.arange(40, dtype=np.uint32)

        def parts() -> list[NDArray[Any]]:
            return [view.vectors.values, view.columns.alive, view.postings.df.at(terms)]

        before = [part.copy() for part in parts()]
        put(store, "p", *(Entry(id=f"m{number}") for number in range(2, 9)))
        store.write("p", delete_request(["m0", "m1"])).result(30)
        assert all(np.array_equal(one, other) for one, other in zip(before, parts(), strict=True))
        assert (view.seq, view.columns.live, view.columns.ids[:3]) == (1, 3, ["m0", "m1", "m2"])


def test_the_dead_leave_memory(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        put(store, "p", *(Entry(id=f"m{number}", seeds=(1, 2)) for number in range(10)))
        ask(store, seed=1)
        store.write("p", delete_request([f"m{number}" for number in range(8)])).result(30)
        rebuild(store)
        view = sure(store.views.view("p"))
        assert (len(view.columns), view.row_doc.size, view.postings.delta) == (2, 4, 0)
        assert view.columns.ids == ["m8", "m9"]
        assert ids(ask(store, seed=1, terms=["tide"])) == {"m8", "m9"}


def test_removing_everything_leaves_an_empty_project(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        put(store, "p", *(Entry(id=f"m{number}") for number in range(5)))
        ask(store, seed=1)
        store.write("p", delete_request([f"m{number}" for number in range(5)])).result(30)
        assert len(ask(store, seed=1, terms=["tide"])) == 0
        put(store, "p", Entry(id="new"))
        assert ids(ask(store, seed=1, terms=["tide"])) == {"new"}
    with opened(tmp_path) as store:
        assert ids(ask(store, seed=1, terms=["tide"])) == {"new"}


@pytest.mark.long
def test_readers_beside_a_writer_always_see_whole_writes(tmp_path: Path) -> None:
    """A batch is all or nothing, in memory too."""
    with opened(tmp_path) as store, ThreadPoolExecutor(3) as threads:
        put(store, "p", Entry(id="x", words=("0",)), Entry(id="y", words=("0",)))
        done = Event()

        def read() -> int:
            seen = 0
            while not done.is_set():
                found = ask(store, seed=1)
                loaded = store.load("p", found.rows["doc"].tolist(), full=True)
                contents = {memory.payload.content for memory in loaded if memory and memory.payload}
                assert set(found.memory_id) == {"x", "y"}
                assert len(contents) <= 1
                seen += 1
            return seen

        readers = [threads.submit(read) for _ in range(2)]
        for number in range(60):
            put(store, "p", Entry(id="x", words=(str(number),)), Entry(id="y", words=(str(number),)))
        done.set()
        assert all(reader.result(30) > 0 for reader in readers)


def test_a_memory_whose_parts_do_not_fit_is_left_out_rather_than_misread(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        put(store, "p", Entry(id="a", seeds=(1, 2)), Entry(id="c"))
        put(store, "q", Entry(id="b"))
        with store._engine.writing() as txn:
            txn.delete(keys.chunk_key(1, 1, 1, 0), db=store._tables.vector)
        assert ids(ask(store, "p", seed=1)) == {"c"}
        assert at(store, "p").damaged() == 1
        assert ids(ask(store, "q", seed=1)) == {"b"}


@pytest.mark.long
def test_operations_and_requests_do_not_pile_up(tmp_path: Path) -> None:
    with opened(tmp_path, limits=StoreLimits(ops_kept=5, trimmed_entries=4)) as store:
        for number in range(40):
            batch = [Entry(id=f"m{each}", words=(str(number),)) for each in range(6)]
            put(store, "p", *batch)
        with store._engine.reading() as txn:
            assert store._engine.count(txn, store._tables.ops) <= 6 * 12 * 2


def test_every_key_begins_with_its_project(tmp_path: Path) -> None:
    """S0-06: isolation is structural."""
    with opened(tmp_path, map_bytes=64 * MIB) as store:
        put(store, "p", Entry(id="a", tags=("java",), session_id="s1"))
        put(store, "q", Entry(id="a", tags=("java",), session_id="s1"))
    with lmdb.open(str(tmp_path), readonly=True, lock=False, max_dbs=64) as env:
        for name in env.dbs():
            # What is indexed in two projects is embedded once: vectors are also found by a text's digest.
            if name in (b"meta", b"project", b"by_digest", b"retired", b"retired_age"):
                continue
            with env.begin() as txn, txn.cursor(env.open_db(name, txn=txn, create=False)) as cursor:
                owners = [key[:4] for key in cursor.iternext(keys=True, values=False)]
                half = len(owners) // 2
                assert owners == [keys.project_prefix(1)] * half + [keys.project_prefix(2)] * half


def test_a_page_of_a_filter_that_nothing_passes_is_the_last(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        put(store, "p", Entry(id="a"))
        page = store.page("p", Filter(tags=("none",)), 0, 10, full=True)
        assert (page.memories, page.next_after) == ((), None)
        assert store.page("p", Filter(), 0, 0, full=True).memories == ()


def test_a_growing_array_leaves_older_holders_alone() -> None:
    first = Growing.of(np.array([1, 2], np.int32))
    second = first.extended(np.array([3]))
    third = second.extended(np.array([4]))
    assert third.buffer is second.buffer
    assert [each.values.tolist() for each in (first, second, third)] == [[1, 2], [1, 2, 3], [1, 2, 3, 4]]


@pytest.mark.long
@settings(max_examples=20, deadline=None, derandomize=True)
@given(
    puts=st.lists(entries("abcdefgh"), max_size=12),
    removed=st.lists(st.sampled_from("abcdefgh"), max_size=4),
    size=st.integers(1, 9),
    newest_first=st.booleans(),
)
def test_pages_of_all_memories_are_those_of_a_filter_that_all_pass(
    puts: list[Entry], removed: list[str], size: int, newest_first: bool
) -> None:
    """The former are read from the table, without a view; neither goes on into another project."""
    with tempfile.TemporaryDirectory() as directory, opened(Path(directory)) as store:
        for project in ("before", "p", "behind"):
            put(store, project, *puts)
        store.write("p", delete_request(removed)).result()
        after: int | None = 0
        while after is not None:
            pages = [
                store.page("p", where, after, size, full=True, newest_first=newest_first)
                for where in (Filter(), SINCE_EVER)
            ]
            assert pages[0] == pages[1]
            after = pages[0].next_after


def edit_behind_the_next_view(store: WritableStore, patch: pytest.MonkeyPatch, entry: Entry) -> None:
    """Puts an entry after the next read has taken its view, and before it looks into the tables."""
    find_view, edits = store.views.view, iter([entry])

    def view_before_an_edit(project: str) -> ProjectView | None:
        found = find_view(project)
        for edit in edits:
            put(store, project, edit)
        return found

    patch.setattr(store.views, "view", view_before_an_edit)


def test_a_memory_that_is_edited_while_a_page_is_read_is_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The memory was there before, during and after: the list must not end without it."""
    with opened(tmp_path) as store:
        put(store, "p", *(Entry(id=f"m{number}") for number in range(3)))
        edit_behind_the_next_view(store, monkeypatch, Entry(id="m1", words=("core",)))
        page = store.page("p", SINCE_EVER, 0, 10, full=True)
        assert [memory.id for memory in page.memories] == ["m0", "m2", "m1"]
        assert page.next_after is None


def test_a_domain_that_is_edited_while_it_is_looked_up_still_pulls_its_key_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S0-10."""
    with opened(tmp_path) as store:
        known = domain("d", ("还款",), ("A.java",))
        put(store, "p", known, fragment("f", "src/A.java"))
        edit_behind_the_next_view(store, monkeypatch, replace(known, seeds=(2,)))
        domains = GroupQuery(name="domains", filter=Filter(), domain_names=frozenset({"还款"}))
        code = GroupQuery(name="code", filter=Filter(kinds=frozenset({MemoryKind.CODE_FRAGMENT})), with_key_files=True)
        groups = gather(store, "p", domains, code).groups
        assert [group.memory_id for group in groups] == [("d",), ("f",)]


def test_a_read_that_is_overtaken_by_writes_for_ever_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path) as store:
        put(store, "p", Entry(id="a"))
        stale = store.views.view("p")
        put(store, "p", Entry(id="a", words=("core",)))
        monkeypatch.setattr(store.views, "view", lambda project: stale)
        with pytest.raises(Unavailable, match="try again"):
            store.page("p", SINCE_EVER, 0, 10, full=True)
