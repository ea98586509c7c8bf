"""The embedder that the service uses: a verified model, a queue of its own, the same bytes for the same text."""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, Protocol, TypeVar

from hummock.core.deadline import NO_DEADLINE, Deadline, InferenceTimes
from hummock.core.embedding import Calibration, Embedding, EmbeddingSpace
from hummock.core.threads import usable_cores
from hummock.models.basis import bases_of, load_basis
from hummock.models.calibrate import read_calibration
from hummock.models.description import EmbeddingModel, ModelDescription, PairDescription, TrioDescription
from hummock.models.fusion import Say
from hummock.models.pair import PairModel
from hummock.models.single import SingleModel
from hummock.models.trio import TrioModel
from hummock.ports.models import EmbeddingLate
from hummock.text.tokens import EstimatedTokens

QUERIES_KEPT = 512

MOST_INTERACTIVE = 8
"""Chunks of a call that somebody waits for: more are bulk."""

_QueryKey = tuple[str, str | None]

_LENGTHS = (16, 32, 64, 128, 256, 512)
"""Most tokens of a query in each bucket; longer ones count as the last. The count is estimated, since running the
tokenizer would cost more than it is worth."""

_FADING = 1 / 64
"""Share by which an expected duration shrinks each time it prevents an embedding. An estimate twice the time left is
tried again after some 45 queries; no query waits past its deadline."""

_MARGIN = 4.0
"""A query whose expected time, multiplied by this, is below the time left runs on the caller's thread."""


class TextModel(Protocol):
    """Embeds one text a call; equal texts give equal bytes. Safe to call from several threads.

    Its methods raise EmbeddingNotFinite (the model gave NaN or infinity) and TypeError (a text holds a lone surrogate).
    """

    @property
    def space(self) -> EmbeddingSpace:
        """The space of all vectors that it gives."""

    def embed_query(self, text: str, gloss: str | None = None) -> Embedding:
        """Embed a query with its prefix, cut to the window; a model that reads glosses embeds one as its bridge."""

    def embed_chunk(self, text: str, first: Embedding | None, *, gives_way: bool = False) -> Embedding:
        """Embed a chunk of a stored text, cut to the window; `first` is what its first chunk gave, None for that.

        `gives_way` says that the caller's thread lets all others go first.
        """

    def split(self, header: str, body: str) -> list[str]:
        """Chunk texts of a memory that fit the window: the header, a newline and a piece of the body.

        Without a header they are the pieces alone. They overlap by a tenth and together hold every character of the
        body. A header of more than a quarter of the window is cut there.
        """

    def close(self) -> None:
        """End the background work."""


def load(model: ModelDescription, directory: Path, slots: int | None = None) -> OnnxEmbedder:
    """Load an embedder of one model from the model's own directory, without a calibration; else as `open_embedder`."""
    return OnnxEmbedder(SingleModel(model, directory, load_basis(model.basis, model.dim)), slots or usable_cores())


def open_embedder(
    model: EmbeddingModel, models_directory: Path, slots: int | None = None, say: Say = lambda line: None
) -> OnnxEmbedder:
    """Open an embedder of one model, or of several as one; each part's files are in a directory of its name.

    Its calibration is the one measured by `hummock models calibrate`, if any.

    `slots` texts are embedded at once, each on one core; default as many as this process has cores. `say` gets the
    reason if a model runs slower than it could. Raises: CalibrationInvalid, and what `SingleModel` raises.
    """
    cores = slots or usable_cores()
    parts = [
        SingleModel(part, models_directory / part.name, basis, say)
        for part, basis in zip(model.parts, bases_of(model), strict=True)
    ]
    opened: TextModel
    match model:
        case PairDescription():
            opened = PairModel(model, parts[0], parts[1], cores)
        case TrioDescription():
            opened = TrioModel(model, parts[0], parts[1], parts[2], cores)
        case _:
            opened = parts[0]
    return OnnxEmbedder(opened, cores, read_calibration(models_directory, opened.space.id))


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelLoad:
    """Load of a model: slots, for queries and for documents each; texts in them; queued texts of documents."""

    slots: int
    busy: int
    waiting: int


