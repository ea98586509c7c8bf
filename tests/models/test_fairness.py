"""How model time is shared: one text an inference, one slot a core, first come first served, equal texts once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Lock, Semaphore

import numpy as np
import pytest

from hummock.core.embedding import Embedding, EmbeddingSpace
from hummock.models import OnnxEmbedder
from hummock.models.embedder import QUERIES_KEPT
from tests.strategies import SPACE


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

    def embed_document(self, text: str) -> Embedding:
        with self._lock:
            self.ran.append(text)
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        self.started.release()
        self.may_end.acquire()
        with self._lock:
            self._at_once -= 1
        return Embedding(vector=np.ones(SPACE.dim, np.float32), tokens=SPACE.no_tokens())

    def embed_query(self, text: str) -> Embedding:
        return self.embed_document(text)

    def split(self, header: str, body: str) -> list[str]:
        return [body]


@pytest.fixture
def model() -> HeldModel:
    return HeldModel()


@pytest.fixture
def callers() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as executor:
        yield executor


def wait_until_queued(embedder: OnnxEmbedder, texts: int) -> None:
    while embedder._executor._work_queue.qsize() < texts:
        os.sched_yield()


def test_callers_take_turns_first_come_first_served(model: HeldModel, callers: ThreadPoolExecutor) -> None:
    embedder = OnnxEmbedder(model, slots=1)
    long = callers.submit(embedder.embed_documents, ["a1", "a2", "a3", "a4"])
    model.started.acquire()
    wait_until_queued(embedder, 1)
    short = callers.submit(embedder.embed_documents, ["b1"])
    wait_until_queued(embedder, 2)
    model.may_end.release(5)
    assert (len(long.result()), len(short.result())) == (4, 1)
    assert model.ran == ["a1", "a2", "b1", "a3", "a4"]
    embedder.close()


def test_no_more_texts_run_at_once_than_there_are_slots(model: HeldModel, callers: ThreadPoolExecutor) -> None:
    embedder = OnnxEmbedder(model, slots=2)
    calls = [callers.submit(embedder.embed_documents, [f"{caller}{number}" for number in range(4)]) for caller in "abc"]
    for _ in range(2):
        model.started.acquire()
    model.may_end.release(12)
    assert [len(call.result()) for call in calls] == [4, 4, 4]
    assert model.most_at_once == 2
    embedder.close()


def test_a_query_does_not_queue_behind_documents(model: HeldModel, callers: ThreadPoolExecutor) -> None:
    embedder = OnnxEmbedder(model, slots=1)
    documents = callers.submit(embedder.embed_documents, ["a1", "a2", "a3"])
    model.started.acquire()
    query = callers.submit(embedder.embed_query, "q")
    model.started.acquire()
    assert model.ran == ["a1", "q"]
    model.may_end.release(4)
    assert len(documents.result()) == 3
    assert query.result().vector.any()
    embedder.close()


def test_equal_queries_under_way_are_embedded_once(model: HeldModel, callers: ThreadPoolExecutor) -> None:
    embedder = OnnxEmbedder(model, slots=2)
    calls = [callers.submit(embedder.embed_query, "先本后息") for _ in range(4)]
    model.started.acquire()
    model.may_end.release()
    assert len({id(call.result()) for call in calls}) == 1
    assert model.ran == ["先本后息"]
    embedder.close()


def test_equal_texts_of_a_call_are_embedded_once(model: HeldModel) -> None:
    embedder = OnnxEmbedder(model, slots=1)
    model.may_end.release(2)
    left, other, right = embedder.embed_documents(["a", "b", "a"])
    assert left is right is not other
    assert sorted(model.ran) == ["a", "b"]
    embedder.close()


def test_the_query_that_was_not_asked_for_the_longest_is_forgotten_first(model: HeldModel) -> None:
    embedder = OnnxEmbedder(model, slots=1)
    model.may_end.release(QUERIES_KEPT + 3)
    for number in range(QUERIES_KEPT):
        embedder.embed_query(str(number))
    embedder.embed_query("0")
    embedder.embed_query("one more")
    model.ran.clear()
    embedder.embed_query("0")
    embedder.embed_query("1")
    assert model.ran == ["1"]
    embedder.close()
