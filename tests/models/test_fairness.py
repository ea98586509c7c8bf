"""Sharing of model time: one text an inference, one slot a core, first come first served, equal texts once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from threading import Event, Lock, Semaphore

import numpy as np
import pytest

from hummock.core.deadline import Deadline
from hummock.core.embedding import Embedding, EmbeddingSpace
from hummock.core.errors import Unavailable
from hummock.models import OnnxEmbedder
from hummock.models.embedder import QUERIES_KEPT, TextLanes
from hummock.ports.models import EmbeddingLate
from tests.fakes import FakeClock
from tests.strategies import SPACE

pytestmark = pytest.mark.timed


class HeldModel:
    """A model that answers as often as the test lets it, and notes what it runs."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.most_at_once = 0
        self.started = Semaphore(0)
        self.may_end = Semaphore(0)
        self._at_once = 0
        self._lock = Lock()

    @property
    def space(self) -> EmbeddingSpace:
        return SPACE

    def embed_chunk(self, text: str, first: Embedding | None, *, gives_way: bool = False) -> Embedding:
        with self._lock:
            self.ran.append(text)
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        self.started.release()
        self.may_end.acquire()
        with self._lock:
            self._at_once -= 1
        return Embedding(vector=np.ones(SPACE.dim, np.float32), tokens=SPACE.no_tokens())

    def embed_query(self, text: str, gloss: str | None = None) -> Embedding:
        return self.embed_chunk(text, None)

    def split(self, header: str, body: str) -> list[str]:
        return [body]

    def close(self) -> None:
        pass


@pytest.fixture
def model() -> HeldModel:
    return HeldModel()


@pytest.fixture
def embedder(model: HeldModel) -> Iterator[OnnxEmbedder]:
    """An embedder with one slot."""
    made = OnnxEmbedder(model, slots=1)
    yield made
    made.close()


@pytest.fixture
def callers() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as executor:
        yield executor


def wait_until_queued(embedder: OnnxEmbedder, texts: int) -> None:
    while embedder._texts.waiting() < texts:
        os.sched_yield()


def test_callers_are_served_in_turn(model: HeldModel, embedder: OnnxEmbedder, callers: ThreadPoolExecutor) -> None:
    long = callers.submit(embedder.embed_documents, [["a1"], ["a2"], ["a3"], ["a4"]])
    model.started.acquire()
    wait_until_queued(embedder, 1)
    short = callers.submit(embedder.embed_documents, [["b1"]])
    wait_until_queued(embedder, 2)
    model.may_end.release(5)
    assert (len(long.result()), len(short.result())) == (4, 1)
    assert model.ran == ["a1", "a2", "b1", "a3", "a4"]


def test_no_more_texts_run_at_once_than_there_are_slots(model: HeldModel, callers: ThreadPoolExecutor) -> None:
    embedder = OnnxEmbedder(model, slots=2)
    texts = [[[f"{caller}{number}"] for number in range(4)] for caller in "abc"]
    calls = [callers.submit(embedder.embed_documents, documents) for documents in texts]
    for _ in range(2):
        model.started.acquire()
    model.may_end.release(12)
    assert [len(call.result()) for call in calls] == [4, 4, 4]
    assert model.most_at_once == 2
    embedder.close()


def test_a_query_waits_for_no_document(model: HeldModel, embedder: OnnxEmbedder, callers: ThreadPoolExecutor) -> None:
    documents = callers.submit(embedder.embed_documents, [["a1"], ["a2"], ["a3"]])
    model.started.acquire()
    query = callers.submit(embedder.embed_query, "q")
    model.started.acquire()
    assert model.ran == ["a1", "q"]
    model.may_end.release(4)
    assert len(documents.result()) == 3
    assert query.result().vector.any()


def test_equal_queries_under_way_are_embedded_once(model: HeldModel, callers: ThreadPoolExecutor) -> None:
    embedder = OnnxEmbedder(model, slots=2)
    calls = [callers.submit(embedder.embed_query, "先本后息") for _ in range(4)]
    model.started.acquire()
    model.may_end.release()
    assert len({id(call.result()) for call in calls}) == 1
    assert model.ran == ["先本后息"]
    embedder.close()


def test_equal_texts_of_a_call_are_embedded_once(model: HeldModel, embedder: OnnxEmbedder) -> None:
    model.may_end.release(2)
    (left,), (other,), (right,) = embedder.embed_documents([["a"], ["b"], ["a"]])
    assert left is right is not other
    assert sorted(model.ran) == ["a", "b"]


def test_first_chunks_come_first_and_each_document_is_embedded_once(model: HeldModel, embedder: OnnxEmbedder) -> None:
    """The vector of a first chunk is part of the later vectors of its document."""
    model.may_end.release(6)
    long, other, again = embedder.embed_documents([["a1", "a2", "a1"], ["b1", "a2"], ["a1", "a2", "a1"]])
    assert model.ran == ["a1", "b1", "a2", "a2"]
    assert (long[0] is long[2], long[1] is again[1], long[1] is other[1]) == (True, True, False)


def test_the_query_that_was_not_asked_longest_is_forgotten_first(model: HeldModel, embedder: OnnxEmbedder) -> None:
    model.may_end.release(QUERIES_KEPT + 3)
    for number in range(QUERIES_KEPT):
        embedder.embed_query(str(number))
    embedder.embed_query("0")
    embedder.embed_query("one more")
    model.ran.clear()
    embedder.embed_query("0")
    embedder.embed_query("1")
    assert model.ran == ["1"]


