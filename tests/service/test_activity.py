"""Activity in GetStatus, over all processes, and in `hummock status`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import grpc
import pytest
from typer.testing import CliRunner

from hummock.cli.main import app
from hummock_client.v1 import admin_service_pb2 as admin
from hummock_client.v1 import memory_service_pb2 as memory
from hummock_client.v1 import recall_pb2
from tests.service.calls import ask, learn, stages
from tests.service.inputs import note
from tests.service.running import Stubs, connected, in_process

_NEEDS_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="readers share a port as Linux does it")
_NEEDS_LMDB = pytest.mark.lmdb("readers follow LMDB beside its writer")


def _of(activity: admin.Activity, method: str) -> admin.MethodActivity:
    return next(each for each in activity.methods if each.method.rpartition("/")[2] == method)


@pytest.mark.parametrize(
    "readers", [0, pytest.param(2, marks=[_NEEDS_LINUX, pytest.mark.lmdb("readers follow LMDB beside its writer")])]
)
def test_calls_of_all_processes_are_told(tmp_path: Path, models_dir: Path, model: str, readers: int) -> None:
    """Chance decides which process a connection reaches; each of eight has one recall computed and one from a cache."""
    with in_process(tmp_path, models_dir, model, {"HUMMOCK_READERS": str(readers)}) as service:
        ran: set[str] = set()
        for number in range(8):
            with connected(service.target) as stubs:
                if not number:
                    learn(stubs, "shop", note("the lamp is lit", id="lamp"))
                for _ in range(2):
                    ran.update(stages(ask(stubs, "shop", f"which lamp is lit {number}").receipt))
                with pytest.raises(grpc.RpcError):
                    stubs.memory.GetMemory(memory.GetMemoryRequest(project="shop", id="nobody"))
        with connected(service.target) as stubs:
            status = stubs.admin.GetStatus(admin.GetStatusRequest())
    told = status.activity
    recall = _of(told, "Recall")
    assert (recall.ok_count, recall.failed_count, recall.latency.count) == (16, 0, 16)
    assert recall.rate > 0
    assert recall.latency.p50.ToNanoseconds() <= recall.latency.p95.ToNanoseconds()
    assert recall.latency.p95.ToNanoseconds() <= recall.latency.p99.ToNanoseconds()
    assert (_of(told, "GetMemory").failed_count, _of(told, "Learn").ok_count) == (8, 1)
    assert [(each.reason, each.count) for each in told.failures] == [("MEMORY_NOT_FOUND", 8)]
    assert (told.recall_count, told.cache_hit_count) == (16, 8)
    assert sum(told.recall_rates) > 0
    assert {
        recall_pb2.RecallStage.Name(each.stage).removeprefix("RECALL_STAGE_").lower() for each in told.stages
    } == ran
    assert {each.stage: each.latency.count for each in told.stages}[recall_pb2.RECALL_STAGE_CACHE] == 8
    assert told.process_count == 1 + readers
    assert told.model_slot_count > readers
    assert status.running_calls >= 1


def test_status_says_what_the_service_does(service: Stubs, project: str) -> None:
    learn(service, project, note("the lamp is lit", id="lamp"))
    ask(service, project, "lamp")
    said = CliRunner().invoke(app, ["status", "--target", service.target])
    assert said.exit_code == 0, said.output
    for beginning in ("  recalls  ", "  latency  p50 ", "    gather ", "  cache    ", "  indexes  ", "  slots    "):
        assert f"\n{beginning}" in said.stdout
    told = json.loads(CliRunner().invoke(app, ["status", "--json", "--target", service.target]).stdout)
    assert int(told["activity"]["recallCount"]) >= 1
    assert project not in said.stdout
