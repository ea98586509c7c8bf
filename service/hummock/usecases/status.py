"""Status: how the service is."""

from __future__ import annotations

from collections.abc import Callable

from hummock.core.status import LearnerStatus, ServiceStatus
from hummock.ports import Clock, Embedder, Store


class Status:
    """Says what runs, on what, and how full it is."""

    def __init__(
        self,
        store: Store,
        embedder: Embedder,
        clock: Clock,
        version: str,
        advice: str,
        learner: Callable[[], LearnerStatus],
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._clock = clock
        self._version = version
        self._advice = advice
        self._learner = learner
        self._start = clock.monotonic()

    def __call__(self) -> ServiceStatus:
        """The present state."""
        return ServiceStatus(
            version=self._version,
            uptime_s=self._clock.monotonic() - self._start,
            space=self._embedder.space,
            advice=self._advice,
            store=self._store.status(),
            learner=self._learner(),
        )
