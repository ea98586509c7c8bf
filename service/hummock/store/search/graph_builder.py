"""Builds the graphs of large projects beside their readers, and keeps one that proves itself against sign bits.

A graph is built once a project has asked enough questions, on one thread that gives way to others. Then it answers
these questions, and rows of the project put as questions, in turns with sign bits. It is kept if it finds .99 of the
nearest 50 in at most half of their time; under GRAPH it is kept in any case.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from statistics import median
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hummock.core.project import GraphReport, GraphState
from hummock.core.settings import IndexPolicy
from hummock.core.threads import give_way
from hummock.store.search.nearest import PROVEN_K, Ordinals, found_in, nearest
from hummock.store.views.row_graph import GraphSlot, HeldGraph, Projection, RowGraph, has_hnswlib
from hummock.store.views.view import ProjectView
from hummock_kernels.cosine import scan

FEWEST_ROWS = 50_000
"""Rows from which AUTO builds a graph: sign bits search fewer in less than a millisecond."""

FEWEST_QUESTIONS = 32  # Questions of a project from which its graph is built.
LEAST_RECALL = 0.99
MOST_TIME = 0.5

_WIDTHS = (100, 200, 300, 400, 500, 600, 700, 800, 1000, 1200, 1600)
_PROVEN_BY = 64  # Questions, and rows put as questions, that prove a graph.
_GROWTH = 2  # A graph that was dropped is tried again once the project has so many times the rows.
_NO_MINIMUM = -np.inf
_TINY_S = 1e-9

_log = logging.getLogger(__name__)

Floats = NDArray[np.float32]


class SavedGraphs(Protocol):
    """Graphs saved to files, so that they need not be built after a start."""

    def graph(self, view: ProjectView) -> HeldGraph | None:
        """The saved graph of the view's first rows; None if there is none that is intact."""

    def save(self, view: ProjectView, held: HeldGraph) -> None:
        """Save a graph of the view, replacing an earlier one; a failure is logged."""


def graph_builder(policy: IndexPolicy, saved: SavedGraphs | None) -> GraphBuilder | None:
    """The builder for this policy; None where sign bits alone serve, as without hnswlib."""
    return GraphBuilder(policy, saved) if policy is not IndexPolicy.SIGNS and has_hnswlib() else None


