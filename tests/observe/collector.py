"""A collector of traces: OTLP over gRPC on a real socket, which keeps what it was sent."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

import grpc
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span


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
