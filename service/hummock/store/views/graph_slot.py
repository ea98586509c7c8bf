"""The graph of a project, if it has one: shared by the project's views, filled and replaced beside its readers."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hummock.core.project import GraphReport
from hummock.store.views.row_graph import RowGraph

if TYPE_CHECKING:
    from hummock.store.views.view import ProjectView

QUESTIONS_KEPT = 128  # Recent questions by which a graph is built and proven; 4 KB each.
_ROOM = 10  # A graph is rebuilt once one row in so many was appended or removed since.


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HeldGraph:
    """A graph with what it was measured to do.

    Attributes:
        lineage: The lineage of the views whose first rows it holds.
        removed: Memories of the view that were removed when it was built.
        width: Rows that a search without a filter takes from it, to find 50 memories.
        recall: Share of the nearest 50 that it finds so, in [0, 1], of the project's own questions.
        time_share: Its time as a share of that of sign bits.
    """

    graph: RowGraph
    lineage: object
    removed: int
    width: int
    recall: float
    time_share: float


class GraphSlot:
    """A project's graph and its recent questions. Thread-safe: values are replaced atomically."""

    __slots__ = ("_want", "held", "is_busy", "is_looked_up", "questions", "report")

    def __init__(self, want: Callable[[ProjectView], None]) -> None:
        """`want` gets the view at every question; it must return at once."""
        self._want = want
        self.held: HeldGraph | None = None
        self.questions: deque[NDArray[np.float32]] = deque(maxlen=QUESTIONS_KEPT)
        self.report = GraphReport()
        self.is_busy = False  # Whether it is being built, or waits for that.
        self.is_looked_up = False  # Whether a saved graph was looked for.

    def asked(self, view: ProjectView, question: NDArray[np.float32]) -> HeldGraph | None:
        """Note a question and return the graph of this view, if there is one."""
        self.questions.append(question)
        self._want(view)
        held = self.held
        return held if held is not None and held.lineage is view.lineage else None

    def is_due(self, view: ProjectView) -> bool:
        """Whether the graph is missing, or too many rows were appended or removed since it was built."""
        held = self.held
        if held is None or held.lineage is not view.lineage:
            return True
        removed = len(view.columns) - view.columns.live - held.removed
        return (view.row_doc.size - held.graph.size + removed) * _ROOM > held.graph.size

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        held = self.held
        return 0 if held is None else held.graph.nbytes