def test_a_late_query_is_there_next_time(model: HeldModel, embedder: OnnxEmbedder, callers: ThreadPoolExecutor) -> None:
    first = callers.submit(embedder.embed_query, "q")
    model.started.acquire()
    with pytest.raises(EmbeddingLate, match=r"was waited for 0\.0 ms"):
        embedder.embed_query("q", timeout_s=0.0)
    model.may_end.release()
    first.result()
    assert embedder.embed_query("q", timeout_s=0.0).vector.shape == (SPACE.dim,)
    assert model.ran == ["q"]


def test_a_query_that_nobody_waits_for_is_not_begun(model: HeldModel, embedder: OnnxEmbedder) -> None:
    first = embedder._query_executor.submit(model.embed_query, "first")
    model.started.acquire()
    for text in ("late", "later"):
        with pytest.raises(EmbeddingLate, match="was waited for"):
            embedder.embed_query(text, timeout_s=0.0)
    model.may_end.release(2)
    first.result()
    embedder.embed_query("wanted")
    assert model.ran == ["first", "wanted"]


def test_a_query_that_another_awaits_is_made(
    model: HeldModel, embedder: OnnxEmbedder, callers: ThreadPoolExecutor
) -> None:
    first = embedder._query_executor.submit(model.embed_query, "first")
    model.started.acquire()
    patient = callers.submit(embedder.embed_query, "q")
    while ("q", None) not in embedder._queries:
        os.sched_yield()
    with pytest.raises(EmbeddingLate):
        embedder.embed_query("q", timeout_s=0.0)
    model.may_end.release(2)
    first.result()
    assert patient.result().vector.shape == (SPACE.dim,)


class TickingModel(HeldModel):
    """A model whose inferences each take a second of the test's clock for a character."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__()
        self._clock = clock

    def embed_query(self, text: str, gloss: str | None = None) -> Embedding:
        self.ran.append(text)
        self._clock.move(len(text))
        return Embedding(vector=np.ones(SPACE.dim, np.float32), tokens=SPACE.no_tokens())


def test_a_query_that_would_be_late_is_not_begun_until_it_was_long_enough_ago() -> None:
    clock = FakeClock()
    ticking = TickingModel(clock)
    embedder = OnnxEmbedder(ticking, slots=1, monotonic=clock.monotonic)
    for text in ("aaaa", "bbbb"):
        embedder.embed_query(text)
    with pytest.raises(EmbeddingLate, match=r"would take 4000\.0 ms of the 3000\.0 ms that were left"):
        embedder.embed_query("cccc", timeout_s=3.0)
    assert embedder.embed_query("aaaa", timeout_s=3.0).vector.shape == (SPACE.dim,)
    assert embedder.embed_query("dddd", timeout_s=60.0).vector.shape == (SPACE.dim,)
    assert ticking.ran == ["aaaa", "bbbb", "dddd"]
    late = 0
    while "eeee" not in ticking.ran:
        late += 1
        with suppress(EmbeddingLate):
            embedder.embed_query("eeee", timeout_s=3.0)
    assert 2 < late < 100
    embedder.close()


def test_a_longer_query_is_expected_to_take_longer() -> None:
    clock = FakeClock()
    embedder = OnnxEmbedder(TickingModel(clock), slots=1, monotonic=clock.monotonic)
    for text in ("aaaa", "bbbb"):
        embedder.embed_query(text)
    with pytest.raises(EmbeddingLate, match="would take"):
        embedder.embed_query("word " * 100, timeout_s=20.0)
    embedder.close()


def test_a_short_call_waits_for_the_text_that_runs_and_for_none_of_a_bulk_load(
    model: HeldModel, embedder: OnnxEmbedder, callers: ThreadPoolExecutor
) -> None:
    """D16."""
    bulk = [
        callers.submit(embedder.embed_documents, [[f"{caller}{number}"] for number in range(4)], is_bulk=True)
        for caller in "ab"
    ]
    model.started.acquire()
    wait_until_queued(embedder, 3)
    short = callers.submit(embedder.embed_documents, [["one sentence"]])
    wait_until_queued(embedder, 4)
    model.may_end.release(9)
    assert len(short.result()) == 1
    assert [len(one.result()) for one in bulk] == [4, 4]
    assert model.ran[1] == "one sentence"


def test_bulk_texts_get_their_share_however_many_others_wait() -> None:
    lanes, may_run, done = TextLanes(1), Event(), list[str]()
    lanes.submit(may_run.wait, is_bulk=False)
    waiting = [lanes.submit(partial(done.append, f"bulk {number}"), is_bulk=True) for number in range(4)]
    waiting += [lanes.submit(partial(done.append, f"text {number}"), is_bulk=False) for number in range(24)]
    may_run.set()
    for one in waiting:
        one.result()
    assert [place for place, text in enumerate(done) if text.startswith("bulk")] == [6, 14, 22, 27]
    lanes.shutdown()


def test_nothing_is_embedded_for_nobody(model: HeldModel, embedder: OnnxEmbedder, callers: ThreadPoolExecutor) -> None:
    """D9, D2: what is bulk stops between texts."""
    deadline = Deadline()
    gone = callers.submit(embedder.embed_documents, [[f"a{number}"] for number in range(20)], deadline)
    model.started.acquire()
    deadline.end(Unavailable("the service is stopping"))
    model.may_end.release(20)
    with pytest.raises(Unavailable):
        gone.result()
    embedder.embed_documents([["b"]])
    assert model.ran == ["a0", "b"]
