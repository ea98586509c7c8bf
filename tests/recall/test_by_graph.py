"""What a recall, an explanation and a project say of the graph that found the nearest memories."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from hummock.core.explain import ExplainQuery
from hummock.core.memory import QueryVector
from hummock.core.project import GraphState
from hummock.core.recall import RecallQuery
from hummock.core.settings import IndexPolicy
from hummock.ports.models import Embedder
from hummock.projects.projects import Projects
from hummock.recall.explain import Explain
from hummock.recall.pipeline import Recall
from hummock.rpc.context_service import explain_response
from hummock.rpc.project_service import project_message
from hummock.store.limits import PlanLimits
from hummock.store.search.graph_builder import FEWEST_QUESTIONS, GraphBuilder
from hummock_client.v1 import project_service_pb2, recall_pb2
from tests.desk import Desk, note
from tests.fakes import FakeClock
from tests.rpc.plain_replies import recall_response
from tests.store.opening import EAGER, opened
from tests.strategies import unit_vector
from tests.sure import sure

pytest.importorskip("hnswlib", reason="hnswlib is not installed: the extra `graph` needs a C++ compiler")
pytestmark = pytest.mark.timed

_MEMORIES = 80
_LIMITS = replace(EAGER, ops_kept=1024, plans=PlanLimits(sign_rows=16, exact_rows=8))


@pytest.fixture
def desk(tmp_path: Path, embedder: Embedder) -> Iterator[Desk]:
    """A project that has asked as many questions as a graph needs."""
    clock = FakeClock()
    with opened(tmp_path, clock=clock, space=embedder.space, limits=_LIMITS, index=IndexPolicy.GRAPH) as store:
        desk = Desk(directory=tmp_path, store=store, embedder=embedder, clock=clock)
        notes = [note(f"n{number}", f"n{number}") for number in range(_MEMORIES)]
        desk.teach(*notes, vectors=[given(desk, number) for number in range(_MEMORIES)])
        yield desk


def given(desk: Desk, seed: int) -> QueryVector:
    return QueryVector(values=unit_vector(seed, desk.embedder.space.dim), emb_space=desk.embedder.space.id)


def query(desk: Desk, seed: int) -> RecallQuery:
    return RecallQuery(project="p", text="zzz", vector=given(desk, seed), min_similarity=-1.0)


def build(desk: Desk) -> None:
    for number in range(FEWEST_QUESTIONS):
        desk.recall("zzz", vector=given(desk, 1000 + number))
    builder = desk.store.views._graphs
    assert isinstance(builder, GraphBuilder)
    builder._builds.submit(int).result(30)


def test_a_receipt_says_with_what_recall_a_graph_answered(desk: Desk) -> None:
    before = desk.recall("zzz", vector=given(desk, 5), min_similarity=-1.0)
    assert [group.graph_recall for group in before.receipt.groups] == [None] * len(before.receipt.groups)
    build(desk)
    after = desk.recall("zzz", vector=given(desk, 5), min_similarity=-1.0)
    (by_graph,) = [group for group in after.receipt.groups if group.graph_recall is not None]
    assert by_graph.name == "main"
    assert [hit.memory.id for hit in after.hits] == [hit.memory.id for hit in before.hits]
    said_before, said = (recall_response(each, with_raw=False).receipt.groups for each in (before, after))
    assert [group.graph_recall for group in said] == [by_graph.graph_recall]
    assert not any(group.HasField("graph_recall") for group in said_before)


def test_an_explanation_says_so_too(desk: Desk) -> None:
    recall = Recall(desk.embedder, desk.clock)
    explain = Explain(recall, desk.store, desk.embedder.space.calibration, desk.clock)
    asked = ExplainQuery(recall=query(desk, 5), memory_id="n5")
    request = recall_pb2.RecallRequest()
    assert not explain_response(request, explain(asked)).HasField("graph_recall")
    build(desk)
    assert explain_response(request, explain(asked)).graph_recall >= 0.99


def test_a_project_says_what_became_of_its_graph(desk: Desk) -> None:
    projects = Projects(desk.store, ())
    assert projects.get("p").graph is None
    desk.recall("zzz", vector=given(desk, 5))
    assert sure(projects.get("p").graph).state is GraphState.NONE
    build(desk)
    shown = project_message(projects.get("p"), whole=True).graph
    assert (shown.state, shown.row_count) == (project_service_pb2.GRAPH_STATE_KEPT, _MEMORIES)
    assert shown.recall >= 0.99
    assert shown.time_share > 0
    assert not project_message(projects.stored("p"), whole=False).HasField("graph")
