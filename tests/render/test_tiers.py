"""Answers of a recall do not depend on what happens to be in memory, nor on a model that hangs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Event
from typing import cast

import pytest
from msgspec.structs import replace

from hummock.core.embedding import Embedding, EmbeddingSpace
from hummock.core.recall import RecallPath, RecallQuery
from hummock.core.render import SearchQuery, SearchScope
from hummock.models import OnnxEmbedder
from hummock.ports.models import Embedder
from hummock.ports.store import Store
from hummock.recall.pipeline import Recall
from hummock.recall.stage_budget import RESERVE_S
from hummock.render.search import Search, SearchTrails
from tests.desk import Desk, domain, fragment, ids, note
from tests.fakes import FakeClock
from tests.snapshots import over
from tests.store.opening import opened
from tests.workplace import WordEmbedder, workplace
from tests.workplace import note as remembered


def test_projects_take_turns_in_memory_and_answer_as_if_all_were_there(tmp_path: Path) -> None:
    """S0-09, 1.1-16: rows in memory, loaded from the disk for a project and given up for another."""
    with workplace(tmp_path) as work:
        for project in ("p", "q"):
            work.teach(
                *(remembered(f"harbour {number} of {project}", f"n{number}") for number in range(5)), project=project
            )
        resident = [found(work.store, project) for project in ("p", "q")]
    with opened(tmp_path, clock=FakeClock(), memory_budget_bytes=1) as small:
        for _ in range(2):
            assert [found(small, project) for project in ("p", "q")] == resident
            assert small.status().loaded_project_count == 1


def found(store: Store, project: str) -> list[tuple[str, float]]:
    recall = over(store, Recall(WordEmbedder(), FakeClock()))
    return [(hit.memory.id, hit.score) for hit in recall(RecallQuery(project=project, text="harbour 3")).hits]


class Stuck:
    """The toy model, which does not answer queries before the test lets it."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.may_answer = Event()

    @property
    def space(self) -> EmbeddingSpace:
        return self._embedder.space

    def embed_query(self, text: str, gloss: str | None = None) -> Embedding:
        assert self.may_answer.wait(30)
        return self._embedder.embed_query(text)

    def embed_chunk(self, text: str, first: Embedding | None, *, gives_way: bool = False) -> Embedding:
        ((embedding,),) = self._embedder.embed_documents([[text]])
        return embedding

    def split(self, header: str, body: str) -> list[str]:
        return self._embedder.split(header, body)

    def close(self) -> None:
        pass


@pytest.fixture
def stuck(desk: Desk) -> Iterator[Stuck]:
    model = Stuck(desk.embedder)
    yield model
    model.may_answer.set()


def test_words_do_not_wait_for_a_model_that_hangs(desk: Desk, stuck: Stuck) -> None:
    """1.1-12, S0-12: no path waits for another's inference, and what the model finds late serves the next time."""
    desk.teach(note("the harbour is deep", "a"))
    embedder = OnnxEmbedder(stuck, slots=1)
    recall = over(desk.store, Recall(embedder, desk.clock))
    query = RecallQuery(project="p", text="harbour")
    words = recall(replace(query, paths=frozenset({RecallPath.KEYWORD})))
    assert (ids(words), words.degraded) == (["a"], ())
    hurried = recall(replace(query, until_s=desk.clock.monotonic() + RESERVE_S + 0.02))
    assert (ids(hurried), [(each.path, each.reason) for each in hurried.degraded]) == (["a"], [("vector", "DEADLINE")])
    stuck.may_answer.set()
    patient = recall(query)
    assert (ids(patient), patient.degraded) == (["a"], ())
    assert patient.hits[0].cosine > 0
    embedder.close()


class Pointing:
    """A model for which every query means the same."""

    def __init__(self, desk: Desk) -> None:
        self.space = desk.embedder.space
        self._vector = desk.pointing(1).values

    def embed_query(self, text: str, timeout_s: float | None = None, gloss: str | None = None) -> Embedding:
        return Embedding(vector=self._vector, tokens=self.space.no_tokens())


@pytest.mark.parametrize(
    ("scope", "expected"),
    [(SearchScope.CODE, ["near code", "far code"]), (SearchScope.KNOWLEDGE, ["near domain", "far note"])],
)
def test_code_and_knowledge_are_both_found_by_meaning(desk: Desk, scope: SearchScope, expected: Sequence[str]) -> None:
    """S1-10, S1-16: none of them holds a word of the query."""
    drafts = [
        replace(fragment("b.py", "x"), id="far code"),
        replace(fragment("a.py", "y"), id="near code"),
        note("天气很好", "far note"),
        domain("还款", "near domain"),
    ]
    vectors = [desk.pointing(0.3, 1), desk.pointing(1, 0.1), desk.pointing(0.2, 0, 1), desk.pointing(1, 0, 0.2)]
    desk.teach(*drafts, vectors=vectors)
    recall = over(desk.store, Recall(cast(Embedder, Pointing(desk)), desk.clock))
    search = Search(recall, SearchTrails(desk.clock.monotonic), desk.store)
    results = search(SearchQuery(project="p", text="unheard", scope=scope)).results
    assert [result.memory_id for result in results] == expected
