"""A graph of vector rows (hnswlib): finds approximately nearest rows by the few dims in which rows differ most.

Questions weigh the dims of a vector: a question in one language asks mostly one model's part of it. Rows are scaled as
questions weigh them, then reduced to their principal dims. What the graph finds is scored again by the rows themselves.
hnswlib is optional, and is imported by the first graph.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hummock.core.project import GraphReport

if TYPE_CHECKING:
    import hnswlib

Floats = NDArray[np.float32]

_DIMS = 192  # Principal dims at most; of 1,024 they keep .999 of the nearest 50 in a pool of 200.
_LINKS = 16  # Links of a row (M).
_CARE = 200  # Candidates per row while the graph is built (efConstruction).
_SAMPLED_ROWS = 20_000  # Rows from which the principal dims are taken.
_BATCH_ROWS = 1000  # Rows added between two looks at whether to go on.
_CELL_ROWS = 16  # Rows that lie together in memory.
_CELL_DIMS = 16
_CHUNK_ROWS = 16_384  # Rows that are float32 at the same time.
_FEWEST_QUESTIONS = 16  # Fewer than this do not tell how questions weigh the dims.
_STRETCH = 2.0  # A question that lies so much farther out than usual ones asks for other dims than the graph has.
_SEED = 7
QUESTIONS_KEPT = 128  # Recent questions by which a graph is built and proven; 4 KB each.
_ROOM = 10  # A graph is rebuilt once one row in so many was appended or removed since.


def has_hnswlib() -> bool:
    """Whether hnswlib is installed; it is not imported."""
    return find_spec("hnswlib") is not None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Projection:
    """Maps rows and questions to the dims of a graph, where near means alike as questions ask.

    Attributes:
        rows: (dim, dims) float32, what rows are multiplied by.
        questions: (dim, dims) float32, the same for questions.
        outside: (dim,) float32, the cost of a question's squared components; infinite for dims that the graph lacks.
        usual: The usual cost of a question.
    """

    rows: Floats
    questions: Floats
    outside: Floats
    usual: float

    @classmethod
    def of(cls, rows: NDArray[np.uint16], questions: Floats) -> Projection:
        """The projection for these rows, (n, dim) float16 in uint16, and recent questions, (m, dim), perhaps none."""
        sample = _floats(rows[:: max(1, len(rows) // _SAMPLED_ROWS)])
        scale = _scale(sample, questions)
        sample *= scale
        apart = (sample - sample.mean(axis=0)).astype(np.float64)
        _, directions = np.linalg.eigh(apart.T @ apart)
        principal = directions[:, ::-1][:, :_DIMS].astype(np.float32)
        asked = np.divide(1, scale, out=np.zeros_like(scale), where=scale > 0)
        outside = np.where(scale > 0, asked * asked, np.float32(np.inf))
        usual = float(np.median(_costs(questions, outside))) if len(questions) >= _FEWEST_QUESTIONS else 1.0
        return cls(
            rows=np.ascontiguousarray(scale[:, None] * principal),
            questions=np.ascontiguousarray(asked[:, None] * principal),
            outside=outside,
            usual=usual,
        )

    def fits(self, question: Floats) -> bool:
        """Whether a question weighs the dims as those from which the projection was made."""
        return bool(_costs(question[None], self.outside)[0] <= _STRETCH * self.usual)

    def as_questions(self, rows: NDArray[np.uint16]) -> Floats:
        """(n, dim), the questions of which these rows would be the best answers."""
        weight = np.divide(1, self.outside, out=np.zeros_like(self.outside), where=self.outside > 0)
        return _floats(rows) * weight


def _scale(rows: Floats, questions: Floats) -> Floats:
    """(dim,) the factor by which rows, and the inverse by which questions, come to lie alike."""
    if len(questions) < _FEWEST_QUESTIONS:
        return np.ones(rows.shape[1], np.float32)
    # The median: one question in three may ask in another language, and so for other dims.
    asked, stored = np.median(np.abs(questions), axis=0), np.mean(np.abs(rows), axis=0)
    scale: Floats = np.sqrt(np.divide(asked, stored, out=np.zeros_like(stored), where=stored > 0))
    return scale


def _costs(questions: Floats, outside: Floats) -> Floats:
    squares = questions * questions
    # 0 times infinity is no number.
    costs: Floats = np.sum(np.multiply(squares, outside, out=np.zeros_like(squares), where=squares > 0), axis=1)
    return costs


def _floats(rows: NDArray[np.uint16]) -> Floats:
    # Rows that are not finite, as damage may leave them, would spoil the distances of others.
    return np.nan_to_num(rows.view(np.float16).astype(np.float32), copy=False, posinf=0, neginf=0)


class RowGraph:
    """The first `size` vector rows of a view as a graph. Immutable; searched by any number of threads."""

    def __init__(self, projection: Projection, index: hnswlib.Index) -> None:
        """Take over an index that holds row numbers, for L2 distances."""
        self.projection = projection
        self.index = index
        self.size = int(index.element_count)

    @classmethod
    def built(
        cls, rows: NDArray[np.uint16], projection: Projection, is_wanted: Callable[[], bool] = lambda: True
    ) -> RowGraph | None:
        """Build the graph of these rows on the caller's thread; None once it is no longer wanted.

        Equal rows and projections give equal graphs. The GIL is released; half a minute per 100,000 rows.
        """
        index = _empty(projection.rows.shape[1])
        index.init_index(max_elements=len(rows), M=_LINKS, ef_construction=_CARE, random_seed=_SEED)
        order = _by_neighbourhood(rows, projection)
        for start in range(0, len(rows), _BATCH_ROWS):
            if not is_wanted():
                return None
            numbers = order[start : start + _BATCH_ROWS]
            index.add_items(_floats(rows[numbers]) @ projection.rows, numbers, num_threads=1)
        return cls(projection, index)

    @classmethod
    def load(cls, path: str, size: int, projection: Projection) -> RowGraph:
        """Load what `save` wrote, whose digest was checked. Raises: RuntimeError: hnswlib cannot read it."""
        index = _empty(projection.rows.shape[1])
        index.load_index(path, max_elements=size)
        if index.element_count != size:
            raise RuntimeError(f"the graph has {index.element_count} rows, not {size}")
        return cls(projection, index)

    def save(self, path: str) -> None:
        """Write the graph without its projection. Raises: RuntimeError."""
        self.index.save_index(path)

    def nearest(self, question: Floats, count: int) -> NDArray[np.int64]:
        """About `count` rows nearest to a (dim,) question, in no order; the more, the surer are the first of them."""
        # With k as large as this, hnswlib looks at k candidates; `set_ef` would be shared with other threads.
        found, _ = self.index.knn_query(question @ self.projection.questions, k=min(count, self.size), num_threads=1)
        rows: NDArray[np.int64] = found[0].astype(np.int64)
        return rows

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        # Its vector; links on the lowest level, with their number; and the label. Few rows have more levels.
        links = 4 * (2 * _LINKS + 1) + 8
        dims: int = self.projection.rows.shape[1]
        return self.size * (4 * dims + links)


def _by_neighbourhood(rows: NDArray[np.uint16], projection: Projection) -> NDArray[np.int64]:
    """(rows,) all row numbers, in cells that are halved along the dim in which their rows differ most.

    The graph lies in memory in this order: what is near is found on the same pages.
    """
    places = np.concatenate(
        [
            _floats(rows[start : start + _CHUNK_ROWS]) @ projection.rows[:, :_CELL_DIMS]
            for start in range(0, len(rows), _CHUNK_ROWS)
        ]
    )
    cells, done = [np.arange(len(rows))], []
    while cells:
        cell = cells.pop()
        if len(cell) <= _CELL_ROWS:
            done.append(cell)
            continue
        dim = int(places[cell].var(axis=0).argmax())
        halves = np.array_split(cell[np.argsort(places[cell, dim], kind="stable")], 2)
        cells += halves[::-1]
    return np.concatenate(done)


def _empty(dims: int) -> hnswlib.Index:
    # An optional package, which costs its import.
    import hnswlib

    return hnswlib.Index(space="l2", dim=dims)


if TYPE_CHECKING:
    from hummock.store.views.view import ProjectView


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
