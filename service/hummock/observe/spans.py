"""OpenTelemetry spans of calls: each continues its caller's trace, and has a child for each stage of its recall.

A call that ends puts its numbers into a queue. A thread makes spans of them afterwards, with the original times; the
SDK sends them in batches. Spans that cannot be sent are lost and logged; no call waits for them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from queue import SimpleQueue
from threading import Thread
from typing import Final, NamedTuple

import grpc
import structlog
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.trace import SpanKind, Status, StatusCode, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from hummock.rpc.interceptor import EndedCall, stage_name

_SEND_S: Final = 3.0
"""Longest time, in seconds, to send a batch, with repeated attempts; the service waits for one when it stops."""

_MOST_WAITING: Final = 4096
"""Upper bound on queued calls; more are left out."""

_WITH_PROMPT: Final = frozenset({"Render", "RenderTurn"})
"""Methods that render a prompt after their recall."""

_NANOSECONDS: Final = 1_000_000_000
_INVALID_CALLS: Final = frozenset(
    {"UNKNOWN", "DEADLINE_EXCEEDED", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS"}
)
"""Statuses that are the service's own failures, by OpenTelemetry's conventions for gRPC."""

_log = structlog.get_logger("hummock.traces")


class _Call(NamedTuple):
    """Data of an ended call for its spans. It keeps no message alive."""

    ended: EndedCall
    stages: tuple[tuple[str, int], ...]
    recall_ns: int
    is_cached: bool


class CallSpans:
    """Meter that makes spans of calls."""

    def __init__(self, provider: TracerProvider) -> None:
        """Start a thread that makes spans with this provider until `close`."""
        self._tracer = provider.get_tracer("hummock")
        self._context = TraceContextTextMapPropagator()
        self._waiting: SimpleQueue[_Call | None] = SimpleQueue()
        self._thread = Thread(target=self._run, name="traces", daemon=True)
        self._thread.start()

    def ended(self, call: EndedCall) -> None:
        """Queue a call, unless the queue is full."""
        if self._waiting.qsize() >= _MOST_WAITING:
            return
        receipt = call.receipt
        if receipt is None:
            self._waiting.put(_Call(call, (), 0, is_cached=False))
            return
        stages = tuple((stage_name(each.stage), each.elapsed.ToNanoseconds()) for each in receipt.stages)
        bare = _without_messages(call)
        self._waiting.put(_Call(bare, stages, receipt.elapsed.ToNanoseconds(), is_cached=receipt.cached))

    def close(self) -> None:
        """Make spans of the queued calls, and end the thread."""
        self._waiting.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (call := self._waiting.get()) is not None:
            try:
                self._make(call)
            except Exception:
                # The thread must survive: without it there would be no more spans.
                _log.exception("spans_not_made", method=call.ended.method)

    def _make(self, call: _Call) -> None:
        ended = call.ended
        service, _, method = ended.method.removeprefix("/").rpartition("/")
        end_ns = int(ended.ended_at * _NANOSECONDS)
        start_ns = end_ns - int(ended.took_s * _NANOSECONDS)
        span = self._tracer.start_span(
            f"{service}/{method}",
            context=self._context.extract(ended.trace, context=Context()),
            kind=SpanKind.SERVER,
            attributes={
                "rpc.system": "grpc",
                "rpc.service": service,
                "rpc.method": method,
                "rpc.grpc.status_code": int(grpc.StatusCode[ended.outcome].value[0]),
            },
            start_time=start_ns,
        )
        if span.is_recording():
            if ended.reason:
                span.set_attribute("error.type", ended.reason)
            if ended.outcome in _INVALID_CALLS:
                span.set_status(Status(StatusCode.ERROR))
            if ended.waited_s is not None:
                span.set_attribute("hummock.wait_s", ended.waited_s)
            if call.stages:
                span.set_attribute("hummock.cached", call.is_cached)
                work_ns = start_ns + int((ended.waited_s or 0.0) * _NANOSECONDS)
                self._make_stages(call, method, set_span_in_context(span, Context()), work_ns, end_ns)
        span.end(end_ns)

    def _make_stages(self, call: _Call, method: str, parent: Context, work_ns: int, end_ns: int) -> None:
        """Make consecutive child spans: a receipt has the order and duration of stages, not their start times."""
        at_ns = work_ns
        for name, elapsed_ns in call.stages:
            until_ns = min(at_ns + elapsed_ns, end_ns)
            self._tracer.start_span(name, context=parent, start_time=at_ns).end(until_ns)
            at_ns = until_ns
        if method in _WITH_PROMPT:
            written_from_ns = min(max(at_ns, work_ns + call.recall_ns), end_ns)
            self._tracer.start_span("render", context=parent, start_time=written_from_ns).end(end_ns)


def _without_messages(call: EndedCall) -> EndedCall:
    """The call without its receipt, which would keep the whole reply in memory."""
    return EndedCall(
        method=call.method,
        outcome=call.outcome,
        reason=call.reason,
        took_s=call.took_s,
        waited_s=call.waited_s,
        is_stream=call.is_stream,
        receipt=None,
        degraded=(),
        ended_at=call.ended_at,
        trace=call.trace,
    )


@contextmanager
def spans_to(endpoint: str, ratio: float) -> Iterator[CallSpans]:
    """A `CallSpans` that sends its spans, for a block of code.

    Args:
        endpoint: A collector for OTLP over gRPC, such as `http://127.0.0.1:4317`, or `https` for TLS.
        ratio: Share of the traces beginning here that are sampled, in [0, 1]; callers decide about others.
    """
    _log_of_sdk()
    provider = TracerProvider(
        sampler=ParentBased(TraceIdRatioBased(ratio)),
        resource=Resource.create({SERVICE_NAME: "hummock", SERVICE_VERSION: version("hummock")}),
        shutdown_on_exit=False,
    )
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint, timeout=_SEND_S)))
    spans = CallSpans(provider)
    try:
        yield spans
    finally:
        spans.close()
        provider.shutdown()


class _ToOurLog(logging.Handler):
    """Handler that writes the SDK's messages to this process's log."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line."""
        _log.warning("traces", said=record.getMessage())


def _log_of_sdk() -> None:
    of_sdk = logging.getLogger("opentelemetry")
    if not of_sdk.handlers:
        of_sdk.addHandler(_ToOurLog(logging.WARNING))
        of_sdk.propagate = False
