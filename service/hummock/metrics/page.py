"""The page that Prometheus reads, on a port of its own that this machine alone reaches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from prometheus_client import CollectorRegistry, ProcessCollector, start_http_server
from prometheus_client.multiprocess import MultiProcessCollector

from hummock.core.errors import StartError
from hummock.metrics.calls import CallMetrics
from hummock.metrics.state import StateCollector

HOST: Final = "127.0.0.1"


@contextmanager
def metrics_page(port: int, state: StateCollector, folder: str | None = None) -> Iterator[tuple[CallMetrics, str]]:
    """The page, for as long as a block runs: what counts calls for it, and its address.

    Args:
        port: Of loopback; 0 takes a free one.
        state: Asked each time that somebody reads the page.
        folder: Where several processes count into files, whose sums the page tells; None where this one is alone.

    Raises: StartError.
    """
    page = CollectorRegistry()
    if folder is not None:
        calls = CallMetrics(CollectorRegistry())
        MultiProcessCollector(page, folder)  # type: ignore[no-untyped-call]  # the library's own has no types
    else:
        calls = CallMetrics(page)
    ProcessCollector(registry=page)
    page.register(state)
    try:
        server, thread = start_http_server(port, HOST, page)
    except OSError as error:
        raise StartError(f"metrics_port {port} of {HOST} cannot be used: {error.strerror}") from error
    try:
        yield calls, f"http://{HOST}:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
