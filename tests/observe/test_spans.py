"""Exported spans: calls with their stages, the traces that they belong to, and no text of anybody."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from hummock.rpc.interceptor import stage_name
from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import memory_service_pb2 as memory
from tests.service.calls import ask, learn, recall_request
from tests.service.inputs import note
from tests.service.running import Stubs, connected, free_port, in_process
from tests.service.test_json_http import post


@dataclass
class Collector:
    """Received traces, as they came over the wire."""

    endpoint: str = ""
    sent: list[bytes] = field(default_factory=list)

    @property
    def requests(self) -> list[ExportTraceServiceRequest]:
        """All requests."""
        return [ExportTraceServiceRequest.FromString(data) for data in self.sent]

    @property
    def spans(self) -> list[Span]:
        """All spans, in the order of their beginning."""
        found = [
            span
            for request in self.requests
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]
        return sorted(found, key=lambda span: span.start_time_unix_nano)

    def named(self, name: str) -> list[Span]:
        """Spans with a name."""
        return [span for span in self.spans if span.name == name]

    def children_of(self, parent: Span) -> list[Span]:
        """Child spans of a span."""
        return [span for span in self.spans if span.parent_span_id == parent.span_id]

    def export(self, data: bytes, _: object) -> bytes:
        """Keeps a request."""
        self.sent.append(data)
        return ExportTraceServiceResponse().SerializeToString()


@contextmanager
def collecting() -> Iterator[Collector]:
    """A collector on a free port."""
    collector = Collector()
    handler = grpc.method_handlers_generic_handler(
        "opentelemetry.proto.collector.trace.v1.TraceService",
        {"Export": grpc.unary_unary_rpc_method_handler(collector.export)},
    )
    with ThreadPoolExecutor(2) as workers:
        server = grpc.server(workers, handlers=[handler])
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        collector.endpoint = f"http://127.0.0.1:{port}"
        try:
            yield collector
        finally:
            server.stop(grace=None).wait()


pytestmark = pytest.mark.long

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"
KEPT = (("traceparent", f"00-{TRACE}-{PARENT}-01"),)
NOT_KEPT = (("traceparent", f"00-{TRACE}-{PARENT}-00"),)
PROJECT = "the-lighthouse-project"
CONTENT = "the lamp burns whale oil"
QUERY = "which oil does the lamp burn"
RECALL = "hummock.v1.ContextService/Recall"


@contextmanager
def traced(
    directory: Path, models_dir: Path, model: str, environ: Mapping[str, str] | None = None
) -> Iterator[tuple[Stubs, Collector]]:
    """A service that tells a collector, and has told it all after the block."""
    with collecting() as collector:
        told = {"HUMMOCK_TRACES_ENDPOINT": collector.endpoint, **(environ or {})}
        with in_process(directory, models_dir, model, told) as service:
            with connected(service.target) as stubs:
                yield stubs, collector
            service.popen.send_signal(signal.SIGTERM)
            assert service.popen.wait(60) == 0


def _attributes(span: Span) -> dict[str, object]:
    return {one.key: getattr(one.value, str(one.value.WhichOneof("value"))) for one in span.attributes}


@pytest.mark.parametrize(
    "readers", [0, pytest.param(1, marks=pytest.mark.skipif(sys.platform != "linux", reason="readers are Linux's"))]
)
def test_a_recall_is_a_part_of_its_callers_trace_with_a_span_a_stage(
    tmp_path: Path, models_dir: Path, model: str, readers: int
) -> None:
    with traced(tmp_path, models_dir, model, {"HUMMOCK_READERS": str(readers)}) as (stubs, collector):
        learn(stubs, PROJECT, note(CONTENT, id="oil"))
        request = recall_request(PROJECT, QUERY)
        reply = stubs.context.Recall(request, metadata=KEPT)
        again = stubs.context.Recall(request, metadata=KEPT)
    first, second = collector.named(RECALL)
    for span in (first, second):
        assert span.trace_id.hex() == TRACE
        assert span.parent_span_id.hex() == PARENT
        assert span.kind == Span.SPAN_KIND_SERVER
        assert _attributes(span)["rpc.grpc.status_code"] == 0
        assert first.start_time_unix_nano <= first.end_time_unix_nano
    for span, answer, is_cached in ((first, reply, False), (second, again, True)):
        stages = collector.children_of(span)
        assert [one.name for one in stages] == [stage_name(one.stage) for one in answer.receipt.stages]
        assert _attributes(span)["hummock.cached"] is is_cached
        for one in stages:
            assert span.start_time_unix_nano <= one.start_time_unix_nano <= one.end_time_unix_nano
            assert one.end_time_unix_nano <= span.end_time_unix_nano
    # Nothing of what was said, asked or named is in what went over the wire.
    sent = b"".join(collector.sent)
    for text in (PROJECT, CONTENT, QUERY, "whale", "oil"):
        assert text.encode() not in sent
    assert b"hummock" in sent


def test_a_prompt_has_the_stages_of_its_recall_and_one_of_its_own(tmp_path: Path, models_dir: Path, model: str) -> None:
    with traced(tmp_path, models_dir, model) as (stubs, collector):
        learn(stubs, PROJECT, note(CONTENT, id="oil"))
        recall = recall_request(PROJECT, QUERY)
        reply = stubs.context.Render(context.RenderRequest(project=PROJECT, recall=recall), metadata=KEPT)
    (span,) = collector.named("hummock.v1.ContextService/Render")
    assert span.trace_id.hex() == TRACE
    names = [one.name for one in collector.children_of(span)]
    assert names == [*(stage_name(one.stage) for one in reply.receipt.stages), "render"]


def test_a_call_over_http_is_a_part_of_the_trace_in_its_header(tmp_path: Path, models_dir: Path, model: str) -> None:
    port = free_port()
    with traced(tmp_path, models_dir, model, {"HUMMOCK_HTTP_PORT": str(port)}) as (_, collector):
        body = {"project": PROJECT, "queryText": QUERY, "allowMissing": True}
        status, _ = post(port, "ContextService/Recall", body, traceparent=KEPT[0][1])
        assert status == 200
    (span,) = collector.named(RECALL)
    assert (span.trace_id.hex(), span.parent_span_id.hex()) == (TRACE, PARENT)


def test_a_call_that_fails_says_why_and_one_without_a_parent_begins_a_trace(
    tmp_path: Path, models_dir: Path, model: str
) -> None:
    with traced(tmp_path, models_dir, model) as (stubs, collector):
        with pytest.raises(grpc.RpcError):
            stubs.memory.GetMemory(memory.GetMemoryRequest(project=PROJECT, id="nobody"))
        stubs.context.Recall(recall_request(PROJECT, QUERY), metadata=(("traceparent", "garbage"),))
    (failed,) = collector.named("hummock.v1.MemoryService/GetMemory")
    assert failed.parent_span_id == b""
    assert _attributes(failed)["error.type"] == "PROJECT_NOT_FOUND"
    assert _attributes(failed)["rpc.grpc.status_code"] == 5
    (asked,) = collector.named(RECALL)
    assert asked.parent_span_id == b""
    assert asked.trace_id != failed.trace_id


def test_callers_and_then_the_ratio_say_which_traces_are_kept(tmp_path: Path, models_dir: Path, model: str) -> None:
    with traced(tmp_path, models_dir, model, {"HUMMOCK_TRACES_RATIO": "0"}) as (stubs, collector):
        request = recall_request(PROJECT, QUERY)
        stubs.context.Recall(request)
        stubs.context.Recall(request, metadata=NOT_KEPT)
        stubs.context.Recall(request, metadata=KEPT)
    (kept,) = collector.named(RECALL)
    assert kept.parent_span_id.hex() == PARENT


def test_a_collector_that_is_away_costs_no_call(tmp_path: Path, models_dir: Path, model: str) -> None:
    with collecting() as gone:
        endpoint = gone.endpoint
    log = tmp_path / "log"
    with (
        log.open("w") as lines,
        in_process(tmp_path / "data", models_dir, model, {"HUMMOCK_TRACES_ENDPOINT": endpoint}, lines) as service,
    ):
        with connected(service.target) as stubs:
            learn(stubs, PROJECT, note(CONTENT, id="oil"))
            assert [hit.memory.id for hit in ask(stubs, PROJECT, QUERY).hits] == ["oil"]
        service.popen.send_signal(signal.SIGTERM)
        assert service.popen.wait(60) == 0
    assert CONTENT not in log.read_text()
