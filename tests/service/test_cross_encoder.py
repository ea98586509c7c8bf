"""A cross-encoder in the whole service: the toy one, set, overridden by requests, and inside a deadline."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hummock import models
from hummock_client.v1 import memory_pb2 as pb
from hummock_client.v1 import recall_pb2 as recall
from tests.service.calls import ask, degraded, learn, stages
from tests.service.running import Stubs, in_thread, settings

pytestmark = [pytest.mark.timed, pytest.mark.storeless]


@pytest.fixture(scope="module")
def encoding(tmp_path_factory: pytest.TempPathFactory, models_dir: Path) -> Iterator[Stubs]:
    name = models.build_tiny_reranker(models_dir).name
    tiny = models.build_tiny(models_dir).name
    data = tmp_path_factory.mktemp("data")
    chosen = settings(data, models_dir, tiny, cross_encoder="auto", cross_encoder_model=name)
    with in_thread(chosen) as stubs:
        for text in ("先本后息 the repayment", "等额本金 the instalments", "提前还款 the penalty"):
            learn(stubs, "p", pb.Memory(kind=pb.MEMORY_KIND_NOTE, content=text))
        yield stubs


def scores(answer: recall.RecallResponse) -> list[float]:
    return [hit.cross_encoder_score for hit in answer.hits]


def test_hits_are_in_the_order_of_the_cross_encoder(encoding: Stubs) -> None:
    """S1-16."""
    answer = ask(encoding, "p", "还款 the repayment", relevance_weight=1.0, near_twin_bar=2.0)
    assert answer.receipt.cross_encoded == len(answer.hits) == 3
    assert scores(answer) == sorted(scores(answer), reverse=True)
    assert "cross_encode" in stages(answer.receipt)
    assert not answer.degraded


def test_a_request_can_switch_it_off(encoding: Stubs) -> None:
    answer = ask(encoding, "p", "还款 the repayment", cross_encoder=recall.CROSS_ENCODER_OFF)
    assert answer.receipt.cross_encoded == 0
    assert scores(answer) == [0, 0, 0]


def test_a_deadline_that_is_far_leaves_room_for_all(encoding: Stubs) -> None:
    answer = encoding.context.Recall(
        project="p", query_text="先本后息", cross_encoder=recall.CROSS_ENCODER_ON, timeout=60
    )
    assert (answer.receipt.cross_encoded, list(answer.degraded)) == (3, [])


def test_equal_recalls_get_equal_scores(encoding: Stubs) -> None:
    first, second = (ask(encoding, "p", "利息 instalments") for _ in range(2))
    assert scores(first) == scores(second)


def test_a_service_without_one_says_so_when_asked_for_it(service: Stubs, project: str) -> None:
    learn(service, project, pb.Memory(kind=pb.MEMORY_KIND_NOTE, content="先本后息"))
    answer = ask(service, project, "先本后息", cross_encoder=recall.CROSS_ENCODER_ON)
    assert degraded(answer) == [("cross_encoder", "CROSS_ENCODER_ABSENT")]
    assert len(answer.hits) == 1
