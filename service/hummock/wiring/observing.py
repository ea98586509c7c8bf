"""What is known of the calls of a service and its readers: how busy they are, and what tells it to others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hummock.config import Settings
from hummock.core.activity import Activity, ProcessLoad
from hummock.models import OnnxEmbedder
from hummock.observe.ledger import Ledgers
from hummock.recall.cache import CachedRecall
from hummock.rpc.interceptor import Interceptor, Meter
from hummock.rpc.lanes import Lanes
from hummock.rpc.methods import UseCases
from hummock.store import ReadOnlyStore, WritableStore
from hummock.wiring.parts import Say


def loading(
    recall: CachedRecall, memories: WritableStore | ReadOnlyStore, embedder: OnnxEmbedder
) -> Callable[[], ProcessLoad]:
    """Says how busy these parts of a process are."""

    def load() -> ProcessLoad:
        answers, answer_bytes = recall.usage()
        views, model = memories.views_load(), embedder.load()
        return ProcessLoad(
            cached_answers=answers,
            cached_bytes=answer_bytes,
            loaded_projects=views.count,
            index_bytes=views.nbytes,
            evicted_projects=views.evicted,
            lag_operations=views.lag,
            model_slots=model.slots,
            busy_slots=model.busy,
            waiting_texts=model.waiting,
        )

    return load


@contextmanager
def metrics_shown(
    settings: Settings, use_cases: UseCases, lanes: Lanes, activity: Callable[[], Activity], ledgers: Ledgers, say: Say
) -> Iterator[None]:
    """Shows Prometheus what a service and its readers do, while the block runs and if wanted. Raises: StartError."""
    if settings.metrics_port is None:
        yield
        return
    # Few starts need the library.
    from hummock.observe.page import StateCollector, metrics_page

    state = StateCollector(use_cases.status, lanes.loads, activity, ledgers.numbers)
    with metrics_page(settings.metrics_port, state) as url:
        say(f"metrics on {url}")
        yield


@contextmanager
def tracing(settings: Settings, interceptor: Interceptor, say: Say) -> Iterator[tuple[Meter, ...]]:
    """What makes spans of the interceptor's calls, for as long as the block runs."""
    if not settings.traces.endpoint:
        yield ()
        return
    # Its packages come with an extra that few install.
    from hummock.observe.spans import spans_to

    with spans_to(settings.traces.endpoint, settings.traces.ratio) as spans:
        interceptor.reads_traces = True
        say(f"traces to {settings.traces.endpoint}")
        yield (spans,)
