"""Parts of every process of the service: clock, models, recall, access control and observability."""

from __future__ import annotations

import gc
import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hummock import models
from hummock.access.authenticator import Authenticator
from hummock.config import LlmSettings, Settings
from hummock.core.activity import Activity, ProcessLoad
from hummock.core.recall import CrossEncoding, IntentMode
from hummock.observe.ledger import Ledgers
from hummock.ports.models import Clock, Embedder, Reranker
from hummock.ports.store import Reads
from hummock.recall.cache import CachedRecall
from hummock.recall.intent import AskIntent
from hummock.recall.pipeline import Recall
from hummock.recall.rerank import CrossEncode
from hummock.rpc.interceptor import Interceptor, Meter
from hummock.rpc.lanes import Lanes
from hummock.rpc.listening import exposure_of, parse_address
from hummock.rpc.methods import UseCases
from hummock.rpc.server import Access
from hummock.rpc.tls import Tls, TlsFiles
from hummock.store import StoreReads, WritableStore
from hummock.text.inverse_glossary import inverse_glossary
from hummock.text.question import Question
from hummock.text.terms import characters
from hummock.text.time_words import time_intervals
from hummock.text.tokens import EstimatedTokens

if TYPE_CHECKING:
    from hummock.llm import OpenAiCompatible

Say = Callable[[str], None]

LLM_WORKERS = 8
"""Questions to the language model at once; each is a wait for the network of at most some 300 ms."""

_SWITCH_S = 0.0005
"""Longest wait for the GIL while another thread computes, in seconds. A call gives it back several times, and waits for
it each time."""

_NEW_OBJECTS = 50_000
"""After so many the collector looks at them."""

_WORDS_OF_ALL_TABLES = "2020-01-01 yesterday 昨天"


@dataclass(frozen=True, slots=True)
class SystemClock:
    """The machine's clock."""

    now, monotonic = staticmethod(time.time), staticmethod(time.monotonic)
    """Unix seconds, and seconds from some start. Called at every stage of a recall, so without a wrapper."""


def access_of(settings: Settings) -> Access:
    """Build access control from the settings. Raises: StartError."""
    tls = None
    if settings.tls_certificate is not None and settings.tls_key is not None:
        tls = Tls(
            TlsFiles(certificate=settings.tls_certificate, key=settings.tls_key, client_ca=settings.tls_client_ca)
        )
    exposure = exposure_of(parse_address(address_of(settings)))
    return Access(
        interceptor=Interceptor(Authenticator(settings.data_dir, exposure), slow_s=slow_s_of(settings)),
        tls=tls,
        allow_remote_plaintext=settings.allow_remote_plaintext,
        has_reflection=settings.reflection,
    )


def slow_s_of(settings: Settings) -> float | None:
    """From when on a call is slow, in seconds; None for never."""
    return settings.slow_call_ms / 1000 or None


def address_of(settings: Settings) -> str:
    """Return the address to listen on."""
    if settings.unix_socket is not None:
        return f"unix:{settings.unix_socket}"
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"{host}:{settings.port}"


@contextmanager
def recalling(
    settings: Settings,
    memories: Reads,
    embedder: Embedder,
    clock: Clock,
    say: Say,
    want: Callable[[str, Sequence[int]], None] | None = None,
) -> Iterator[tuple[Recall, CachedRecall]]:
    """Build the recall for the settings, and the same with a cache of answers.

    `want` gets recalled memories that wait for vectors.
    """
    reranker, mode = _open_reranker(settings, clock, say), CrossEncoding[settings.cross_encoder.upper()]
    with _ask_intent(settings, clock, say) as ask_intent:
        cross_encode = CrossEncode(reranker, mode, clock)
        recall = Recall(embedder, clock, cross_encode, ask_intent, want)
        yield recall, CachedRecall(recall, memories, embedder.space.id, clock, recall.is_inline)


def _open_reranker(settings: Settings, clock: Clock, say: Say) -> Reranker | None:
    """Open the cross-encoder, downloading it if missing; None if the settings switch it off."""
    if settings.cross_encoder == "off":
        return None
    model = models.find_reranker(settings.cross_encoder_model, settings.models_dir)
    if not models.is_here(model, settings.models_dir):
        models.pull(model, settings.models_dir, say)
    reranker = models.load_reranker(model, settings.models_dir / model.name, clock)
    say(f"cross-encoder {reranker.name}, from {reranker.least_s * 1000:.1f} ms a pair")
    return reranker


@contextmanager
def _ask_intent(settings: Settings, clock: Clock, say: Say) -> Iterator[AskIntent]:
    """Open the source of intents, with the configured language model if there is one."""
    with ThreadPoolExecutor(LLM_WORKERS, thread_name_prefix="llm") as executor, llm(settings.llm, clock) as model:
        if model is not None:
            say(f"language model {settings.llm.model}, intents by default: {settings.intent}")
        yield AskIntent(model, executor, IntentMode[settings.intent.upper()], clock)


@contextmanager
def llm(chosen: LlmSettings, clock: Clock) -> Iterator[OpenAiCompatible | None]:
    """The configured language model; None where there is none. Nothing is sent before somebody asks."""
    if not chosen.is_set:
        yield None
        return
    # Few have one, and it brings an HTTP client.
    from hummock.llm import Endpoint, OpenAiCompatible

    endpoint = Endpoint(
        base_url=chosen.base_url,
        model=chosen.model,
        timeout_s=chosen.timeout_s,
        api_key=chosen.api_key.get_secret_value(),
    )
    with closing(OpenAiCompatible(endpoint, clock)) as model:
        yield model


def warm() -> None:
    """Make the tables of analysing, counting, words for times and glosses: a quarter of a second, once a process."""
    characters()
    EstimatedTokens().count("")
    time_intervals(Question(_WORDS_OF_ALL_TABLES), 0.0)
    inverse_glossary()


def allow_many_files() -> None:
    """Raise the limit of open files to the maximum: each connection takes one, and the usual 1,024 are too few."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    # macOS reports no limit but has one.
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def tune_interpreter() -> None:
    """Let threads take turns often, and have the collector of cycles look at new objects only, when there are many.

    What start-up has made stays. A recall makes thousands of objects and hardly a cycle: looking through them at every
    700 takes a twentieth of its time, and makes some calls late.
    """
    sys.setswitchinterval(_SWITCH_S)
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS, *gc.get_threshold()[1:])
    gc.enable()


def loading(
    recall: CachedRecall, memories: WritableStore | StoreReads, embedder: models.OnnxEmbedder
) -> Callable[[], ProcessLoad]:
    """Says how busy these parts of a process are."""

    def load() -> ProcessLoad:
        answers, answer_bytes = recall.usage()
        count, nbytes = memories.views.usage()
        model = embedder.load()
        return ProcessLoad(
            cached_answers=answers,
            cached_bytes=answer_bytes,
            loaded_projects=count,
            index_bytes=nbytes,
            evicted_projects=memories.views.evicted(),
            lag_operations=memories.views.lag(),
            model_slots=model.slots,
            busy_slots=model.busy,
            waiting_texts=model.waiting,
        )

    return load


@contextmanager
def metrics_shown(
    settings: Settings, use_cases: UseCases, lanes: Lanes, activity: Callable[[], Activity], ledgers: Ledgers, say: Say
) -> Iterator[None]:
    """Serve Prometheus metrics of service and readers while the block runs, if configured. Raises: StartError."""
    if settings.metrics_port is None:
        yield
        return
    # Imported here, since few starts need the library.
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
