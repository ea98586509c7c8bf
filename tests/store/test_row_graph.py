"""Graphs of vector rows: what they find beside an exact scan, and when they leave a search to sign bits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from hummock.core.project import GraphState
from hummock.core.settings import IndexPolicy
from hummock.store.growing import SignBits
from hummock.store.limits import PlanLimits
from hummock.store.search import graph_builder
from hummock.store.search.graph_builder import GraphBuilder
from hummock.store.search.nearest import by_graph, nearest
from hummock.store.views.row_graph import GraphSlot, HeldGraph, Projection, RowGraph
from hummock.store.views.view import ProjectView
from tests.store.test_nearest import SIGNS, clustered, exact, small_views, unit, view_of
from tests.sure import sure

pytest.importorskip("hnswlib", reason="hnswlib is not installed: the extra `graph` needs a C++ compiler")

Floats = NDArray[np.float32]

_DIM = 48
_NO_QUESTIONS = np.empty((0, _DIM), np.float32)


def with_graph(view: ProjectView, width: int = 400, questions: Floats = _NO_QUESTIONS) -> ProjectView:
    """The view with a graph of its rows that is held, proven or not."""
    rows = view.vectors.values
    graph = sure(RowGraph.built(rows, Projection.of(rows, questions)))
    slot = GraphSlot(lambda wanted: None)
    slot.held = HeldGraph(graph=graph, lineage=view.lineage, removed=0, width=width, recall=0.99, time_share=0.5)
    return replace(view, graph=slot)


@pytest.fixture(scope="module")
def texts() -> ProjectView:
    """A few thousand memories whose vectors lie as those of texts do, with a graph."""
    return with_graph(view_of(clustered(3000, _DIM, np.random.default_rng(5)), [1] * 3000, SIGNS))


def questions_near(view: ProjectView, number: int, random: np.random.Generator) -> Iterator[Floats]:
    rows = view.vectors.values.view(np.float16).astype(np.float32)
    for row in random.integers(len(rows), size=number):
        noise = random.standard_normal((rows.shape[1],)).astype(np.float32)
        yield unit(rows[row] + np.float32(0.05) * noise)


@pytest.mark.parametrize("passing", [1.0, 0.75, 0.55])
def test_a_graph_finds_what_a_scan_finds(texts: ProjectView, passing: float) -> None:
    random = np.random.default_rng(6)
    allowed = (random.random(len(texts.columns)) < passing).astype(np.uint8)
    shares = []
    for question in questions_near(texts, 40, random):
        found = sure(by_graph(texts, allowed, question, -np.inf, 50))
        assert allowed[found.ordinals].all()
        shares.append(np.isin(exact(texts, allowed, question, -np.inf, 50), found.ordinals).mean())
    assert np.mean(shares) >= 0.99


@given(data=st.data(), minimum=st.sampled_from([-np.inf, 0.0, 2.0]), k=st.integers(-1, 9))
def test_of_a_few_rows_a_graph_finds_all_that_a_scan_does(data: st.DataObject, minimum: float, k: int) -> None:
    """S4-26: equal scores come in the order of their writes, and nothing below the minimum."""
    view, allowed, query = data.draw(small_views(SIGNS))
    if not view.row_doc.size:
        return
    view = with_graph(view, questions=np.empty((0, len(query)), np.float32))
    found = by_graph(view, allowed, query, minimum, k)
    if found is not None:
        assert found.ordinals.tolist() == exact(view, allowed, query, minimum, k)


def test_rows_that_were_appended_are_found_beside_the_graph(texts: ProjectView) -> None:
    random = np.random.default_rng(8)
    more = clustered(500, _DIM, random)
    both = np.concatenate([texts.vectors.values.view(np.float16).astype(np.float32), more])
    grown = replace(view_of(both, [1] * len(both), SIGNS), lineage=texts.lineage, graph=texts.graph)
    allowed = np.ones(len(both), np.uint8)
    shares = []
    for question in unit(more[::20] + 0.02 * random.standard_normal((25, _DIM)).astype(np.float32)):
        found = sure(by_graph(grown, allowed, question, -np.inf, 10))
        shares.append(np.isin(exact(grown, allowed, question, -np.inf, 10), found.ordinals).mean())
    assert np.mean(shares) >= 0.99


@given(rows=st.integers(0, 900), first=st.integers(0, 900), keep=st.integers(0, 50), seed=st.integers(0, 9))
def test_sign_bits_behind_a_row_are_those_of_the_rows_from_it_on(rows: int, first: int, keep: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    halves = random.standard_normal((rows, 7)).astype(np.float16).view(np.uint16)
    row_doc, allowed = np.arange(rows, dtype=np.int32), random.integers(0, 2, rows).astype(np.uint8)
    query = random.standard_normal(7).astype(np.float32)
    first = min(first, rows)
    signs = SignBits.of(halves)
    found = signs.nearest_behind(first, row_doc, allowed, query, rows)
    assert found.tolist() == (first + np.flatnonzero(allowed[first:])).tolist()
    some = signs.nearest_behind(first, row_doc, allowed, query, keep)
    assert len(some) <= keep
    assert np.isin(some, found).all()


def test_removed_memories_are_not_found(texts: ProjectView) -> None:
    question = next(questions_near(texts, 1, np.random.default_rng(9)))
    everything = np.ones(len(texts.columns), np.uint8)
    gone = exact(texts, everything, question, -np.inf, 20)
    allowed = everything.copy()
    allowed[gone] = 0
    found = sure(by_graph(texts, allowed, question, -np.inf, 20))
    assert found.ordinals.tolist() == exact(texts, allowed, question, -np.inf, 20)


def test_a_search_is_left_to_others_where_a_graph_is_not_proven(texts: ProjectView) -> None:
    question = next(questions_near(texts, 1, np.random.default_rng(9)))
    everything = np.ones(len(texts.columns), np.uint8)
    few = everything * (np.arange(len(everything)) % 3 == 0)
    assert by_graph(texts, everything, question, -np.inf, 10) is not None
    assert by_graph(texts, few.astype(np.uint8), question, -np.inf, 10) is None
    assert by_graph(texts, everything, question, -np.inf, 0) is None
    assert by_graph(replace(texts, lineage=object()), everything, question, -np.inf, 10) is None
    assert by_graph(replace(texts, graph=None), everything, question, -np.inf, 10) is None
    small = replace(texts, plans=PlanLimits(sign_rows=1, exact_rows=len(everything)))
    assert by_graph(small, everything, question, -np.inf, 10) is None


def two_halves(number: int, random: np.random.Generator) -> Floats:
    """Unit vectors of two halves that say nothing of each other."""
    both = np.concatenate([clustered(number, 24, random), clustered(number, 24, random)], axis=1)
    return unit(both)


def asked(halves: Floats, first: float) -> Floats:
    """Questions that weigh the halves of such vectors."""
    weights = np.repeat(np.array([first, 1 - first], np.float32), 24)
    return np.asarray(halves * weights * 2, np.float32)


def test_a_graph_answers_questions_that_weigh_the_dims_as_those_that_it_was_built_for() -> None:
    random = np.random.default_rng(4)
    rows, questions = two_halves(2000, random), two_halves(100, random)
    view = with_graph(view_of(rows, [1] * len(rows), SIGNS), questions=asked(questions[:64], 0.9))
    everything = np.ones(len(rows), np.uint8)
    shares = []
    for question in asked(questions[64:], 0.85):
        found = sure(by_graph(view, everything, question, -np.inf, 10))
        shares.append(np.isin(exact(view, everything, question, -np.inf, 10), found.ordinals).mean())
    assert np.mean(shares) >= 0.99
    for question in asked(questions[64:], 0.0):
        assert by_graph(view, everything, question, -np.inf, 10) is None


def test_equal_rows_make_equal_graphs() -> None:
    rows = clustered(500, _DIM, np.random.default_rng(1)).astype(np.float16).view(np.uint16)
    found = []
    for _ in range(2):
        graph = sure(RowGraph.built(rows, Projection.of(rows, _NO_QUESTIONS)))
        found.append([graph.nearest(rows[at].view(np.float16).astype(np.float32), 9).tolist() for at in range(99)])
    assert found[0] == found[1]


def test_rows_that_are_not_finite_spoil_no_search() -> None:
    vectors = clustered(200, _DIM, np.random.default_rng(2))
    vectors[7] = np.nan
    view = with_graph(view_of(vectors, [1] * 200, SIGNS))
    everything = np.ones(200, np.uint8)
    found = sure(by_graph(view, everything, vectors[8], -np.inf, 20))
    assert found.ordinals.tolist() == exact(view, everything, vectors[8], -np.inf, 20)


def costs(by_signs: float, by_a_graph: float) -> Callable[[], float]:
    """A clock of a thread on which searches by sign bits and by a graph take these times, in turns."""
    steps, now = count(), 0.0

    def cost_s() -> float:
        nonlocal now
        now += (0.0, by_signs, by_a_graph)[next(steps) % 3]
        return now

    return cost_s


@pytest.mark.parametrize(
    ("policy", "by_a_graph", "least_recall", "state", "reason"),
    [
        (IndexPolicy.AUTO, 0.5, 0.9, GraphState.KEPT, ""),
        (IndexPolicy.AUTO, 0.6, 0.9, GraphState.DROPPED, "it takes 0.60 of the time of sign bits, more than 0.5"),
        (IndexPolicy.GRAPH, 0.6, 0.9, GraphState.KEPT, "it takes 0.60 of the time of sign bits, more than 0.5"),
        (IndexPolicy.AUTO, 0.1, 1.1, GraphState.DROPPED, "of the nearest 50, fewer than 1.1"),
        (IndexPolicy.GRAPH, 0.1, 1.1, GraphState.KEPT, "of the nearest 50, fewer than 1.1"),
    ],
)
def test_a_graph_is_kept_if_it_proves_itself_or_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
    policy: IndexPolicy,
    by_a_graph: float,
    least_recall: float,
    state: GraphState,
    reason: str,
) -> None:
    monkeypatch.setattr(graph_builder, "FEWEST_ROWS", 100)
    monkeypatch.setattr(graph_builder, "LEAST_RECALL", least_recall)
    builder = GraphBuilder(policy, None, costs(1.0, by_a_graph))
    vectors = clustered(400, _DIM, np.random.default_rng(3))
    view = replace(view_of(vectors, [1] * 400, SIGNS), graph=builder.slot())
    everything = np.ones(400, np.uint8)
    for vector in vectors[: graph_builder.FEWEST_QUESTIONS]:
        assert by_graph(view, everything, vector, -np.inf, 10) is None
    builder._builds.submit(int).result(30)
    slot = sure(view.graph)
    assert slot.report.state is state
    assert reason in slot.report.reason
    assert (slot.report.reason == "") == (reason == "")
    found = by_graph(view, everything, vectors[0], -np.inf, 10)
    builder.close()
    assert (found is not None) == (state is GraphState.KEPT)
    if found is not None:
        assert found.recall == slot.report.recall
        assert found.ordinals.tolist() == nearest(view, everything, vectors[0], -np.inf, 10).tolist()


def test_a_small_project_has_no_graph_unless_it_is_asked_for() -> None:
    builder = GraphBuilder(IndexPolicy.AUTO, None)
    view = replace(view_of(clustered(400, _DIM, np.random.default_rng(3)), [1] * 400, SIGNS), graph=builder.slot())
    for question in questions_near(view, 100, np.random.default_rng(1)):
        assert by_graph(view, np.ones(400, np.uint8), question, -np.inf, 10) is None
    builder.close()
    assert view.graph is not None
    assert view.graph.report.state is GraphState.NONE
