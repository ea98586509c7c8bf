"""Calls as counts and times: how many, how they ended, how long they took, and where the time of recalls went."""

from __future__ import annotations

from functools import cache

from prometheus_client import CollectorRegistry, Counter, Histogram

from hummock.rpc.interceptor import EndedCall, stage_name
from hummock_client.v1 import recall_pb2

_CALL_S = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)
_STAGE_S = (0.00005, 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 2)

_METHOD = ("grpc_service", "grpc_method")
"""Labels, named as gRPC's own interceptors of other languages name them."""


class CallMetrics:
    """Counts calls that have ended. Safe to call from several threads.

    In a service with readers each process counts for itself, and whoever asks is told the sums.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        """Counts from zero, in this registry."""
        self._handled = Counter(
            "grpc_server_handled", "Calls that have ended, by their status.", (*_METHOD, "grpc_code"), registry=registry
        )
        self._handling = Histogram(
            "grpc_server_handling_seconds",
            "What calls took from their arrival to their answer; streams are left out.",
            _METHOD,
            buckets=_CALL_S,
            registry=registry,
        )
        self._waiting = Histogram(
            "hummock_queue_wait_seconds",
            "What calls waited before their work began; streams are left out.",
            _METHOD,
            buckets=_CALL_S,
            registry=registry,
        )
        self._stage = Histogram(
            "hummock_recall_stage_seconds",
            "What the stages of recalls took, cached answers as one stage.",
            ("stage",),
            buckets=_STAGE_S,
            registry=registry,
        )
        self._failed = Counter(
            "hummock_calls_failed",
            "Calls that failed, by the reason that their callers are told.",
            ("reason",),
            registry=registry,
        )
        self._degraded = Counter(
            "hummock_recall_degraded", "What recalls had to leave out, by the reason.", ("reason",), registry=registry
        )

    def ended(self, call: EndedCall) -> None:
        """Counts a call."""
        service, method = _parts(call.method)
        self._handled.labels(service, method, call.outcome).inc()
        if call.reason:
            self._failed.labels(call.reason).inc()
        if call.is_stream:
            return
        self._handling.labels(service, method).observe(call.took_s)
        if call.waited_s is not None:
            self._waiting.labels(service, method).observe(call.waited_s)
        if call.receipt is not None:
            for each in call.receipt.stages:
                elapsed = each.elapsed
                self._stage.labels(stage_name(each.stage)).observe(elapsed.seconds + elapsed.nanos * 1e-9)
        for left_out in call.degraded:
            self._degraded.labels(_reason_name(left_out.reason)).inc()


@cache
def _parts(method: str) -> tuple[str, str]:
    """Service and method of a name as it goes over the wire."""
    service, _, name = method.removeprefix("/").rpartition("/")
    return service, name


@cache
def _reason_name(reason: recall_pb2.DegradationReason.ValueType) -> str:
    return recall_pb2.DegradationReason.Name(reason).removeprefix("DEGRADATION_REASON_").lower()
