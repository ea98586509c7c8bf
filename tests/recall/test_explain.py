"""Explain over a real store: where searching is not exact, where the model fails, where memories vanish."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from msgspec import structs

from hummock.core.explain import Explained, ExplainQuery, LossStage
from hummock.core.memory import QueryVector
from hummock.core.recall import RecallPath, RecallQuery
from hummock.ports.models import Embedder
from hummock.recall.explain import Explain
from hummock.recall.pipeline import Recall
from hummock.store.limits import PlanLimits
from tests.desk import Desk, ids, note
from tests.fakes import FakeClock
from tests.snapshots import over
from tests.store.opening import EAGER, opened
from tests.strategies import delete_request, unit_vector

COARSE = replace(
    EAGER, plans=PlanLimits(sign_rows=16, exact_rows=8, pool_rows=8, pool_per_result=1, pool_growth=1, widening=1)
)
"""A prefilter that misses many of the nearest."""


@pytest.fixture
def coarse(tmp_path: Path, embedder: Embedder) -> Iterator[Desk]:
    clock = FakeClock()
    with opened(tmp_path, clock=clock, space=embedder.space, limits=COARSE) as store:
        yield Desk(directory=tmp_path, store=store, embedder=embedder, clock=clock)


def explain(desk: Desk, query: RecallQuery, memory_id: str, embedder: Embedder | None = None) -> Explained:
    recall = Recall(embedder or desk.embedder, desk.clock)
    explaining = Explain(recall, desk.store, desk.embedder.space.calibration, desk.clock)
    return explaining(ExplainQuery(recall=query, memory_id=memory_id))


def given(desk: Desk, seed: int) -> QueryVector:
    return QueryVector(values=unit_vector(seed, desk.embedder.space.dim), emb_space=desk.embedder.space.id)


@pytest.mark.long
def test_what_a_prefilter_misses_is_brought_back_too(coarse: Desk) -> None:
    notes = [note(f"n{number}", f"n{number}") for number in range(200)]
    coarse.teach(*notes, vectors=[given(coarse, number) for number in range(200)])
    query = RecallQuery(
        project="p",
        text="zzz",
        vector=given(coarse, 999),
        paths=frozenset({RecallPath.VECTOR}),
        candidates=5,
        top_k=5,
        relevance_weight=1.0,
    )
    missed = 0
    for number in range(0, 200, 5):
        explained = explain(coarse, query, f"n{number}")
        assert explained.verdict is not None
        if explained.verdict.stage is None:
            continue
        missed += explained.verdict.value <= explained.verdict.threshold
        assert explained.remedy is not None
        recalled = over(coarse.store, Recall(coarse.embedder, coarse.clock))(explained.remedy.recall)
        assert ids(recalled)[explained.remedy.rank - 1] == f"n{number}"
    assert missed


def test_without_the_model_words_still_explain(desk: Desk) -> None:
    class Broken:
        """The embedder, but that it fails."""

        space = desk.embedder.space

        def embed_query(self, text: str, left_s: float | None = None, gloss: object = None) -> None:
            raise RuntimeError(text)

    desk.teach(note("the harbour is deep", "a"), note("bread is baked", "b"))
    broken: Embedder = Broken()  # type: ignore[assignment] # only what a recall asks of it
    query = RecallQuery(project="p", text="harbour")
    found, lost = explain(desk, query, "a", broken), explain(desk, query, "b", broken)
    assert found.verdict is not None
    assert lost.verdict is not None
    assert found.verdict.stage is None
    assert (lost.verdict.stage, lost.remedy) == (LossStage.CANDIDATES, None)
    assert [each.reason for each in lost.verdict.degraded] == ["EMBEDDER_FAILED"]
    assert "No change" in lost.sentence


def test_a_deadline_that_has_passed_ends_the_search_for_changes(desk: Desk) -> None:
    desk.teach(note("the harbour is deep", "a"))
    query = RecallQuery(project="p", text="harbour", min_similarity=1.0, paths=frozenset({RecallPath.VECTOR}))
    late = structs.replace(query, until_s=desk.clock.monotonic())
    assert explain(desk, query, "a").remedy is not None
    in_time, too_late = explain(desk, query, "a"), explain(desk, late, "a")
    assert too_late.verdict == in_time.verdict
    assert too_late.remedy is None


def test_a_memory_without_vectors_of_any_length_is_explained(desk: Desk) -> None:
    zero = np.zeros(desk.embedder.space.dim, np.float32)
    desk.teach(note("zzz", "a"), vectors=[QueryVector(values=zero, emb_space=desk.embedder.space.id)])
    query = RecallQuery(project="p", text="harbour", candidates=1, top_k=1)
    explained = explain(desk, query, "a")
    assert explained.verdict is not None
    assert explained.verdict.stage is None
    assert explained.verdict.numbers is not None
    assert np.isfinite(explained.verdict.numbers.cosine)


def test_what_was_deleted_is_not_found(desk: Desk) -> None:
    desk.teach(note("the harbour is deep", "a"))
    desk.store.write("p", delete_request(["a"])).result(30)
    assert explain(desk, RecallQuery(project="p", text="harbour"), "a").verdict is None
