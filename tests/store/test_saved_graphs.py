"""Graphs of projects that a file holds as well: the same answers after a start, or none of the file's."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from hummock.core.project import GraphReport, GraphState
from hummock.core.settings import IndexPolicy
from hummock.ports.writes import ProjectRemoval
from hummock.store import WritableStore
from hummock.store.limits import PlanLimits
from hummock.store.lmdb.opening import open_reads
from hummock.store.lmdb.saved_views import SAVED_VIEWS
from hummock.store.search.graph_builder import FEWEST_QUESTIONS, GraphBuilder
from hummock.store.upkeep import purge
from hummock.store.views import row_graph
from hummock.store.views.view import ProjectView
from tests.fakes import FakeClock
from tests.ports.asking import ask, put
from tests.store.damage import cut, empty, replace_by_pipe
from tests.store.opening import EAGER, opened
from tests.strategies import SPACE, Entry, delete_request
from tests.sure import sure

pytest.importorskip("hnswlib", reason="hnswlib is not installed: the extra `graph` needs a C++ compiler")
pytestmark = [pytest.mark.long, pytest.mark.timed]

LIMITS = replace(EAGER, ops_kept=1024, dead_docs=50, plans=PlanLimits(sign_rows=4, exact_rows=2))
MEMORIES = 150


@contextmanager
def graphed(directory: Path) -> Iterator[WritableStore]:
    """A store that builds a graph of every project."""
    with opened(directory, limits=LIMITS, index=IndexPolicy.GRAPH) as store:
        yield store


def put_pairs(store: WritableStore, prefix: str, count: int, first: int = 0) -> None:
    """Writes memories of two vectors each, one after the other."""
    for number in range(count):
        put(store, "p", Entry(id=f"{prefix}{number}", seeds=(number + first, number + 1)))


def builder_of(store: WritableStore) -> GraphBuilder:
    builder = store.views._graphs
    assert isinstance(builder, GraphBuilder)
    return builder


def view_of(store: WritableStore) -> ProjectView:
    return sure(store.views.view("p"))


def ask_enough(store: WritableStore, questions: int = FEWEST_QUESTIONS) -> GraphReport:
    """Ask so many questions, and wait for what they begin."""
    for number in range(questions):
        ask(store, seed=number % 7)
        builder_of(store)._builds.submit(int).result(30)
    return sure(store.graph("p"))


def found(store: WritableStore) -> tuple[list[str], bool]:
    """What a question finds, and whether a graph found it."""
    candidates = ask(store, seed=3, pool=20)
    return sorted(candidates.memory_id), candidates.graph_recall is not None


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A directory with a graph, closed."""
    with graphed(tmp_path) as store:
        put_pairs(store, "m", MEMORIES)
        report = ask_enough(store)
        assert (report.state, report.rows) == (GraphState.KEPT, 2 * MEMORIES)
        assert found(store)[1]
    return tmp_path


def files_of(directory: Path) -> list[Path]:
    return sorted((directory / SAVED_VIEWS).glob("1.graph*"))


class Builds:
    """Graphs that were built, not loaded."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        built = row_graph.RowGraph.built

        def counted(*given: object) -> object:
            self.count += 1
            return built(*given)  # type: ignore[arg-type] # as they are given

        monkeypatch.setattr(row_graph.RowGraph, "built", counted)


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> Builds:
    return Builds(monkeypatch)


def test_a_saved_graph_is_for_its_owner_alone_and_answers_after_a_start_as_before(saved: Path, builds: Builds) -> None:
    head, body = files_of(saved)[::-1]
    assert head.name == "1.graph.head"
    assert body.name.startswith("1.graph-")
    assert {path.stat().st_mode & 0o777 for path in (head, body)} == {0o600}
    with opened(saved, limits=LIMITS) as store:
        expected = found(store)[0]
    with graphed(saved) as store:
        ask_enough(store, questions=1)
        assert found(store) == (expected, True)
        assert sure(store.graph("p")).state is GraphState.KEPT
    assert builds.count == 0


def test_writes_behind_a_graph_are_found_and_removed_memories_are_not(saved: Path, builds: Builds) -> None:
    with graphed(saved) as store:
        ask_enough(store, questions=1)
        put(store, "p", Entry(id="new", seeds=(3,)))
        store.write("p", delete_request(["m3"])).result(30)
        ids, by_graph = found(store)
        assert by_graph
        assert "new" in ids
        assert "m3" not in ids
    assert builds.count == 0


def test_a_graph_is_built_again_once_a_tenth_has_been_written_behind_it(saved: Path, builds: Builds) -> None:
    with graphed(saved) as store:
        ask_enough(store, questions=1)
        put_pairs(store, "n", MEMORIES // 10 + 1)
        assert found(store)[1]
        report = ask_enough(store)
        assert report.rows == 2 * (MEMORIES + MEMORIES // 10 + 1)
        assert found(store)[1]
    assert builds.count == 1
    assert len(files_of(saved)) == 2


def test_no_damage_of_a_graph_is_overlooked(saved: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Bits of both files, each alone, before hnswlib reads any of them."""
    random = Random(14)  # noqa: S311 - a seed, not a secret
    with graphed(saved) as store:
        ask(store, seed=1)
        files, view = sure(builder_of(store)._saved), view_of(store)
        builder_of(store)._builds.submit(int).result(30)
        assert files.graph(view) is not None
        for path in files_of(saved):
            content = path.read_bytes()
            for at in random.sample(range(len(content)), 100):
                path.write_bytes(content[:at] + bytes([content[at] ^ 1 << random.randrange(8)]) + content[at + 1 :])
                assert files.graph(view) is None
            path.write_bytes(content)
        assert files.graph(view) is not None
    assert "is damaged; it is built again" in caplog.text


