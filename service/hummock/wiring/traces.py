"""Traces of a service or a reader, where the settings name a collector."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from hummock.config import Settings
from hummock.rpc.interceptor import Interceptor, Meter
from hummock.wiring.parts import Say


@contextmanager
def tracing(settings: Settings, interceptor: Interceptor, say: Say) -> Iterator[tuple[Meter, ...]]:
    """What makes spans of the interceptor's calls, for as long as the block runs."""
    if not settings.traces.endpoint:
        yield ()
        return
    # Its packages come with an extra that few install.
    from hummock.traces.spans import spans_to

    with spans_to(settings.traces.endpoint, settings.traces.ratio) as spans:
        interceptor.reads_traces = True
        say(f"traces to {settings.traces.endpoint}")
        yield (spans,)
