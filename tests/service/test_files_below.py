"""The service, and what happens to its directory and its limits while it runs or before it starts."""

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

from hummock.wiring.service import open_use_cases
from hummock_client.v1 import admin_service_pb2 as admin
from hummock_client.v1 import recall_pb2 as recall
from tests.service.calls import ask, contents, failure, learn
from tests.service.inputs import note
from tests.service.running import Stubs, connected, in_process, in_thread, settings
from tests.store.aging import made_old

pytestmark = [pytest.mark.long, pytest.mark.timed, pytest.mark.lmdb("what lies below is PostgreSQL's own there")]

SERVING, NOT_SERVING = health_pb2.HealthCheckResponse.SERVING, health_pb2.HealthCheckResponse.NOT_SERVING


def health(service: Stubs) -> Iterator[int]:
    """Each health that the service comes to have."""
    watch = health_pb2_grpc.HealthStub(service.channel).Watch(health_pb2.HealthCheckRequest(), timeout=60)
    return (answer.status for answer in watch)


def storage(service: Stubs) -> admin.StorageStatus:
    return service.admin.GetStatus().storage


def refusal(service: Stubs) -> tuple[grpc.StatusCode, str]:
    refused = failure(learn, service, "p", note("lost"))
    return refused.code, refused.message


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
            service.memory.GetMemory(project="p", id="m")
        assert caught.value.code() is grpc.StatusCode.DATA_LOSS
        assert storage(service).damaged_count == 1
        assert next(health(service)) == SERVING


@pytest.fixture
def most_files() -> Iterator[int]:
    """The hard limit; the soft one is low meanwhile, as it is where services are started."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    low = min(512, hard // 2)
    resource.setrlimit(resource.RLIMIT_NOFILE, (low, hard))
    yield hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_a_service_takes_as_many_connections_as_the_system_allows(
    tmp_path: Path, models_dir: Path, model: str, most_files: int
) -> None:
    """D12."""
    with in_process(tmp_path, models_dir, model) as process:
        limits = Path(f"/proc/{process.popen.pid}/limits").read_text("utf-8")
    (row,) = [line.split() for line in limits.splitlines() if line.startswith("Max open files")]
    assert (int(row[3]), int(row[4])) == (most_files, most_files)


def test_what_an_earlier_version_learnt_is_found_by_its_words_again(
    tmp_path: Path, models_dir: Path, model: str
) -> None:
    """S4-44: nothing is wiped, and the start says what takes it so long."""
    chosen = settings(tmp_path, models_dir, model)
    with in_thread(chosen) as service:
        learn(service, "p", note("火车 leaves at nine, says __str__", id="a"), note("nothing of the kind", id="b"))
        before = [ask(service, "p", text).hits for text in ("火车", "__str__", "leaving")]
    made_old(tmp_path)
    lines: list[str] = []
    with open_use_cases(chosen, lines.append):
        pass
    assert "the words of 2 memories are made anew" in lines
    with in_thread(chosen) as service:
        after = [ask(service, "p", text).hits for text in ("火车", "__str__", "leaving")]
    assert [[hit.memory.id for hit in hits] for hits in after] == [[hit.memory.id for hit in hits] for hits in before]
    assert [hits[0].memory.id for hits in after] == ["a"] * 3
    assert [list(hits[0].matched_terms) for hits in after] == [list(hits[0].matched_terms) for hits in before]