def _replace_by_link(path: Path) -> None:
    elsewhere = path.with_name("elsewhere")
    path.rename(elsewhere)
    path.symlink_to(elsewhere)


@pytest.mark.parametrize("which", [0, 1], ids=["body", "head"])
@pytest.mark.parametrize("harm", [cut, empty, Path.unlink, replace_by_pipe, _replace_by_link])
def test_a_file_that_is_none_is_built_again(
    saved: Path, builds: Builds, which: int, harm: Callable[[Path], None]
) -> None:
    with opened(saved, limits=LIMITS) as store:
        expected = found(store)[0]
    harm(files_of(saved)[which])
    with graphed(saved) as store:
        assert found(store) == (expected, False)
        assert ask_enough(store).state is GraphState.KEPT
        assert found(store) == (expected, True)
    assert builds.count == 1
    with graphed(saved) as store:
        ask_enough(store, questions=1)
        assert found(store) == (expected, True)
    assert builds.count == 1


def test_a_graph_of_other_rows_is_not_read(saved: Path, tmp_path: Path, builds: Builds) -> None:
    """A data file that was put in the place of another brings its own graph or none."""
    other = tmp_path / "other"
    with graphed(other) as store:
        put_pairs(store, "m", MEMORIES, first=2)
    shutil.copytree(saved / SAVED_VIEWS, other / SAVED_VIEWS, dirs_exist_ok=True)
    with graphed(other) as store:
        ask_enough(store, questions=1)
        assert not found(store)[1]
    assert builds.count == 0


def test_what_a_process_that_was_killed_while_it_saved_has_left_is_removed(saved: Path) -> None:
    (saved / SAVED_VIEWS / "1.graph.part").write_bytes(b"half")
    (saved / SAVED_VIEWS / "7.graph-0123456789abcdef").write_bytes(b"of a project that is gone")
    with graphed(saved) as store:
        ask_enough(store, questions=1)
        assert found(store)[1]
    assert len(files_of(saved)) == 2
    assert not list((saved / SAVED_VIEWS).glob("7*"))


def test_a_removed_project_and_a_purge_leave_no_graph(saved: Path) -> None:
    purged = saved.with_name("purged")
    shutil.copytree(saved, purged)
    purge(purged, 1e9, lambda done, total: None)
    assert not files_of(purged)
    with graphed(saved) as store:
        store.remove_project("p", ProjectRemoval(request_id="", fingerprint=b"")).result(30)
    with graphed(saved):
        assert not files_of(saved)


def test_a_disk_without_room_keeps_no_graph_and_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with graphed(tmp_path) as store:
        put_pairs(store, "m", MEMORIES)
        monkeypatch.setattr(type(store._engine), "free_disk_bytes", lambda self: 0)
        with caplog.at_level(logging.WARNING):
            assert ask_enough(store).state is GraphState.KEPT
        assert "the disk has no room" in caplog.text
    assert not files_of(tmp_path)


def test_a_reader_has_a_graph_of_its_own(saved: Path, builds: Builds) -> None:
    room = {"map_bytes": 1 << 28, "memory_budget_bytes": 1 << 26}
    reads = open_reads(saved, space=SPACE, clock=FakeClock(), limits=LIMITS, index=IndexPolicy.GRAPH, **room)
    with closing(reads):
        ask(reads, seed=3)
        builder = reads.views._graphs
        assert isinstance(builder, GraphBuilder)
        builder._builds.submit(int).result(30)
        assert ask(reads, seed=3).graph_recall is not None
    assert builds.count == 0