class GraphBuilder:
    """The graphs of all projects of a process. Its thread starts with the first graph. Thread-safe."""

    def __init__(
        self, policy: IndexPolicy, saved: SavedGraphs | None, cost_s: Callable[[], float] = time.thread_time
    ) -> None:
        """`cost_s` measures searches: the processor time of the calling thread."""
        self._policy = policy
        self._saved = saved
        self._cost_s = cost_s
        self._is_closing = False
        self._builds = ThreadPoolExecutor(1, thread_name_prefix="hummock-graph", initializer=give_way)

    def slot(self) -> GraphSlot:
        """The place of a project's graph."""
        return GraphSlot(self._want)

    def close(self) -> None:
        """Stop building, within some seconds."""
        self._is_closing = True
        self._builds.shutdown(cancel_futures=True)

    def _want(self, view: ProjectView) -> None:
        """Have the graph of a view built, if it is due."""
        slot = view.graph
        if slot is None or slot.is_busy or not self._is_due(slot, view):
            return
        slot.is_busy = True
        # The executor refuses new work once the store closes.
        with suppress(RuntimeError):
            self._builds.submit(self._make, slot, view)

    def _is_due(self, slot: GraphSlot, view: ProjectView) -> bool:
        if not slot.is_due(view) or (self._policy is IndexPolicy.AUTO and view.row_doc.size < FEWEST_ROWS):
            return False
        if slot.report.state is GraphState.DROPPED and view.row_doc.size < _GROWTH * slot.report.rows:
            return False
        return not slot.is_looked_up or len(slot.questions) >= FEWEST_QUESTIONS

    def _make(self, slot: GraphSlot, view: ProjectView) -> None:
        try:
            # Two questions at once may both have asked for it.
            if not self._is_due(slot, view):
                return
            held = None
            if not slot.is_looked_up and self._saved is not None:
                held = self._saved.graph(view)
            slot.is_looked_up = True
            if held is not None:
                self._decide(slot, held)
            elif len(slot.questions) >= FEWEST_QUESTIONS:
                slot.report = GraphReport(state=GraphState.BUILDING, rows=view.row_doc.size)
                held = self._built(view, np.stack(list(slot.questions)))
                if held is not None:
                    self._decide(slot, held)
                    if self._saved is not None:
                        self._saved.save(view, held)
        except Exception:
            _log.exception("a graph of %d rows could not be built; sign bits serve", view.row_doc.size)
            reason = "it could not be built; the log says why"
            slot.report = GraphReport(state=GraphState.DROPPED, reason=reason, rows=view.row_doc.size)
        finally:
            slot.is_busy = False

    def _decide(self, slot: GraphSlot, held: HeldGraph) -> None:
        """Keep a graph, or say why not."""
        is_proven = held.recall >= LEAST_RECALL and held.time_share <= MOST_TIME
        is_kept = is_proven or self._policy is IndexPolicy.GRAPH
        slot.held = held if is_kept else None
        slot.report = GraphReport(
            state=GraphState.KEPT if is_kept else GraphState.DROPPED,
            reason="" if is_proven else _shortfall(held),
            rows=held.graph.size,
            recall=held.recall,
            time_share=held.time_share,
        )

    def _built(self, view: ProjectView, questions: Floats) -> HeldGraph | None:
        rows = view.vectors.values
        projection = Projection.of(rows, questions)
        graph = RowGraph.built(rows, projection, lambda: not self._is_closing)
        if graph is None:
            return None
        ours = questions[[projection.fits(question) for question in questions]][-_PROVEN_BY:]
        of_rows = projection.as_questions(rows[:: -(-len(rows) // _PROVEN_BY)])
        return self._measured(view, graph, [ours, of_rows])

    def _measured(self, view: ProjectView, graph: RowGraph, sets: list[Floats]) -> HeldGraph | None:
        """The graph at the least width that finds LEAST_RECALL of each set of questions, or else at the widest.

        None once the store closes.
        """
        allowed = view.columns.alive
        exact: list[list[Ordinals]] = []
        for questions in sets:
            exact.append([])
            for question in questions:
                if self._is_closing:
                    return None
                exact[-1].append(scan(view.chunks, allowed, question, _NO_MINIMUM, PROVEN_K)[0])
        tried = None
        for width in _WIDTHS:
            if tried is not None and (tried.recall >= LEAST_RECALL or width > graph.size):
                break
            tried = self._tried(view, graph, width, sets, exact)
            if tried is None:
                return None
        return tried

    def _tried(
        self, view: ProjectView, graph: RowGraph, width: int, sets: list[Floats], exact: list[list[Ordinals]]
    ) -> HeldGraph | None:
        """The graph at this width, with its recall and its time beside sign bits; None once the store closes."""
        allowed, removed = view.columns.alive, len(view.columns) - view.columns.live
        held = HeldGraph(graph=graph, lineage=view.lineage, removed=removed, width=width, recall=0.0, time_share=np.inf)
        recalls: list[float] = []
        by_graph_s: list[float] = []
        by_signs_s: list[float] = []
        for questions, nearest_exact in zip(sets, exact, strict=True):
            shares = []
            for question, expected in zip(questions, nearest_exact, strict=True):
                if self._is_closing:
                    return None
                begin_s = self._cost_s()
                nearest(view, allowed, question, _NO_MINIMUM, PROVEN_K)
                middle_s = self._cost_s()
                found = found_in(view, held, allowed, question, _NO_MINIMUM, PROVEN_K)
                by_signs_s.append(middle_s - begin_s)
                by_graph_s.append(self._cost_s() - middle_s)
                shares.append(0.0 if found is None else np.isin(expected, found).mean())
            if shares:
                recalls.append(float(np.mean(shares)))
        time_share = median(by_graph_s) / max(median(by_signs_s), _TINY_S)
        return replace(held, recall=min(recalls), time_share=time_share)


def _shortfall(held: HeldGraph) -> str:
    """Why a graph did not prove itself, for people."""
    if held.recall < LEAST_RECALL:
        return f"it finds {held.recall:.3f} of the nearest {PROVEN_K}, fewer than {LEAST_RECALL}"
    return f"it takes {held.time_share:.2f} of the time of sign bits, more than {MOST_TIME}"
