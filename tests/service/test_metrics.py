"""Metrics for Prometheus: the sums of all processes, the state, and no text of anybody."""

from __future__ import annotations

import http.client
import re
import socket
import sys
from contextlib import closing
from pathlib import Path

import grpc
import pytest
from prometheus_client.parser import text_string_to_metric_families

from hummock.core.activity import Activity
from hummock.core.errors import StartError
from hummock.core.project import ServiceStatus
from hummock.observe.ledger import numbers_of
from hummock.observe.page import StateCollector, metrics_page
from hummock_client import Client
from hummock_client.errors import HummockCallError
from hummock_client.v1 import memory_service_pb2 as memory
from hummock_client.v1 import recall_pb2 as recall
from tests.service.calls import ask, learn
from tests.service.inputs import note
from tests.service.running import connected, in_process
from tests.service.test_access import token_of
from tests.service.test_watch import watching

DOCUMENTED = Path(__file__).parents[2] / "docs/metrics.md"
DASHBOARD = Path(__file__).parents[2] / "docs/grafana/hummock.json"
SECRET = "the-lamp-nobody-may-read-of"


class Page:
    """Samples of a page, by name and labels."""

    def __init__(self, text: str) -> None:
        self.text = text
        families = text_string_to_metric_families(text)
        self._samples = [sample for family in families for sample in family.samples]

    @property
    def names(self) -> set[str]:
        """Names of all samples; histograms also without the suffix `_bucket`."""
        return {made for one in self._samples for made in (one.name, one.name.removesuffix("_bucket"))}

    def value(self, name: str, **labels: str) -> float:
        """The sum of the samples of this name that have these labels."""
        found = [one.value for one in self._samples if one.name == name and labels.items() <= one.labels.items()]
        assert found, f"there is no {name} with {labels}"
        return sum(found)


def _names(file: Path) -> set[str]:
    """Metrics that a file names."""
    text = file.read_text(encoding="utf-8").replace("hummock_recall_degraded_total", "")
    return set(re.findall(r"\b(?:hummock|grpc_server)_[a-z_]+[a-z]", text)) - {"grpc_server"}


def read(port: int) -> Page:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
        connection.request("GET", "/metrics")
        response = connection.getresponse()
        assert response.status == 200
        return Page(response.read().decode())


def free_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port: int = taken.getsockname()[1]
    return port


_NEEDS_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="readers share a port as Linux does it")
_NEEDS_LMDB = pytest.mark.lmdb("readers follow LMDB beside its writer")


@pytest.mark.parametrize(
    "readers", [0, pytest.param(2, marks=[_NEEDS_LINUX, pytest.mark.lmdb("readers follow LMDB beside its writer")])]
)
def test_calls_of_all_processes_are_summed(tmp_path: Path, models_dir: Path, model: str, readers: int) -> None:
    """Chance decides which process a connection reaches; each of eight gets its recalls counted once."""
    port = free_port()
    environ = {"HUMMOCK_READERS": str(readers), "HUMMOCK_METRICS_PORT": str(port)}
    with in_process(tmp_path, models_dir, model, environ) as service:
        for number in range(8):
            with connected(service.target) as stubs:
                if not number:
                    learn(stubs, SECRET, note(f"{SECRET} one", id="one"), note("another", id="two"))
                ask(stubs, SECRET, f"where is {SECRET} {number}")
                ask(stubs, SECRET, f"where is {SECRET} {number}")
                with pytest.raises(grpc.RpcError):
                    stubs.memory.GetMemory(memory.GetMemoryRequest(project=SECRET, id="nobody"))
        with connected(service.target) as stubs, watching(stubs, SECRET):
            learn(stubs, SECRET, note("a third", id="three"))
        page = read(port)
        recall = {"grpc_service": "hummock.v1.ContextService", "grpc_method": "Recall"}
        assert page.value("grpc_server_handled_total", **recall, grpc_code="OK") == 16
        assert page.value("grpc_server_handling_seconds_count", **recall) == 16
        assert page.value("hummock_queue_wait_seconds_count", **recall) == 16
        assert page.value("grpc_server_handled_total", grpc_method="GetMemory", grpc_code="NOT_FOUND") == 8
        assert page.value("grpc_server_handled_total", grpc_method="Learn", grpc_code="OK") == 2
        computed = page.value("hummock_recall_stage_seconds_count", stage="gather")
        # A process answers an equal question of the same connection from its cache.
        assert computed == page.value("hummock_recall_stage_seconds_count", stage="cache") == 8
        assert page.value("hummock_readers") == readers
        assert page.value("hummock_projects") == 1
        assert page.value("hummock_store_used_bytes") > 0
        assert page.value("hummock_writes_refused") == 0
        assert page.value("hummock_queue_waiting", lane="read") == 0
        assert page.value("hummock_info", model=model) == 1
        assert page.value("process_resident_memory_bytes") > 0
        assert SECRET not in page.text
        # All that is documented and shown on the dashboard is there.
        for named in (_names(DOCUMENTED), _names(DASHBOARD)):
            assert len(named) > 10
            assert named <= page.names, named - page.names
        # A stream counts when it ends, and not as something that took long.
        assert 'grpc_server_handling_seconds_count{grpc_method="WatchMemories"' not in page.text


def test_who_is_turned_away_is_counted(tmp_path: Path, models_dir: Path, model: str) -> None:
    port = free_port()
    token_of(tmp_path, "ci", "shop:learn")
    with (
        in_process(tmp_path, models_dir, model, {"HUMMOCK_METRICS_PORT": str(port)}) as service,
        Client(service.target) as nobody,
    ):
        for _ in range(3):
            with pytest.raises(HummockCallError, match="TOKEN_INVALID"):
                nobody.recall("shop", "lamp")
        assert read(port).value("grpc_server_handled_total", grpc_method="Recall", grpc_code="UNAUTHENTICATED") == 3


def test_what_a_recall_left_out_is_counted(tmp_path: Path, models_dir: Path, model: str) -> None:
    port = free_port()
    environ = {"HUMMOCK_METRICS_PORT": str(port)}
    with in_process(tmp_path, models_dir, model, environ) as service, connected(service.target) as stubs:
        learn(stubs, "p", note("a lamp", id="one"))
        answer = ask(stubs, "p", "lamp", intent_mode=recall.INTENT_MODE_LLM)
        assert [one.reason for one in answer.degraded] == [recall.DEGRADATION_REASON_INTENT_ABSENT]
        assert read(port).value("hummock_recall_degraded_total", reason="intent_absent") == 1


def test_a_port_that_is_taken_is_said() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        said = f"metrics_port {port} of 127.0.0.1 cannot be used: Address already in use"
        state = StateCollector(_nobody, dict, _nothing, lambda: numbers_of([]))
        with pytest.raises(StartError, match=said), metrics_page(port, state):
            pass


def _nobody() -> ServiceStatus:
    raise AssertionError("nobody reads the page")


def _nothing() -> Activity:
    raise AssertionError("nobody reads the page")