class OnnxEmbedder:
    """The port `Embedder` on onnxruntime."""

    def __init__(
        self,
        model: TextModel,
        slots: int,
        measured: Calibration | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._model = model
        self.space = replace(model.space, calibration=measured) if measured else model.space
        self._slots = slots
        self._texts = TextLanes(slots)
        # Queries are interactive: they share the cores with documents and do not queue behind them.
        self._query_executor = ThreadPoolExecutor(max_workers=slots, thread_name_prefix="embed-query")
        self._queries: OrderedDict[_QueryKey, _Query] = OrderedDict()
        self._query_times = InferenceTimes(_LENGTHS, _FADING)
        self._tokens = EstimatedTokens()
        self._monotonic = monotonic
        self._lock = Lock()
        self._busy_queries = 0

    def embed_query(self, text: str, timeout_s: float | None = None, gloss: str | None = None) -> Embedding:
        """Embed a query; recent ones are cached.

        The caller's thread runs the model, since handing a query over costs as much as a short inference; if that might
        exceed the timeout, another thread runs it and can be abandoned. Raises: EmbeddingLate; EmbeddingNotFinite;
        TypeError, if the text holds a lone surrogate.
        """
        key = (text, gloss)
        with self._lock:
            query = self._queries.pop(key, None)
            own = None if query else self._own(key, timeout_s)
            query = query or _Query(own or self._query_executor.submit(self._timed_query, *key))
            query.waiting += 1
            self._queries[key] = query
            if len(self._queries) > QUERIES_KEPT:
                self._queries.popitem(last=False)
        try:
            if own:
                self._complete(own, key)
            return query.future.result(timeout_s)
        except TimeoutError as late:
            raise EmbeddingLate(f"the model was waited for {_ms(timeout_s or 0.0)}, in which it did not end") from late
        except BaseException:
            with self._lock:
                if self._queries.get(key) is query:
                    del self._queries[key]
            raise
        finally:
            self._leave(key, query)

    def is_known(self, text: str, gloss: str | None = None) -> bool:
        """Whether a query's vector is cached."""
        query = self._queries.get((text, gloss))
        return query is not None and query.future.done()

    def embed_documents(
        self, documents: Sequence[Sequence[str]], deadline: Deadline = NO_DEADLINE, *, is_bulk: bool = False
    ) -> list[tuple[Embedding, ...]]:
        """Embed the chunks of each document as they are, cut to the window; equal documents once.

        Only a few chunks are queued at a time, so that callers take turns. Calls of more than MOST_INTERACTIVE chunks
        let others go first. Raises: as `embed_query`, and what the deadline raises.
        """
        firsts = [(chunks[0], chunks[0]) for chunks in documents]
        # After the first chunks of all documents, so that few chunks wait for the first of their own.
        others = [(chunks[0], chunk) for chunks in documents for chunk in chunks[1:]]
        wanted = dict.fromkeys(firsts + others)
        is_bulk = is_bulk or len(wanted) > MOST_INTERACTIVE
        begun: dict[tuple[str, str], Future[Embedding]] = {}
        queued: deque[Future[Embedding]] = deque()
        for first, chunk in wanted:
            if len(queued) > self._slots:
                queued.popleft().result()
            deadline.check()
            work = partial(self._chunk, chunk, begun.get((first, first)), deadline)
            begun[first, chunk] = self._texts.submit(work, is_bulk=is_bulk)
            queued.append(begun[first, chunk])
        return [tuple(begun[chunks[0], chunk].result() for chunk in chunks) for chunks in documents]

    def embed_in_turn(self, chunks: Sequence[str]) -> Iterator[Embedding]:
        """Embed a document's chunks on the caller's thread, which gives way to others, each when it is asked for."""
        first = None
        for chunk in chunks:
            embedding = _shared(self._model.embed_chunk(chunk, first, gives_way=True))
            first = embedding if first is None else first
            yield embedding

    def load(self) -> ModelLoad:
        """Load of the model."""
        return ModelLoad(
            slots=self._slots, busy=self._busy_queries + self._texts.running(), waiting=self._texts.waiting()
        )

    def split(self, header: str, body: str) -> list[str]:
        """Chunk texts of a memory, as the model cuts it. Raises: TypeError: A text holds a lone surrogate."""
        return self._model.split(header, body)

    def _chunk(self, text: str, first: Future[Embedding] | None, deadline: Deadline) -> Embedding:
        deadline.check()
        # The first one was queued before, so it has ended or is running.
        return _shared(self._model.embed_chunk(text, None if first is None else first.result()))

    def _own(self, key: _QueryKey, timeout_s: float | None) -> Future[Embedding] | None:
        """Create the future to run on the caller's thread; None if another thread should. Raises: EmbeddingLate."""
        if timeout_s is not None:
            token_count = self._tokens.count(key[0])
            expected_s = self._query_times.expected_s(token_count)
            if expected_s > timeout_s:
                self._query_times.fade(token_count)
                raise EmbeddingLate(f"the model would take {_ms(expected_s)} of the {_ms(timeout_s)} that were left")
            if not 0.0 < _MARGIN * expected_s < timeout_s:
                return None
        begun: Future[Embedding] = Future()
        begun.set_running_or_notify_cancel()
        return begun

    def _complete(self, own: Future[Embedding], key: _QueryKey) -> None:
        try:
            own.set_result(self._timed_query(*key))
        except BaseException as error:
            own.set_exception(error)

    def _timed_query(self, text: str, gloss: str | None) -> Embedding:
        start_s = self._monotonic()
        with self._lock:
            self._busy_queries += 1
        try:
            embedding = _shared(self._model.embed_query(text, gloss))
        finally:
            with self._lock:
                self._busy_queries -= 1
        self._query_times.add(self._tokens.count(text), self._monotonic() - start_s)
        return embedding

    def _leave(self, key: _QueryKey, query: _Query) -> None:
        """Cancel a query without waiting callers, so that late queries do not delay later ones."""
        with self._lock:
            query.waiting -= 1
            if not query.waiting and query.future.cancel() and self._queries.get(key) is query:
                del self._queries[key]

    def close(self) -> None:
        """Finish the running inferences, drop the queued ones."""
        self._query_executor.shutdown(cancel_futures=True)
        self._texts.shutdown()
        self._model.close()


@dataclass(slots=True)
class _Query:
    future: Future[Embedding]
    waiting: int = 0


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms"


def _shared(embedding: Embedding) -> Embedding:
    """The embedding, which its callers share and none of them can write to."""
    embedding.vector.setflags(write=False)
    embedding.tokens.setflags(write=False)
    if embedding.bridge is not None:
        _shared(embedding.bridge)
    return embedding


Result = TypeVar("Result")

BULK_ONE_IN = 8
"""While both wait, one text in so many is bulk: it never starves."""


class TextLanes:
    """Runs texts one by one: interactive ones first, and first come, first served in each lane.

    An interactive text waits at most for the texts that are running.
    """

    def __init__(self, slots: int) -> None:
        self._executor = ThreadPoolExecutor(max_workers=slots, thread_name_prefix="embed")
        self._lock = Lock()
        self._interactive: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._bulk: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._since_bulk = 0
        self._running = 0

    def submit(self, work: Callable[[], Result], *, is_bulk: bool) -> Future[Result]:
        """The result of the work, as a future; cancelled before its turn, it never runs."""
        told: Future[Result] = Future()
        with self._lock:
            (self._bulk if is_bulk else self._interactive).append((told, work))
        self._executor.submit(self._run_next)
        return told

    def waiting(self) -> int:
        """Texts that wait."""
        with self._lock:
            return len(self._interactive) + len(self._bulk)

    def running(self) -> int:
        """Texts that are being read."""
        with self._lock:
            return self._running

    def shutdown(self) -> None:
        """Finishes what runs, drops what waits."""
        self._executor.shutdown(cancel_futures=True)
        for told, _ in (*self._interactive, *self._bulk):
            told.cancel()

    def _run_next(self) -> None:
        with self._lock:
            is_bulk = self._bulk and (not self._interactive or self._since_bulk >= BULK_ONE_IN - 1)
            self._since_bulk = 0 if is_bulk else self._since_bulk + 1
            told, work = (self._bulk if is_bulk else self._interactive).popleft()
        if not told.set_running_or_notify_cancel():
            return
        self._count(1)
        try:
            result = work()
        except BaseException as error:
            self._count(-1)
            told.set_exception(error)
        else:
            self._count(-1)
            told.set_result(result)

    def _count(self, more: int) -> None:
        with self._lock:
            self._running += more
