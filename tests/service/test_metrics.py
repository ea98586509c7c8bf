"""Metrics for Prometheus and activity in GetStatus: the sums of all processes, the state, and no text of anybody."""

from __future__ import annotations

import http.client
import json
import re
import socket
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from typer.testing import CliRunner

from hummock.cli.main import app
from hummock.core.activity import Activity
from hummock.core.errors import StartError
from hummock.core.project import ServiceStatus
from hummock.observe.ledger import numbers_of
from hummock.observe.page import StateCollector, metrics_page
from hummock_client import Client
from hummock_client.errors import HummockCallError
from hummock_client.v1 import admin_service_pb2 as admin
from hummock_client.v1 import recall_pb2 as recall
from tests.service.calls import ask, failure, learn, stages, watching
from tests.service.inputs import note
from tests.service.running import Stubs, connected, free_port, in_process
from tests.service.test_access import token_of

pytestmark = [pytest.mark.long, pytest.mark.timed]

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


_NEEDS_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="readers share a port as Linux does it")
_NEEDS_LMDB = pytest.mark.lmdb("readers follow LMDB beside its writer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What a service says of 16 recalls, half of them from a cache, 8 reads that fail and a write.

    The page has another write and a watch.
    """

    readers: int
    page: Page
    status: admin.GetStatusResponse
    ran: set[str]
    left_out: tuple[list[recall.DegradationReason.ValueType], Page]
    """Reasons of a recall that left something out, and the page after it."""


@pytest.fixture(scope="module", params=[0, pytest.param(2, marks=[_NEEDS_LINUX, _NEEDS_LMDB])])
def counted(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, models_dir: Path, model: str
) -> Counted:
    """Chance decides which process a connection reaches; each of eight has one recall computed and one from a cache."""
    port, ran = free_port(), set[str]()
    environ = {"HUMMOCK_READERS": str(request.param), "HUMMOCK_METRICS_PORT": str(port)}
    with in_process(tmp_path_factory.mktemp("metrics"), models_dir, model, environ) as service:
        for number in range(8):
            with connected(service.target) as stubs:
                if not number:
                    learn(stubs, SECRET, note(f"{SECRET} one", id="one"), note("another", id="two"))
                for _ in range(2):
                    ran.update(stages(ask(stubs, SECRET, f"where is {SECRET} {number}").receipt))
                failure(stubs.memory.GetMemory, project=SECRET, id="nobody")
        with connected(service.target) as stubs:
            status = stubs.admin.GetStatus()
            with watching(stubs, SECRET):
                learn(stubs, SECRET, note("a third", id="three"))
            page = read(port)
            degraded = ask(stubs, SECRET, "lamp", intent_mode=recall.INTENT_MODE_LLM).degraded
        left_out = [one.reason for one in degraded], read(port)
        return Counted(readers=request.param, page=page, status=status, ran=ran, left_out=left_out)


def test_calls_of_all_processes_are_summed(counted: Counted, model: str) -> None:
    page = counted.page
    called = {"grpc_service": "hummock.v1.ContextService", "grpc_method": "Recall"}
    assert page.value("grpc_server_handled_total", **called, grpc_code="OK") == 16
    assert page.value("grpc_server_handling_seconds_count", **called) == 16
    assert page.value("hummock_queue_wait_seconds_count", **called) == 16
    assert page.value("grpc_server_handled_total", grpc_method="GetMemory", grpc_code="NOT_FOUND") == 8
    assert page.value("grpc_server_handled_total", grpc_method="Learn", grpc_code="OK") == 2
    computed = page.value("hummock_recall_stage_seconds_count", stage="gather")
    # A process answers an equal question of the same connection from its cache.
    assert computed == page.value("hummock_recall_stage_seconds_count", stage="cache") == 8
    assert page.value("hummock_readers") == counted.readers
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


def test_the_status_tells_the_calls_of_all_processes(counted: Counted) -> None:
    told = counted.status.activity
    of = {each.method.rpartition("/")[2]: each for each in told.methods}
    recalls = of["Recall"]
    assert (recalls.ok_count, recalls.failed_count, recalls.latency.count) == (16, 0, 16)
    assert recalls.rate > 0
    latency = recalls.latency
    assert latency.p50.ToNanoseconds() <= latency.p95.ToNanoseconds() <= latency.p99.ToNanoseconds()
    assert (of["GetMemory"].failed_count, of["Learn"].ok_count) == (8, 1)
    assert [(each.reason, each.count) for each in told.failures] == [("MEMORY_NOT_FOUND", 8)]
    assert (told.recall_count, told.cache_hit_count) == (16, 8)
    assert sum(told.recall_rates) > 0
    names = {
        each.stage: recall.RecallStage.Name(each.stage).removeprefix("RECALL_STAGE_").lower() for each in told.stages
    }
    assert set(names.values()) == counted.ran
    assert {each.stage: each.latency.count for each in told.stages}[recall.RECALL_STAGE_CACHE] == 8
    assert told.process_count == 1 + counted.readers
    assert told.model_slot_count > counted.readers
    assert counted.status.running_calls >= 1


def test_what_a_recall_left_out_is_counted(counted: Counted) -> None:
    reasons, page = counted.left_out
    assert reasons == [recall.DEGRADATION_REASON_INTENT_ABSENT]
    assert page.value("hummock_recall_degraded_total", reason="intent_absent") == 1


@pytest.mark.storeless
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
