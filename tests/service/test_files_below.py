"""The whole service, and what happens to its directory and its limits while it runs."""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Iterator
from pathlib import Path

import grpc
import lmdb
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from hummock_client.v1 import admin_service_pb2 as admin
from hummock_client.v1 import memory_service_pb2 as memory
from hummock_client.v1 import recall_pb2 as recall
from tests.service.calls import ask, contents, learn
from tests.service.inputs import note
from tests.service.running import Stubs, connected, in_process

pytestmark = pytest.mark.lmdb("what lies below is PostgreSQL's own there")

SERVING, NOT_SERVING = health_pb2.HealthCheckResponse.SERVING, health_pb2.HealthCheckResponse.NOT_SERVING


def health(service: Stubs) -> Iterator[int]:
    """Each health that the service comes to have."""
    watch = health_pb2_grpc.HealthStub(service.channel).Watch(health_pb2.HealthCheckRequest(), timeout=60)
    return (answer.status for answer in watch)


def storage(service: Stubs) -> admin.StorageStatus:
    return service.admin.GetStatus(admin.GetStatusRequest()).storage


def refusal(service: Stubs) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.RpcError) as caught:
        learn(service, "p", note("lost"))
    error: grpc.RpcError = caught.value
    return error.code(), error.details() or ""


def test_a_service_whose_directory_is_gone_says_so_until_it_is_back(
    tmp_path: Path, models_dir: Path, model: str
) -> None:
    data = tmp_path / "data"
    with in_process(data, models_dir, model) as process, connected(process.target) as service:
        learn(service, "p", note("the lamp was lit", id="m"))
        states = health(service)
        assert next(states) == SERVING
        assert storage(service).write_state == admin.WRITE_STATE_WRITABLE
        data.rename(tmp_path / "away")
        assert next(states) == NOT_SERVING
        code, details = refusal(service)
        assert code is grpc.StatusCode.FAILED_PRECONDITION
        assert "was moved, removed or replaced" in details
        assert storage(service).write_state == admin.WRITE_STATE_REFUSED
        assert storage(service).write_fault == details
        assert contents(ask(service, "p", "the lamp")) == ["the lamp was lit"]
        (tmp_path / "away").rename(data)
        assert next(states) == SERVING
        learn(service, "p", note("the lamp went out", id="n"))


def test_a_service_whose_file_is_cut_short_refuses_and_lives(tmp_path: Path, models_dir: Path, model: str) -> None:
    with in_process(tmp_path, models_dir, model) as process, connected(process.target) as service:
        learn(service, "p", note("the lamp was lit", id="m"))
        states = health(service)
        assert next(states) == SERVING
        os.truncate(tmp_path / "data.mdb", 8192)
        assert next(states) == NOT_SERVING
        code, details = refusal(service)
        assert code is grpc.StatusCode.UNAVAILABLE
        assert "restore the directory from a backup" in details
        with pytest.raises(grpc.RpcError, match="cut short"):
            ask(service, "p", "never asked before")
        assert process.popen.poll() is None


def test_a_memory_that_the_disk_has_not_kept_is_left_out_and_said_to_be(
    tmp_path: Path, models_dir: Path, model: str
) -> None:
    with in_process(tmp_path, models_dir, model) as process, connected(process.target) as service:
        learn(service, "p", note("the lamp was lit", id="m"), note("the lamp went out", id="n"))
    with lmdb.open(str(tmp_path), max_dbs=64, map_size=1 << 30, lib_version=0) as env:
        payload = env.open_db(b"payload")
        with env.begin(write=True) as txn:
            key, value = next(iter(txn.cursor(payload)))
            txn.put(key, value.replace(b"lit", b"out"), db=payload)
    with in_process(tmp_path, models_dir, model) as process, connected(process.target) as service:
        found = ask(service, "p", "the lamp")
        assert contents(found) == ["the lamp went out"]
        assert [(one.part, one.reason) for one in found.degraded] == [
            (recall.DEGRADED_PART_MEMORIES, recall.DEGRADATION_REASON_RECORDS_DAMAGED)
        ]
        with pytest.raises(grpc.RpcError, match="memory m is damaged on the disk") as caught:
            service.memory.GetMemory(memory.GetMemoryRequest(project="p", id="m"))
        assert caught.value.code() is grpc.StatusCode.DATA_LOSS
        assert storage(service).damaged_count == 1
        assert next(health(service)) == SERVING


@pytest.mark.skipif(sys.platform != "linux", reason="limits of processes are read from /proc")
def test_the_service_may_open_as_many_files_as_the_system_allows(tmp_path: Path, models_dir: Path, model: str) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(512, hard), hard))
    try:
        with in_process(tmp_path, models_dir, model) as process:
            limits = Path(f"/proc/{process.popen.pid}/limits").read_text()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    (files,) = [line.split() for line in limits.splitlines() if line.startswith("Max open files")]
    assert files[3] == files[4] == str(hard)
