"""Metrics of a service and its readers, where the settings want them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory

from hummock.config import Settings
from hummock.core.activity import Activity
from hummock.rpc.interceptor import Meter
from hummock.rpc.lanes import Lanes
from hummock.rpc.methods import UseCases
from hummock.wiring.parts import Say

_SHARED_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""Name of an environment variable that the library reads once, on import: nothing of `metrics` may be imported
earlier."""


@contextmanager
def counting_together(settings: Settings) -> Iterator[None]:
    """Has this process and those that are started within the block count into one folder, where there are several."""
    if settings.metrics_port is None or not settings.readers:
        yield
        return
    with TemporaryDirectory(prefix="hummock-metrics-") as folder:
        os.environ[_SHARED_FOLDER] = folder
        try:
            yield
        finally:
            del os.environ[_SHARED_FOLDER]


@contextmanager
def metering(
    settings: Settings, use_cases: UseCases, lanes: Lanes, activity: Callable[[], Activity], say: Say
) -> Iterator[tuple[Meter, ...]]:
    """What counts the calls of a service, whose page is there for as long as the block runs. Raises: StartError."""
    if settings.metrics_port is None:
        yield ()
        return
    from hummock.metrics.page import metrics_page
    from hummock.metrics.state import StateCollector

    state = StateCollector(use_cases.status, lanes.loads, activity)
    folder = os.environ[_SHARED_FOLDER] if settings.readers else None
    with metrics_page(settings.metrics_port, state, folder) as (meter, url):
        say(f"metrics on {url}")
        yield (meter,)


def meters_of_reader(settings: Settings) -> tuple[Meter, ...]:
    """What counts the calls of a reader; the service tells the sums."""
    if settings.metrics_port is None:
        return ()
    from prometheus_client import CollectorRegistry

    from hummock.metrics.calls import CallMetrics

    return (CallMetrics(CollectorRegistry()),)
